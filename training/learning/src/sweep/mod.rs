//! Comparisons: several arms, each trained under several seeds, from common warm starts.
//!
//! A [`Comparison`](plan::Comparison) is read from a file and checked before any work begins (`plan`). `run`
//! trains what is missing, several runs at a time (`queue`), and continues after an interruption. `outcome`
//! reads the finished runs and checks that they have the same goals. Statistics, tables and drawings are
//! elsewhere.

pub(crate) mod outcome;
pub(crate) mod plan;
mod queue;
pub(crate) mod run;
