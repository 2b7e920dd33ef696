//! sweep.

pub mod curve;
pub mod drawings;
pub mod next_action;
pub mod report;
pub mod table;
