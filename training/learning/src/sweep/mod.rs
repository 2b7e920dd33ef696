//! Comparisons: several arms, each trained under several seeds, from common warm starts.
//!
//! A [`Comparison`] is read from a file, with what the command line changes of it (`changes`), and checked before any
//! work begins (`plan`). `run` trains what is missing, several runs at a time (`queue`), and continues after an interruption. `outcome`
//! reads the finished runs and checks that they have the same goals. Statistics, tables and drawings are
//! elsewhere.

mod changes;
mod outcome;
mod plan;
mod queue;
mod run;

pub use crate::run::episodes::EpisodeOutcome;
pub use crate::sweep::changes::{Changes, Variation, shell_quoted};
pub use crate::sweep::outcome::{ArmOutcome, RunOutcome, read_outcomes};
pub use crate::sweep::plan::{Arm, Comparison};
pub use crate::sweep::run::{CompareOptions, ComparisonFolder, compare};
