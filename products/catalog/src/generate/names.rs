//! ASINs that can be pronounced: `B0KAMOTIRU`.

use super::dice::{Dice, Draw};
use crate::seed::Seed;

const CONSONANTS: &[u8; 16] = b"BDFGHJKLMNPRSTVZ";
const VOWELS: &[u8; 5] = b"AEIOU";
const N_SYLLABLES: usize = CONSONANTS.len() * VOWELS.len();
/// Halves of four letters.
const N_HALVES: usize = N_SYLLABLES * N_SYLLABLES;

/// Shops up to this size are named by few halves, which a small tokenizer can learn whole.
const SMALL_SHOP: usize = 2_000;
const N_SMALL_HALVES: usize = 64;
/// Spreads the few halves over all syllables: coprime to their number.
const SMALL_STRIDE: usize = 101;

/// Rounds of the mixing that turns a product's number into its name.
const N_ROUNDS: usize = 4;

/// Gives different numbers different names, in no visible order.
///
/// The number is split into two halves that are mixed by a balanced Feistel network over additions,
/// which is one-to-one whatever the tables hold.
pub(super) struct Names {
    n_halves: usize,
    tables: Vec<Vec<usize>>,
}

impl Names {
    pub(super) fn new(seed: Seed, n_products: usize) -> Self {
        let n_halves = if n_products <= SMALL_SHOP { N_SMALL_HALVES } else { N_HALVES };
        assert!(n_products <= n_halves * n_halves, "no more names for {n_products} products");
        let table = |round| {
            let mut dice = Dice::new(seed, Draw::Names, &[round]);
            (0..n_halves).map(|_| dice.below(n_halves)).collect()
        };
        Self { n_halves, tables: (0..N_ROUNDS).map(table).collect() }
    }

    pub(super) fn get(&self, number: usize) -> String {
        let (mut left, mut right) = (number / self.n_halves, number % self.n_halves);
        for table in &self.tables {
            (left, right) = (right, (left + table[right]) % self.n_halves);
        }
        let mut name = String::from("B0");
        for half in [left, right] {
            let half = if self.n_halves == N_HALVES { half } else { half * SMALL_STRIDE % N_HALVES };
            for syllable in [half / N_SYLLABLES, half % N_SYLLABLES] {
                name.push(char::from(CONSONANTS[syllable / VOWELS.len()]));
                name.push(char::from(VOWELS[syllable % VOWELS.len()]));
            }
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(n: usize) -> Vec<String> {
        let names = Names::new(Seed(0), n);
        (0..n).map(|number| names.get(number)).collect()
    }

    #[test]
    fn names_are_unique_and_unsorted() {
        for n in [2_000, 30_000] {
            let names = names(n);
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), n);
            assert!(!names.is_sorted());
            assert!(names.iter().all(|name| name.len() == 10));
        }
    }

    #[test]
    fn a_small_shop_is_named_by_sixty_four_halves() {
        let names = names(2_000);
        let halves: BTreeSet<_> = names.iter().flat_map(|name| [&name[2..6], &name[6..]]).collect();
        assert_eq!(halves.len(), N_SMALL_HALVES);
    }
}
