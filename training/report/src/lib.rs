//! Reports of training runs and of comparisons.
//!
//! - [`write_report`] writes the HTML page of one run, with its learning curve and one episode as SVG.
//! - [`write_comparison`] writes the tables, drawings and HTML page of a comparison of several runs.
//! - [`LiveRuns`] has the latest numbers and charts of runs in progress, for a page that is loaded again and again.
//! - [`View`] draws a run or a comparison as text in a terminal while it is in progress.
//!
//! All of them read the files of a run folder. Nothing is trained or evaluated here, and no metric is
//! recomputed.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

mod html;
mod run;
mod sweep;
mod terminal;

pub use crate::html::DRAWING_STYLE;
pub use crate::run::{Figure, LiveRun, LiveRuns, PhaseProgress, RunProgress, Stage, write_report};
pub use crate::sweep::write_comparison;
pub use crate::terminal::{Paint, View};
