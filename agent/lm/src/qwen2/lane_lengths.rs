//! The lengths of a KV cache's lanes, for the caches of both backends.

use crate::error::LmError;

/// How many tokens each lane holds, of at most `capacity`.
#[derive(Clone, Debug)]
pub(super) struct LaneLengths {
    lengths: Vec<usize>,
    capacity: usize,
}

impl LaneLengths {
    /// Empty lanes.
    pub(super) fn new(n_lanes: usize, capacity: usize) -> Self {
        Self { lengths: vec![0; n_lanes], capacity }
    }

    pub(super) fn n_lanes(&self) -> usize {
        self.lengths.len()
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn get(&self, lane: usize) -> usize {
        self.lengths[lane]
    }

    /// Shortens a lane to `len` tokens; does nothing if it is shorter.
    pub(super) fn truncate(&mut self, lane: usize, len: usize) {
        self.lengths[lane] = self.lengths[lane].min(len);
    }

    pub(super) fn copy(&mut self, from: usize, to: usize) {
        self.lengths[to] = self.lengths[from];
    }

    pub(super) fn advance(&mut self, lane: usize, n_new: usize) {
        self.lengths[lane] += n_new;
    }

    /// Fails if the lane does not exist or has no room for `n_new` more tokens.
    pub(super) fn check_room(&self, lane: usize, n_new: usize) -> Result<(), LmError> {
        let capacity = self.capacity;
        let reason = match self.lengths.get(lane) {
            None => format!("lane {lane} is past the last of {} lanes", self.lengths.len()),
            Some(len) if len + n_new > capacity => {
                format!("lane {lane} holds {len} tokens and cannot take {n_new} more of {capacity}")
            }
            Some(_) => return Ok(()),
        };
        Err(LmError::Input(reason))
    }
}
