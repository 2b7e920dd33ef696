//! Opens catalogs of any size.
//!
//! [`CatalogSource::open`] reads record by record: each becomes a product, or part of one, as soon as it is
//! read, and only the instructions that [`CatalogSource::into_goals`] needs are kept. The result equals that
//! of [`RawData`] through [`Catalog::from_raw`] and [`GoalSet::from_raw`], which for a million products take
//! several times the memory of the products.

use std::path::Path;

use crate::catalog::cached::CachedCatalog;
use crate::catalog::embedded::EmbeddedCatalog;
use crate::catalog::source_config::SourceConfig;
use crate::catalog::{Catalog, CatalogMaker};
use crate::error::{DataError, FieldProblem};
use crate::goal::GoalKind;
use crate::goal::make::{check_combinations, seeded_goals};
use crate::goal::set::GoalSet;
use crate::raw::{BadRecords, RawData, RawRecord, Skipped, read_files};

/// An open catalog with the instructions of its goals.
#[derive(Debug)]
pub struct CatalogSource {
    catalog: Catalog,
    /// Without products.
    instructions: RawData,
    skipped: Skipped,
    config: SourceConfig,
}

impl CatalogSource {
    /// Opens the catalog that `source` names: `100` and `1000` are embedded, anything else is a folder (see
    /// [`RawData::read_dir`]).
    pub fn open(source: &str, config: SourceConfig) -> Result<Self, DataError> {
        let mut bad = match config.skips_bad {
            true => BadRecords::Skipped(Skipped::default()),
            false => BadRecords::Refused,
        };
        let mut reader = Reader { config, maker: CatalogMaker::default(), instructions: RawData::default() };
        match EmbeddedCatalog::named(source) {
            Some(which) => reader.take_all(RawData::first_of(which, config.limit)),
            None => read_files(Path::new(source), config.limit, &mut bad, |record| reader.take(record))?,
        }
        let Reader { maker, instructions, .. } = reader;
        Ok(Self { catalog: maker.finish(), instructions, skipped: bad.into_skipped(), config })
    }

    /// Like [`CatalogSource::open`], but a folder is read from the cache folder `cache`, if there is one and the catalog has been
    /// opened in the same way before, and else cached there, unless malformed records were dropped. Results do not depend on it.
    pub fn open_cached(source: &str, config: SourceConfig, cache: Option<&Path>) -> Result<Self, DataError> {
        let (None, Some(cache)) = (EmbeddedCatalog::named(source), cache) else {
            return Self::open(source, config);
        };
        let cached = CachedCatalog::of(cache, Path::new(source), config)?;
        if let Some((catalog, instructions)) = cached.read() {
            return Ok(Self { catalog, instructions, skipped: Skipped::default(), config });
        }
        let mut opened = Self::open(source, config)?;
        if opened.skipped.n_records == 0 {
            // Without a cache the next run is slower, and that is all.
            if let Err(error) = cached.write(&opened.catalog, &opened.instructions) {
                tracing::warn!("the catalog is not cached in `{}`: {error}", cached.folder().display());
            }
        }
        opened.catalog = cached.named(opened.catalog);
        Ok(opened)
    }

    /// The malformed records that were dropped.
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// The catalog without goals.
    pub fn into_catalog(self) -> Catalog {
        self.catalog
    }

    /// The catalog and its goals.
    ///
    /// # Errors
    /// [`DataError::Record`].
    pub fn into_goals(self) -> Result<(Catalog, GoalSet), DataError> {
        let Self { catalog, instructions, config, .. } = self;
        let goals = seeded_goals(&instructions, &catalog, config.goals, config.seed)?;
        // Splitting the goals takes memory too.
        drop(instructions);
        let goals = GoalSet::numbered(&catalog, goals);
        Ok((catalog, goals))
    }
}

/// Takes records in the order of the files.
struct Reader {
    config: SourceConfig,
    maker: CatalogMaker,
    instructions: RawData,
}

impl Reader {
    fn take_all(&mut self, data: RawData) {
        let items = data.items.into_iter().map(RawRecord::Item);
        let instructions =
            data.instructions.into_iter().map(|(asin, entry)| RawRecord::Instruction(asin, entry));
        let human = data.human.into_iter().map(|(asin, entries)| RawRecord::Human(asin, entries));
        for record in items.chain(instructions).chain(human) {
            self.take(record).expect("the embedded catalogs are sound");
        }
    }

