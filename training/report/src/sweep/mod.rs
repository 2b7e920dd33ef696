//! The report of a comparison: several runs (arms and seeds) in tables and drawings.
//!
//! `table`, `next_action` and `judged` compute the figures of each arm, `over_seeds` their intervals, `curve` averages
//! the curves of an arm's runs, `drawings` draws them with the charts of [`crate::run`], and `report` writes the files.

mod curve;
mod drawings;
mod judged;
mod next_action;
mod over_seeds;
mod report;
mod table;

pub use crate::sweep::report::write_comparison;
