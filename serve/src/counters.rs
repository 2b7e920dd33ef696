//! Counts of what the sessions of each interface did, and of responses.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one interface.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    opened: AtomicU64,
    refused: AtomicU64,
    resets: AtomicU64,
    steps: AtomicU64,
    terminated: AtomicU64,
    truncated: AtomicU64,
}

/// How many episodes of an interface ended, by how they did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// By a purchase.
    pub terminated: u64,
    /// By the step limit.
    pub truncated: u64,
}

/// What the sessions of an interface did since the server began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sessions that were opened.
    pub opened: u64,
    /// Requests for sessions that were refused, because too few were free or more were asked for than the server has.
    pub refused: u64,
    /// Episodes that began.
    pub resets: u64,
    /// Actions taken.
    pub steps: u64,
    /// Episodes that ended.
    pub ends: Ends,
}

impl Counters {
    pub(crate) fn opened(&self, n: u64) {
        add(&self.opened, n);
    }

    pub(crate) fn refused(&self) {
        add(&self.refused, 1);
    }

    pub(crate) fn reset(&self) {
        add(&self.resets, 1);
    }

    /// Counts an action, and the end of the episode if the action ended it.
    pub(crate) fn step(&self, ended: bool, terminated: bool) {
        add(&self.steps, 1);
        match (ended, terminated) {
            (true, true) => add(&self.terminated, 1),
            (true, false) => add(&self.truncated, 1),
            (false, _) => {}
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            opened: read(&self.opened),
            refused: read(&self.refused),
            resets: read(&self.resets),
            steps: read(&self.steps),
            ends: Ends { terminated: read(&self.terminated), truncated: read(&self.truncated) },
        }
    }
}

fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

/// Responses by the first digit of their status.
#[derive(Debug, Default)]
pub(crate) struct ResponseCounts([AtomicU64; 6]);

impl ResponseCounts {
    /// Counts a response with this status.
    pub(crate) fn count(&self, status: u16) {
        if let Some(counter) = self.0.get(usize::from(status / 100)) {
            add(counter, 1);
        }
    }

    /// The first digits, from 1, and how many responses there were.
    pub(crate) fn by_class(&self) -> impl Iterator<Item = (usize, u64)> {
        let counters = self.0.iter().enumerate().skip(1);
        counters.map(|(class, counter)| (class, counter.load(Ordering::Relaxed)))
    }
}
