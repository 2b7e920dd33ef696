//! Files of recorded trips, made again line by line.
//!
//! [`replay`] reads what a rollout wrote, one [`Trip`] a line, and stops at the first
//! [`Difference`]. A line that is no trip, or a trip of another shop, is a [`ReplayError`] that
//! names the line: no verdict is possible then.
//!
//! It opens no file and prints nothing.

use crate::shop::Shop;
use crate::trajectory::record::{Difference, Trip, TripError};
use serde::Serialize;
use std::fmt;
use std::io::{self, BufRead};
use std::sync::Arc;

/// What came of making trips again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Replay {
    /// Trips made, the one that differs included.
    pub trips: usize,
    /// The turns of those that went as recorded.
    pub turns: usize,
    /// The first difference, if there is one; what lies behind it was not looked at.
    pub difference: Option<TripDifference>,
}

/// Where a trip went another way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TripDifference {
    /// The line of the trip, from 1.
    pub line: usize,
    /// The number of its goal.
    pub goal: u32,
    /// What differs.
    #[serde(flatten)]
    pub difference: Difference,
}

impl fmt::Display for TripDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, goal {}: {}", self.line, self.goal, self.difference)
    }
}

/// Why a file of trips could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It could not be read to its end.
    #[error("line {line} cannot be read: {source}")]
    Read {
        /// The line, from 1.
        line: usize,
        /// Why.
        source: io::Error,
    },
    /// A line is no trip of this shop.
    #[error("line {line}: {problem}")]
    Trip {
        /// The line, from 1.
        line: usize,
        /// Why.
        problem: TripError,
    },
    /// There is nothing to judge.
    #[error("there is no trip in it")]
    Empty,
}

/// Makes every trip again, up to the first difference. Blank lines are passed over.
///
/// # Errors
/// [`ReplayError`], at the first line that cannot be judged.
pub fn replay(trips: impl BufRead, shop: &Arc<Shop>) -> Result<Replay, ReplayError> {
    let mut replayed = Replay::default();
    for (at, text) in trips.lines().enumerate() {
        let line = at + 1;
        let text = text.map_err(|source| ReplayError::Read { line, source })?;
        if text.trim().is_empty() {
            continue;
        }
        let judge = |trip: Trip| trip.replay(shop).map(|difference| (trip, difference));
        let judged = Trip::read(&text).and_then(judge);
        let (trip, difference) = judged.map_err(|problem| ReplayError::Trip { line, problem })?;
        replayed.trips += 1;
        if let Some(difference) = difference {
            replayed.difference = Some(TripDifference { line, goal: trip.goal.0, difference });
            return Ok(replayed);
        }
        replayed.turns += trip.turns.len();
    }
    match replayed.trips {
        0 => Err(ReplayError::Empty),
        _ => Ok(replayed),
    }
}
