//! Shop-R1: rewards and translations, data, evaluation and training of single next actions.

mod comparison;
mod data;
mod eval;
mod recordings;
mod rewards;
mod training;
