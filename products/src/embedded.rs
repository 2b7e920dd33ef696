//! The two catalogs that the program carries with it.

use crate::raw::RawData;
use crate::{Seed, generate};

/// A catalog that needs no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EmbeddedCatalog {
    /// 100 products.
    Hundred,
    /// 1,000 products.
    Thousand,
}

impl RawData {
    /// One of the embedded catalogs.
    pub fn embedded(which: EmbeddedCatalog) -> Self {
        match which {
            EmbeddedCatalog::Hundred => generate(Seed(0), 100),
            EmbeddedCatalog::Thousand => generate(Seed(0), 1_000),
        }
    }
}
