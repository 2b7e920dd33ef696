//! Random choices in the vocabulary of the generator.

use rand_chacha::ChaCha8Rng;

use crate::seed::{Purpose, Seed, below};

/// The kind of a draw; its first coordinate.
#[derive(Clone, Copy)]
pub(super) enum Draw {
    Kinds = 1,
    Family = 2,
    Listing = 3,
    Instruction = 4,
    Order = 5,
    Names = 6,
}

/// A stream of choices with a name.
pub(super) struct Dice(ChaCha8Rng);

impl Dice {
    pub(super) fn new(seed: Seed, draw: Draw, coords: &[usize]) -> Self {
        let first = std::iter::once(draw as u64);
        let coords: Vec<_> = first.chain(coords.iter().map(|&coord| coord as u64)).collect();
        Self(seed.rng(Purpose::CATALOG, &coords))
    }

    /// A number below `n`; zero for zero.
    pub(super) fn below(&mut self, n: usize) -> usize {
        below(&mut self.0, n)
    }

    /// Both ends are possible.
    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low) as usize + 1) as i64
    }

    /// True `percent` times in a hundred.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// The number of successes before the first failure, each `percent` times in a hundred; at most `most`.
    pub(super) fn geometric(&mut self, percent: usize, most: usize) -> usize {
        (0..most).take_while(|_| self.chance(percent)).count()
    }

    /// One of a list that is not empty.
    pub(super) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// An index, with probability proportional to its weight.
    pub(super) fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut left = self.below(weights.iter().sum());
        weights
            .iter()
            .position(|&weight| {
                let found = left < weight;
                left = left.saturating_sub(weight);
                found
            })
            .unwrap_or_default()
    }

    pub(super) fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last + 1));
        }
    }

    /// Up to `n` different entries in drawn order.
    pub(super) fn sample<T: Copy>(&mut self, list: &[T], n: usize) -> Vec<T> {
        let mut drawn = list.to_vec();
        self.shuffle(&mut drawn);
        drawn.truncate(n);
        drawn
    }
}
