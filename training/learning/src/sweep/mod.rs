//! Several learners on one task: same warm start, same goals, several seeds.
//!
//! A [`Comparison`] is read from a file: [`Arm`]s, each the common configuration with some values changed, and the seeds
//! under which all of them run. [`compare`] makes what is missing of its runs, [`write_comparison`] reads them back and
//! writes what came of it. The folder:
//!
//! ```text
//! warm-start/seed-0/       a run that ends with its warm start, one for each seed
//! runs/ARM/seed-0/         a run that begins there
//! values/                  V* of the goals, estimated once for all arms that would find the same
//! report.html  table.md    what came of them; see [`write_comparison`]
//! ```
//!
//! Nothing but these folders says how far a comparison has come: a finished run is there with its summary, and is not
//! made again; one that was cut short has a checkpoint, and goes on from it.

pub mod outcome;
pub mod plan;
pub mod queue;
pub mod run;





pub use crate::sweep::plan::{Arm, Comparison};
pub use crate::sweep::run::{ComparisonFolder, compare};
