//! The result of one check.

use std::fmt;

use serde::Serialize;

/// The result of one check of a shop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Name of the checked property.
    pub check: &'static str,
    /// Whether the property holds.
    pub passed: bool,
    /// The measured numbers in one sentence; for a failed check, a counterexample if there is one.
    pub measured: String,
}

impl Check {
    pub(super) fn new(check: &'static str, passed: bool, measured: String) -> Self {
        Self { check, passed, measured }
    }

    /// Passes with `measured` if there is no counterexample, and else fails with the counterexample.
    pub(super) fn unless(
        check: &'static str,
        counterexample: Option<String>,
        measured: impl FnOnce() -> String,
    ) -> Self {
        match counterexample {
            None => Self::new(check, true, measured()),
            Some(example) => Self::new(check, false, example),
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = if self.passed { "PASS" } else { "FAIL" };
        write!(f, "{result}  {:<20}  {}", self.check, self.measured)
    }
}
