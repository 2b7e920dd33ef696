//! An observer that asks for a stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use webshop_training::{Observer, TrainOptions};

/// Asks for a stop once the work has advanced so often.
pub(crate) struct StopAfter<'a> {
    n_advances: u64,
    seen: AtomicU64,
    stop: &'a AtomicBool,
}

impl<'a> StopAfter<'a> {
    /// Sets `stop` at the advance of this number; never for 0.
    pub(crate) fn new(n_advances: u64, stop: &'a AtomicBool) -> Self {
        Self { n_advances, seen: AtomicU64::new(0), stop }
    }
}

impl Observer for StopAfter<'_> {
    fn begin(&self, _stage: &str, _total: u64, _done: u64) {}

    fn advance(&self, _units: u64, _note: &str) {
        if self.seen.fetch_add(1, Ordering::Relaxed) + 1 == self.n_advances {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn end(&self) {}
    fn log(&self, _line: &str) {}
}

/// A run on the CPU that `observer` sees and `stop` stops.
pub(crate) fn watched<'a>(observer: &'a dyn Observer, stop: &'a AtomicBool) -> TrainOptions<'a> {
    TrainOptions { observer, stop: Some(stop), ..TrainOptions::default() }
}
