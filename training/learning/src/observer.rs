//! Reports the progress of a run.
//!
//! The trainer calls an [`Observer`]; a command line can show bars or lines. An observer never influences the
//! run.

/// Receives the progress of a run.
pub trait Observer {
    /// A stage of `total` units begins, `done` of which were finished earlier. A stage may lie within
    /// another.
    fn begin(&self, stage: &str, total: u64, done: u64);
    /// `units` more of the innermost stage are finished; `note` says how it goes.
    fn advance(&self, units: u64, note: &str);
    /// The innermost stage is over.
    fn end(&self);
    /// A message.
    fn log(&self, line: &str);
}

/// Ignores all progress: for libraries and tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn begin(&self, _stage: &str, _total: u64, _done: u64) {}
    fn advance(&self, _units: u64, _note: &str) {}
    fn end(&self) {}
    fn log(&self, _line: &str) {}
}
