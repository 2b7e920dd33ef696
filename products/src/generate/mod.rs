//! placeholder
use crate::{RawData, Seed};

/// A shop of `n_products` made from nothing but `seed`.
pub fn generate(_seed: Seed, _n_products: usize) -> RawData {
    RawData::default()
}
