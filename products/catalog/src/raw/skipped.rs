//! Malformed records: the first is an error, or all are dropped and counted.

use std::fmt;

use crate::error::DataError;

/// The number of dropped records that are reported one by one.
const N_REPORTED: usize = 5;

/// Malformed records that were dropped.
#[derive(Debug, Default)]
pub struct Skipped {
    /// Their number.
    pub n_records: usize,
    /// The first five, each with file, number, ASIN and field.
    pub first: Vec<DataError>,
}

impl fmt::Display for Skipped {
    /// A line with their number, then one for each of the first few.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed records dropped: {}", self.n_records)?;
        for record in &self.first {
            write!(f, "\n  {record}")?;
        }
        match self.n_records - self.first.len() {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

/// The treatment of malformed records.
pub(crate) enum BadRecords {
    Refused,
    Skipped(Skipped),
}

impl BadRecords {
    /// Whether malformed records are dropped.
    pub(crate) fn are_skipped(&self) -> bool {
        matches!(self, Self::Skipped(_))
    }

    /// The dropped records.
    pub(crate) fn into_skipped(self) -> Skipped {
        match self {
            Self::Skipped(skipped) => skipped,
            Self::Refused => Skipped::default(),
        }
    }

    /// Returns the problem, or counts it.
    pub(crate) fn meet(&mut self, problem: DataError) -> Result<(), DataError> {
        let Self::Skipped(skipped) = self else { return Err(problem) };
        skipped.n_records += 1;
        if skipped.first.len() < N_REPORTED {
            skipped.first.push(problem);
        }
        Ok(())
    }
}
