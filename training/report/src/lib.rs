//! webshop_report.

pub mod run;
pub mod sweep;
pub mod terminal;

pub use crate::terminal::{Paint, View};
pub use crate::sweep::report::write_comparison;
pub use crate::run::write_report;
