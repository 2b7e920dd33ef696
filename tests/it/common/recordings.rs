//! Recordings of the original WebShop, by their names.

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;

use serde_json::Value;
use webshop_env::{Compat, NounTable, Shop, ShopConfig};
use webshop_products::{Catalog, GoalSet, RawData, open_text};

/// Says once what is not compared.
static NOTICE: Once = Once::new();

/// A folder of recordings.
pub(crate) struct Recordings {
    dir: PathBuf,
}

impl Recordings {
    /// The committed part.
    pub(crate) fn committed() -> Self {
        Self { dir: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/parity") }
    }

    /// The folder that `WEBSHOP_GOLDEN` names, if it does.
    pub(crate) fn whole() -> Option<Self> {
        let Some(dir) = std::env::var_os("WEBSHOP_GOLDEN").map(PathBuf::from) else {
            NOTICE.call_once(|| {
                let notice =
                    "WEBSHOP_GOLDEN is not set: only the committed part of the recordings is compared";
                // Not by `eprintln!`, which a passing test swallows.
                writeln!(io::stderr(), "{notice}").expect("a standard error");
            });
            return None;
        };
        assert!(dir.is_dir(), "WEBSHOP_GOLDEN names `{}`, which is no folder", dir.display());
        Some(Self { dir })
    }

    /// The names of the recordings that begin so, as [`Recordings::named`] has them; there is at least one.
    pub(crate) fn set(&self, stem: &str) -> Vec<String> {
        let names = self.named(stem);
        assert!(!names.is_empty(), "`{}` holds no recording `{stem}…`", self.dir.display());
        names
    }

    /// The names of the recordings that begin so, without `.jsonl.gz` or `.json`, sorted.
    fn named(&self, stem: &str) -> Vec<String> {
        let entries = fs::read_dir(&self.dir).expect("a folder of recordings");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
            .filter(|name| name.starts_with(stem))
            .map(|name| name.split('.').next().unwrap_or_default().to_owned())
            .collect();
        names.sort_unstable();
        names
    }

    /// The records of `name.jsonl.gz`.
    pub(crate) fn records(&self, name: &str) -> Vec<Value> {
        let records: Vec<Value> = self
            .lines(&format!("{name}.jsonl.gz"))
            .map(|line| serde_json::from_str(&line).expect("JSON"))
            .collect();
        assert!(!records.is_empty(), "{name} holds no records");
        records
    }

    /// What `name.json` holds, if it is there.
    pub(crate) fn whole_file(&self, name: &str) -> Option<Value> {
        let text = fs::read_to_string(self.dir.join(format!("{name}.json"))).ok()?;
        Some(serde_json::from_str(&text).expect("JSON"))
    }

    /// The lines of a file, which must be there.
    pub(crate) fn lines(&self, file: &str) -> impl Iterator<Item = String> {
        let text = open_text(&self.dir.join(file)).expect("a recording");
        text.lines().map(|line| line.expect("text"))
    }

    /// The catalog called so. In the whole recording its files bear its name; those committed do not.
    pub(crate) fn catalog(&self, name: &str) -> RawData {
        let named = self.named(&format!("{name}_items"));
        if named.is_empty() {
            return RawData::read_dir(&self.dir, None).expect("a sound catalog");
        }
        let plain = tempfile::tempdir().expect("a temporary folder");
        for file in named {
            let unnamed = file.strip_prefix(&format!("{name}_")).expect("found by this prefix");
            let (from, to) = (format!("{file}.json.gz"), format!("{unnamed}.json.gz"));
            fs::copy(self.dir.join(from), plain.path().join(to)).expect("a copy");
        }
        RawData::read_dir(plain.path(), None).expect("a sound catalog")
    }

    /// The original's shop over a recorded catalog, its nouns from the recorded table.
    pub(crate) fn shop(&self, name: &str, catalog: Catalog, goals: GoalSet, shows_attributes: bool) -> Shop {
        let nouns = self.records(&format!("title_nouns_{name}")).into_iter().map(|record| {
            let nouns = texts(&record["nouns"]).into_iter().map(str::to_owned);
            (text(&record["name"]).to_owned(), nouns.collect())
        });
        let nouns = NounTable::new(nouns.collect());
        let config =
            ShopConfig { compat: Compat::Original, shows_attributes, nouns, ..ShopConfig::default() };
        Shop::with_config(catalog, goals, config).expect("the shop opens")
    }
}

/// A recorded text.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// A recorded list of texts.
pub(crate) fn texts(value: &Value) -> Vec<&str> {
    list(value).iter().map(text).collect()
}

/// A recorded list.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

/// A recorded number.
pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}
