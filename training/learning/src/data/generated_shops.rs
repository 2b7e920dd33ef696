//! Generated shops, by what they are for. Each purpose has its own range of generator seeds, so that no shop serves two.
//!
//! ```text
//! auxiliary    1_000_000 + k              trained on
//! validation   2_000_000 + k              evaluations during training; the same for every run
//! fresh        3_000_000 + 64 · seed + k  the judgement of the run of this seed
//! ```
//!
//! The embedded catalogs have seed 0.

use std::sync::Arc;

use rayon::prelude::*;
use webshop_env::{GeneratedCatalog, Shop};
use webshop_products::Seed;

use crate::error::Result;

const AUXILIARY: u64 = 1_000_000;
const VALIDATION: u64 = 2_000_000;
const FRESH: u64 = 3_000_000;
/// The most auxiliary shops, and the most validation shops: their ranges end where the next begin.
pub(crate) const MAX_SHOPS: usize = 1_000_000;
/// The most fresh shops of one run; those of the next seed follow them.
pub(crate) const MAX_FRESH: usize = 64;

/// The largest seed of a run with fresh shops: generator seeds have 64 bits.
pub(crate) const MAX_JUDGED_SEED: u64 = (u64::MAX - FRESH) / MAX_FRESH as u64 - 1;

/// The first `n` auxiliary shops, of `n_products` products each.
pub(crate) fn auxiliary_shops(n: usize, n_products: usize) -> Result<Vec<Arc<Shop>>> {
    generated_shops(AUXILIARY, n, n_products)
}

/// The first `n` validation shops, of `n_products` products each.
pub(crate) fn validation_shops(n: usize, n_products: usize) -> Result<Vec<Arc<Shop>>> {
    generated_shops(VALIDATION, n, n_products)
}

/// The first `n` fresh shops, at most [`MAX_FRESH`], of the run of `seed`, at most [`MAX_JUDGED_SEED`], of `n_products`
/// products each.
pub(crate) fn fresh_shops(seed: Seed, n: usize, n_products: usize) -> Result<Vec<Arc<Shop>>> {
    let first = FRESH + seed.0 * MAX_FRESH as u64;
    generated_shops(first, n, n_products)
}

fn generated_shops(first: u64, n: usize, products: usize) -> Result<Vec<Arc<Shop>>> {
    let shop = |number: u64| {
        let of = GeneratedCatalog { seed: first + number, products };
        Ok(Arc::new(Shop::generated(of)?))
    };
    (0..n as u64).into_par_iter().map(shop).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds(shops: &[Arc<Shop>]) -> Vec<u64> {
        shops.iter().map(|shop| shop.generator().unwrap().seed).collect()
    }

    #[test]
    fn each_purpose_and_each_seed_has_shops_of_its_own() {
        assert_eq!(seeds(&auxiliary_shops(2, 3).unwrap()), [1_000_000, 1_000_001]);
        assert_eq!(seeds(&validation_shops(2, 3).unwrap()), [2_000_000, 2_000_001]);
        assert_eq!(seeds(&fresh_shops(Seed(0), 2, 3).unwrap()), [3_000_000, 3_000_001]);
        assert_eq!(seeds(&fresh_shops(Seed(1), 2, 3).unwrap()), [3_000_064, 3_000_065]);
    }
}
