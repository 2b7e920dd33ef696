use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use super::*;
use crate::catalog::product::ProductIdx;
use crate::catalog::source::CatalogSource;
use crate::generate::generate;
use crate::goal::GoalKind;
use crate::seed::Seed;

/// A folder with a generated catalog, and an empty one for the cache.
struct Folders {
    catalog: tempfile::TempDir,
    cache: tempfile::TempDir,
}

impl Folders {
    fn new(data: &RawData) -> Self {
        let [catalog, cache] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        data.write_dir(catalog.path()).unwrap();
        Self { catalog, cache }
    }

    fn open(&self, config: SourceConfig) -> CatalogSource {
        let source = self.catalog.path().to_str().unwrap();
        CatalogSource::open_cached(source, config, Some(self.cache.path())).unwrap()
    }

    fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(self.cache.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

/// Digests of everything in a catalog and its goals.
fn digests(opened: CatalogSource) -> (String, Option<String>, String) {
    let (catalog, goals) = opened.into_goals().unwrap();
    for (at, product) in (0..).zip(catalog.products()) {
        assert_eq!(catalog.find(product.id.as_str()), Some(ProductIdx(at)));
    }
    let products = serde_json::to_string(catalog.products()).unwrap();
    (products, catalog.source_digest().map(Into::into), goals.fingerprint().to_string())
}

#[test]
fn a_cached_catalog_equals_the_files() {
    let folders = Folders::new(&generate(Seed(3), 400));
    let mut configs = Vec::new();
    for goals in [GoalKind::Both, GoalKind::Human, GoalKind::Synthetic] {
        for limit in [None, Some(7)] {
            configs.push(SourceConfig { limit, goals, ..SourceConfig::default() });
        }
    }
    configs.push(SourceConfig { seed: Seed(1), ..SourceConfig::default() });
    for (at, config) in configs.into_iter().enumerate() {
        let source = folders.catalog.path().to_str().unwrap();
        let (products, _, goals) = digests(CatalogSource::open(source, config).unwrap());
        let first = digests(folders.open(config));
        assert_eq!((&first.0, &first.2), (&products, &goals));
        assert_eq!(folders.files().len(), at + 1, "each way of opening has its file");
        let cached = CachedCatalog::of(folders.cache.path(), folders.catalog.path(), config).unwrap();
        assert!(cached.read().is_some());
        assert!(digests(folders.open(config)) == first);
    }
}

#[test]
fn texts_that_products_share_are_shared_again() {
    let folders = Folders::new(&generate(Seed(0), 50));
    folders.open(SourceConfig::default());
    let catalog = folders.open(SourceConfig::default()).into_catalog();
    let departments = catalog.products().iter().map(|product| &product.department);
    let addresses: HashSet<_> = departments.clone().map(|text| text.as_ptr()).collect();
    let texts: HashSet<_> = departments.collect();
    assert_eq!(addresses.len(), texts.len());
}

#[test]
fn another_file_of_products_or_a_damaged_cache_is_read_anew() {
    let data = generate(Seed(0), 30);
    let folders = Folders::new(&data);
    let before = digests(folders.open(SourceConfig::default()));
    let file = folders.files().remove(0);
    let whole = fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    // The number of products follows the length of its block.
    let huge = [&whole[..8], &[0xff; 9], &[1], &whole[18..]].concat();
    for damaged in [&whole[..whole.len() / 2], &[], &flipped, &huge] {
        fs::write(&file, damaged).unwrap();
        assert!(digests(folders.open(SourceConfig::default())) == before);
        assert!(fs::read(&file).unwrap() == whole, "it was not cached again");
    }

    let mut changed = data;
    changed.items[3].name.push('!');
    fs::remove_dir_all(folders.catalog.path()).unwrap();
    changed.write_dir(folders.catalog.path()).unwrap();
    let after = digests(folders.open(SourceConfig::default()));
    assert_ne!(after.0, before.0);
    assert_ne!(after.1, before.1);
}

#[test]
fn what_cannot_be_cached_is_opened_all_the_same() {
    let mut data = generate(Seed(0), 30);
    data.items[2].pricing = "cheap".into();
    let folders = Folders::new(&data);
    let lenient = SourceConfig { skips_bad: true, ..SourceConfig::default() };
    for _ in 0..2 {
        assert_eq!(folders.open(lenient).skipped().n_records, 1, "malformed records are named each time");
    }
    assert_eq!(folders.files().len(), 0);

    let folders = Folders::new(&generate(Seed(0), 30));
    let blocked = folders.cache.path().join("file");
    fs::write(&blocked, "").unwrap();
    let source = folders.catalog.path().to_str().unwrap();
    let opened = CatalogSource::open_cached(source, SourceConfig::default(), Some(&blocked)).unwrap();
    assert_eq!(opened.into_catalog().len(), 30);
}
