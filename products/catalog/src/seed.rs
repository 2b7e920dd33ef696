//! Counter-based randomness: every draw is addressed by seed, purpose and coordinates.
//!
//! A [`Seed`] is one number, a [`Purpose`] the kind of a draw, and coordinates its position within that kind
//! (product 17, instruction 3). Together they determine a generator, so a draw never depends on how many
//! draws came before it, on the thread, or on the order.
//!
//! There is no global generator.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Domain separation: the prefix of every key.
const DOMAIN: &[u8] = b"webshop/seed/1";

/// The number that determines every random choice of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

/// The kind of a random draw, named by a tag that enters the key. Draws of different purposes are
/// independent, whatever their coordinates.
///
/// Each crate defines constants for its own purposes. A tag must not be used by two of them, and changing a
/// tag changes every draw of its purpose.
///
/// ```
/// use webshop_products::Purpose;
///
/// const SHUFFLING: Purpose = Purpose::new("shuffling");
/// assert_ne!(SHUFFLING, Purpose::CATALOG);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Purpose(&'static str);

impl Purpose {
    /// The products of a generated catalog.
    pub const CATALOG: Self = Self("catalog");
    /// The price charged for a product whose page shows a range.
    pub const PRICES: Self = Self("prices");
    /// The price limits of goals.
    pub const GOALS: Self = Self("goals");

    /// The purpose with this tag.
    pub const fn new(tag: &'static str) -> Self {
        Self(tag)
    }
}

impl Seed {
    /// The generator for the draw at (`purpose`, `coords`).
    ///
    /// Its ChaCha8 key is SHA-256 over the domain, the seed, the purpose and the coordinates (each
    /// length-prefixed or of fixed width, little endian), so no two addresses share a key.
    ///
    /// ```
    /// use rand::RngCore;
    /// use webshop_products::{Purpose, Seed};
    ///
    /// let first = Seed(7).rng(Purpose::GOALS, &[3, 1]).next_u64();
    /// assert_eq!(first, Seed(7).rng(Purpose::GOALS, &[3, 1]).next_u64());
    /// assert_ne!(first, Seed(7).rng(Purpose::GOALS, &[1, 3]).next_u64());
    /// assert_ne!(first, Seed(7).rng(Purpose::PRICES, &[3, 1]).next_u64());
    /// ```
    pub fn rng(self, purpose: Purpose, coords: &[u64]) -> ChaCha8Rng {
        let tag = purpose.0.as_bytes();
        let mut key = Sha256::new();
        key.update(DOMAIN);
        key.update(self.0.to_le_bytes());
        key.update((tag.len() as u64).to_le_bytes());
        key.update(tag);
        key.update((coords.len() as u64).to_le_bytes());
        for coord in coords {
            key.update(coord.to_le_bytes());
        }
        ChaCha8Rng::from_seed(key.finalize().into())
    }

    /// Another seed, drawn at (`purpose`, `coords`), for something that is addressed by a seed of its own.
    pub fn child(self, purpose: Purpose, coords: &[u64]) -> Self {
        Self(self.rng(purpose, coords).next_u64())
    }
}

/// A number below `n`, from one 64-bit word; 0 if `n` is 0.
///
/// Not rand's, because committed catalogs must not change with a version of rand. The bias of the
/// multiplication is at most `n / 2^64`.
pub(crate) fn below(rng: &mut impl RngCore, n: usize) -> usize {
    ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_is_the_same_on_every_machine() {
        // Recorded once; a change here is a change of every generated catalog.
        let mut rng = Seed(0).rng(Purpose::CATALOG, &[1, 2]);
        insta::assert_snapshot!(format!("{:016x}", rng.next_u64()), @"cfed40df07653ad3");
    }

    #[test]
    fn below_stays_below_and_reaches_every_number() {
        let mut rng = Seed(1).rng(Purpose::CATALOG, &[]);
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[below(&mut rng, 5)] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!(below(&mut rng, 0), 0);
    }

    #[test]
    fn the_number_of_coordinates_is_part_of_the_key() {
        let a = Seed(0).rng(Purpose::GOALS, &[]).next_u64();
        let b = Seed(0).rng(Purpose::GOALS, &[0]).next_u64();
        assert_ne!(a, b);
    }
}