    fn take(&mut self, record: RawRecord) -> Result<(), FieldProblem> {
        let Self { config, maker, instructions } = self;
        match record {
            RawRecord::Item(item) => {
                maker.add(&item, |pricing, position| pricing.charged_by_seed(config.seed, position.0))?;
            }
            RawRecord::Malformed(asin, problem) => {
                if maker.catalog().find(&asin).is_none() {
                    return Err(problem);
                }
            }
            RawRecord::Instruction(asin, mut entry) => {
                let makes_goals = config.goals != GoalKind::Human;
                let product = maker.catalog().find(&asin);
                let is_sold = product.is_some();
                if config.skips_bad || (makes_goals && is_sold) {
                    let makes_any = entry.synthetic()?.is_some();
                    if let Some(product) = product.filter(|_| makes_goals && makes_any) {
                        check_combinations(maker.catalog().get(product))?;
                    }
                }
                maker.describe(&asin, &entry);
                if makes_goals && is_sold {
                    entry.attributes = None;
                    instructions.instructions.insert(asin, entry);
                }
            }
            RawRecord::Human(asin, entries) => {
                if config.goals != GoalKind::Synthetic && maker.catalog().find(&asin).is_some() {
                    instructions.human.insert(asin, entries);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::generate;
    use crate::raw::{RawItem, RawOption};
    use crate::seed::Seed;

    #[test]
    fn a_stream_of_records_makes_what_the_whole_data_makes() {
        let data = generate(Seed(3), 40);
        let dir = tempfile::tempdir().unwrap();
        data.write_dir(dir.path()).unwrap();
        let source = dir.path().to_str().unwrap();
        for goals in [GoalKind::Both, GoalKind::Human, GoalKind::Synthetic] {
            for limit in [None, Some(7)] {
                let config = SourceConfig { limit, goals, seed: Seed(1), ..SourceConfig::default() };
                let (catalog, streamed) = CatalogSource::open(source, config).unwrap().into_goals().unwrap();
                let part = RawData { items: data.items[..limit.unwrap_or(40)].to_vec(), ..data.clone() };
                let whole = Catalog::from_raw(&part, Seed(1)).unwrap();
                assert_eq!(catalog.products(), whole.products());
                let whole = GoalSet::from_raw(&part, &whole, goals, Seed(1)).unwrap();
                assert_eq!(streamed.fingerprint(), whole.fingerprint(), "{goals:?} {limit:?}");
            }
        }
    }

    #[test]
    fn what_is_skipped_is_that_of_the_whole_data() {
        let mut data = generate(Seed(0), 20);
        data.items[2].pricing = "cheap".into();
        // Some products have no synthetic instruction, which needs no attributes.
        let mut instructions = data.instructions.values_mut();
        let instructed = instructions.find(|entry| entry.instruction.is_some()).unwrap();
        instructed.instruction_attributes = None;
        let repeated = RawItem { pricing: "dear".into(), ..data.items[4].clone() };
        data.items.push(repeated);
        let value = |at: u32| RawOption { value: at.to_string(), image: None };
        let many = |name: u32| (name.to_string(), Some((0..10).map(value).collect()));
        let with_options = &mut data.items[5];
        with_options.customization_options = (0..7).map(many).collect();
        let sentence = Some("i need it".to_owned());
        let attributes = Some(vec!["soft".to_owned()]);
        let entry = data.instructions.entry(with_options.asin.clone()).or_default();
        (entry.instruction, entry.instruction_attributes) = (sentence, attributes);
        let dir = tempfile::tempdir().unwrap();
        data.write_dir(dir.path()).unwrap();
        let items = dir.path().join("items_shuffle.json");
        let text = fs::read_to_string(&items).unwrap();
        // Python writes `NaN`, and a list of a product's fields in their order is no product.
        let text = text.replacen("[\n", "[\n{\"asin\": \"B0\", \"rating\": NaN},\n[\"B1\", \"lamp\"],\n", 1);
        fs::write(&items, text).unwrap();
        let source = dir.path().to_str().unwrap();
        let strict = SourceConfig::default();
        let message = CatalogSource::open(source, strict).unwrap_err().to_string();
        assert!(message.contains("is not valid JSON: expected value at line 2 column"), "{message}");
        let lenient = CatalogSource::open(source, SourceConfig { skips_bad: true, ..strict }).unwrap();
        let (whole, skipped) = RawData::read_dir_skipping(dir.path(), None).unwrap();
        assert_eq!(lenient.skipped().to_string(), skipped.to_string());
        assert_eq!(lenient.skipped().n_records, 5, "{skipped}");
        let catalog = Catalog::from_raw(&whole, strict.seed).unwrap();
        let goals = GoalSet::from_raw(&whole, &catalog, strict.goals, strict.seed).unwrap();
        assert_eq!(lenient.into_goals().unwrap().1.fingerprint(), goals.fingerprint());
    }
}
