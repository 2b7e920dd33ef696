//! What becomes of records that break the format: the first is refused, or all are dropped and counted.

use std::fmt;

use crate::error::DataError;

/// So many of the dropped records are kept to be told of.
const N_TOLD: usize = 5;

/// Records that were left out of a catalog.
#[derive(Debug, Default)]
pub struct Skipped {
    /// How many.
    pub n_records: usize,
    /// The first few, each with file, number, ASIN and field.
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

/// Whether a record that breaks the format ends the reading.
pub(crate) enum BadRecords {
    Refused,
    Skipped(Skipped),
}

impl BadRecords {
    /// Whether they are left out.
    pub fn are_skipped(&self) -> bool {
        matches!(self, Self::Skipped(_))
    }

    /// Those that were.
    pub fn into_skipped(self) -> Skipped {
        match self {
            Self::Skipped(skipped) => skipped,
            Self::Refused => Skipped::default(),
        }
    }

    /// Passes the problem on, or notes it.
    pub fn meet(&mut self, problem: DataError) -> Result<(), DataError> {
        let Self::Skipped(skipped) = self else { return Err(problem) };
        skipped.n_records += 1;
        if skipped.first.len() < N_TOLD {
            skipped.first.push(problem);
        }
        Ok(())
    }
}
