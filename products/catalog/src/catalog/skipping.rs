//! Reads a folder without its malformed records.

use std::path::Path;

use crate::catalog::CatalogMaker;
use crate::error::DataError;
use crate::goal::make::check_combinations;
use crate::raw::{BadRecords, RawData, RawRecord, Skipped, read_files};
use crate::seed::Seed;

impl RawData {
    /// Like [`RawData::read_dir`], but drops malformed records: those that cannot be read and those of which
    /// no [`crate::Catalog`] or [`crate::GoalSet`] can be made. A limit counts them. Instructions for a
    /// dropped product make no goals.
    ///
    /// # Errors
    /// [`DataError::MissingFile`], [`DataError::Json`] of a file that is no list or object, and [`DataError::Io`] of files
    /// that cannot be read.
    pub fn read_dir_skipping(dir: &Path, limit: Option<usize>) -> Result<(Self, Skipped), DataError> {
        let mut bad = BadRecords::Skipped(Skipped::default());
        let mut data = Self::default();
        // The products tell which records can be used.
        let mut maker = CatalogMaker::default();
        read_files(dir, limit, &mut bad, |record| {
            match record {
                RawRecord::Malformed(asin, problem) if maker.catalog().find(&asin).is_none() => {
                    return Err(problem);
                }
                RawRecord::Item(ref item) => {
                    maker.add(item, |pricing, position| pricing.charged_by_seed(Seed(0), position.0))?;
                }
                RawRecord::Instruction(ref asin, ref entry) => {
                    let makes_any = entry.synthetic()?.is_some();
                    if let Some(product) = maker.catalog().find(asin).filter(|_| makes_any) {
                        check_combinations(maker.catalog().get(product))?;
                    }
                }
                _ => {}
            }
            data.add(record);
            Ok(())
        })?;
        if limit.is_some() {
            data.drop_instructions_without_product();
        }
        Ok((data, bad.into_skipped()))
    }
}
