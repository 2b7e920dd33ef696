//! The two catalogs embedded in the program.
//!
//! They were made by [`crate::generate()`] with seed 0 and are kept as files, so that a change of the
//! generator shows as a change of data. The larger one is gzipped.

use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;

use crate::error::DataError;
use crate::raw::{RawData, Skipped};

const HUNDRED: &[u8] = include_bytes!("../../../data/catalog-100.json");
const THOUSAND: &[u8] = include_bytes!("../../../data/catalog-1000.json.gz");

/// An embedded catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EmbeddedCatalog {
    /// 100 products.
    Hundred,
    /// 1,000 products.
    Thousand,
}

impl EmbeddedCatalog {
    /// The catalog with the name `100` or `1000`.
    pub fn named(source: &str) -> Option<Self> {
        match source {
            "100" => Some(Self::Hundred),
            "1000" => Some(Self::Thousand),
            _ => None,
        }
    }

    /// The catalog as one JSON object, one record a line.
    fn json(self) -> Vec<u8> {
        match self {
            Self::Hundred => HUNDRED.to_vec(),
            Self::Thousand => {
                let mut json = Vec::new();
                GzDecoder::new(THOUSAND)
                    .read_to_end(&mut json)
                    .expect("the embedded file was written by the example `embed`");
                json
            }
        }
    }
}

impl RawData {
    /// The catalog that `source` names: `100` and `1000` are embedded, anything else is a folder. With a
    /// `limit`, only its first products.
    pub fn open(source: &str, limit: Option<usize>) -> Result<Self, DataError> {
        match EmbeddedCatalog::named(source) {
            Some(which) => Ok(Self::first_of(which, limit)),
            None => Self::read_dir(Path::new(source), limit),
        }
    }

    /// As [`RawData::open`], but malformed records of a folder are left out; see
    /// [`RawData::read_dir_skipping`].
    pub fn open_skipping(source: &str, limit: Option<usize>) -> Result<(Self, Skipped), DataError> {
        match EmbeddedCatalog::named(source) {
            Some(which) => Ok((Self::first_of(which, limit), Skipped::default())),
            None => Self::read_dir_skipping(Path::new(source), limit),
        }
    }

    pub(crate) fn first_of(which: EmbeddedCatalog, limit: Option<usize>) -> Self {
        let mut data = Self::embedded(which);
        data.items.truncate(limit.unwrap_or(usize::MAX));
        data
    }

    /// One of the embedded catalogs.
    pub fn embedded(which: EmbeddedCatalog) -> Self {
        serde_json::from_slice(&which.json()).expect("the embedded file was written by the example `embed`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seed, generate};

    fn check(which: EmbeddedCatalog, n_products: usize) {
        let made = generate(Seed(0), n_products);
        let mut json = Vec::new();
        made.write_one(&mut json).unwrap();
        assert!(which.json() == json, "run `cargo run --release -p webshop-products --example embed`");
        assert_eq!(RawData::embedded(which), made);
    }

    #[test]
    fn the_embedded_hundred_is_what_the_generator_makes() {
        check(EmbeddedCatalog::Hundred, 100);
    }

    #[test]
    fn the_embedded_thousand_is_what_the_generator_makes() {
        check(EmbeddedCatalog::Thousand, 1_000);
    }
}
