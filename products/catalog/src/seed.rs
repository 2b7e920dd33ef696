//! The root of all randomness.
//!
//! A [`Seed`] is one number; a [`Purpose`] says what a draw is for; coordinates say which one of
//! its kind it is (product 17, instruction 3). Together they name a generator, so a draw depends on
//! its name alone and never on how many draws came before it, on which thread, or in which order.
//!
//! There is no global generator here and no "next number" shared between two users.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Separates our keys from any other use of SHA-256 over the same numbers.
const DOMAIN: &[u8] = b"webshop/seed/1";

/// The number from which every random choice of a run follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

/// What a random draw is for. Two purposes never share a number, whatever their coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Making the products of a generated catalog.
    Catalog,
    /// What a purchase costs when the page shows a range.
    Prices,
    /// Making instructions and price limits.
    Goals,
    /// Deciding which products are trained on.
    Split,
    /// Training a tokenizer.
    Tokenizer,
    /// The first weights of a model.
    Init,
    /// The first weights of an adapter.
    Adapter,
    /// The words of a reading exercise.
    Exercise,
    /// The choices of a demonstrator.
    Demonstration,
    /// Which goals a training step works on.
    GoalSampling,
    /// Sampling tokens.
    Decoding,
    /// The choices of a random policy.
    Policy,
    /// The seed that a model server is sent with a request.
    Request,
    /// How long to wait before a request is repeated.
    Backoff,
    /// Which goals an evaluation visits.
    Evaluation,
    /// Resampling for an interval.
    Bootstrap,
    /// Which single steps are learned from, and what a customer searches for in vain.
    Steps,
}

impl Purpose {
    /// The name that enters the key. Changing one changes every draw of that purpose.
    const fn tag(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::Prices => "prices",
            Self::Goals => "goals",
            Self::Split => "split",
            Self::Tokenizer => "tokenizer",
            Self::Init => "init",
            Self::Adapter => "adapter",
            Self::Exercise => "exercise",
            Self::Demonstration => "demonstration",
            Self::GoalSampling => "goal-sampling",
            Self::Decoding => "decoding",
            Self::Policy => "policy",
            Self::Request => "request",
            Self::Backoff => "backoff",
            Self::Evaluation => "evaluation",
            Self::Bootstrap => "bootstrap",
            Self::Steps => "steps",
        }
    }
}

impl Seed {
    /// The generator of the draw named by `purpose` and `coords`.
    ///
    /// Its ChaCha8 key is SHA-256 over the domain, the seed, the purpose and the coordinates (each
    /// length-prefixed or of fixed width, little endian), so no two names share a key.
    ///
    /// ```
    /// use rand::RngCore;
    /// use webshop_products::{Purpose, Seed};
    ///
    /// let first = Seed(7).rng(Purpose::Goals, &[3, 1]).next_u64();
    /// assert_eq!(first, Seed(7).rng(Purpose::Goals, &[3, 1]).next_u64());
    /// assert_ne!(first, Seed(7).rng(Purpose::Goals, &[1, 3]).next_u64());
    /// assert_ne!(first, Seed(7).rng(Purpose::Prices, &[3, 1]).next_u64());
    /// ```
    pub fn rng(self, purpose: Purpose, coords: &[u64]) -> ChaCha8Rng {
        let tag = purpose.tag().as_bytes();
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
}

/// A number below `n`, from one 64-bit word; `n` of zero gives zero.
///
/// Ours rather than rand's, because committed catalogs must not change with a version of rand. The
/// bias of the multiplication is at most `n / 2^64`.
pub(crate) fn below(rng: &mut impl RngCore, n: usize) -> usize {
    ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_is_the_same_on_every_machine() {
        // Recorded once; a change here is a change of every generated catalog.
        let mut rng = Seed(0).rng(Purpose::Catalog, &[1, 2]);
        insta::assert_snapshot!(format!("{:016x}", rng.next_u64()), @"cfed40df07653ad3");
    }

    #[test]
    fn below_stays_below_and_reaches_every_number() {
        let mut rng = Seed(1).rng(Purpose::Catalog, &[]);
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[below(&mut rng, 5)] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!(below(&mut rng, 0), 0);
    }

    #[test]
    fn coordinates_are_told_apart_from_their_count() {
        let a = Seed(0).rng(Purpose::Goals, &[]).next_u64();
        let b = Seed(0).rng(Purpose::Goals, &[0]).next_u64();
        assert_ne!(a, b);
    }
}
