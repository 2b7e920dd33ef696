//! The one clock of the trainer. It is read for timings and reports; training does not depend on it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Unix time in seconds by the machine's clock; 0 if the clock is before 1970.
#[expect(clippy::disallowed_methods, reason = "when a run was begun, in a file that is compared with none")]
pub(crate) fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Seconds since the start of the run, without pauses between a stop and a resumption, and with the seconds
/// that other runs spent on values it reuses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    before: f64,
    since: Instant,
}

impl Clock {
    /// A clock that has already run for `seconds`.
    #[expect(clippy::disallowed_methods, reason = "timings live in files of their own")]
    pub(crate) fn resume(seconds: f64) -> Self {
        Self { before: seconds, since: Instant::now() }
    }

    /// Adds seconds that another run spent on values that this one reuses.
    pub(crate) fn charge(&mut self, seconds: f64) {
        self.before += seconds;
    }

    /// Seconds so far.
    pub(crate) fn seconds(&self) -> f64 {
        self.before + self.since.elapsed().as_secs_f64()
    }
}
