//! Reports the progress of a run.
//!
//! The trainer calls an [`Observer`]; a command line can show bars or lines. An observer never influences the
//! run.

/// Receives the progress of a run.
pub trait Observer {
    /// A phase of `total` units begins, `done` of which were finished earlier. Phases nest.
    fn begin(&self, phase: &str, total: u64, done: u64);
    /// `units` more of the innermost phase are finished; `note` is a short status, such as a loss.
    fn advance(&self, units: u64, note: &str);
    /// The innermost phase ends.
    fn end(&self);
    /// Logs one line.
    fn log(&self, line: &str);
}

/// Ignores all progress: for libraries and tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn begin(&self, _phase: &str, _total: u64, _done: u64) {}
    fn advance(&self, _units: u64, _note: &str) {}
    fn end(&self) {}
    fn log(&self, _line: &str) {}
}
