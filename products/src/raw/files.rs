//! Reading and writing the three files.
//!
//! Records are read one at a time and turned into their types at once: the JSON of a file is never held whole, and a
//! limit costs no memory for what lies beyond it.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use indexmap::IndexMap;
use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::skipped::{BadRecords, Skipped};
use super::{RawData, RawHumanInstruction, RawInstruction, RawItem};
use crate::catalog::{pricing, product_id};
use crate::error::{DataError, FieldProblem};
use crate::goal::wish;

const ITEMS: &str = "items_shuffle";
const INSTRUCTIONS: &str = "items_ins_v2";
const HUMAN: &str = "items_human_ins";

/// The original ships its first thousand products as files of their own, marked so.
const THOUSAND: &str = "_1000";

impl RawData {
    /// Reads the three files in `dir`, plain or gzipped: `items_shuffle*.json`,
    /// `items_ins_v2*.json`, `items_human_ins*.json`.
    ///
    /// With a `limit`, only the first `limit` product records are kept (before any is skipped, as
    /// in the original) and only their instructions. Where a folder holds both the original's full
    /// file and its `_1000` one, a limit of at most 1,000 reads the short one.
    pub fn read_dir(dir: &Path, limit: Option<usize>) -> Result<Self, DataError> {
        Self::read(dir, limit, &mut BadRecords::Refused)
    }

    /// As [`RawData::read_dir`], but without the records that break the format: those that cannot be read, and those
    /// that no [`crate::Catalog`] or [`crate::GoalSet`] could be made of. A limit counts them. What is left out and
    /// still in a file, like the instructions for a product that was dropped, makes no goals.
    pub fn read_dir_skipping(dir: &Path, limit: Option<usize>) -> Result<(Self, Skipped), DataError> {
        let mut bad = BadRecords::Skipped(Skipped::default());
        let data = Self::read(dir, limit, &mut bad)?;
        match bad {
            BadRecords::Skipped(skipped) => Ok((data, skipped)),
            BadRecords::Refused => Ok((data, Skipped::default())),
        }
    }

    fn read(dir: &Path, limit: Option<usize>, bad: &mut BadRecords) -> Result<Self, DataError> {
        let short = limit.is_some_and(|limit| limit <= 1_000);
        let is_checked = matches!(bad, BadRecords::Skipped(_));
        let mut data = Self::default();
        read_records(&find(dir, ITEMS, short)?, limit, bad, |_, record| {
            let item = RawItem::try_from(record)?;
            if is_checked && product_id(&item)?.is_some() {
                pricing(&item)?;
            }
            data.items.push(item);
            Ok(())
        })?;
        read_records(&find(dir, INSTRUCTIONS, short)?, None, bad, |asin, record| {
            let instruction = RawInstruction::try_from(record)?;
            if is_checked {
                wish(&instruction)?;
            }
            data.instructions.insert(asin, instruction);
            Ok(())
        })?;
        read_records(&find(dir, HUMAN, short)?, None, bad, |asin, record| {
            data.human.insert(asin, human_entries(record)?);
            Ok(())
        })?;
        if limit.is_some() {
            data.drop_strangers();
        }
        Ok(data)
    }

    /// Writes `items_shuffle.json`, `items_ins_v2.json` and `items_human_ins.json` into `dir`, which
    /// is made if need be; one record a line. Refuses to replace a file. A file that could not be
    /// finished keeps the ending `.partial`.
    pub fn write_dir(&self, dir: &Path) -> Result<(), DataError> {
        fs::create_dir_all(dir).map_err(io("create", dir))?;
        let files = [ITEMS, INSTRUCTIONS, HUMAN].map(|stem| dir.join(format!("{stem}.json")));
        if let Some(path) = files.iter().find(|path| path.exists()) {
            return Err(DataError::Exists { path: path.clone() });
        }
        let [items, instructions, human] = &files;
        write_file(items, |out| write_list(out, &self.items))?;
        write_file(instructions, |out| write_map(out, &self.instructions))?;
        write_file(human, |out| write_map(out, &self.human))
    }

    /// Writes all three parts as one JSON object, one record a line: the form of the embedded
    /// catalogs.
    pub fn write_one(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"{\"items\":")?;
        write_list(out, &self.items)?;
        out.write_all(b",\"instructions\":")?;
        write_map(out, &self.instructions)?;
        out.write_all(b",\"human\":")?;
        write_map(out, &self.human)?;
        out.write_all(b"}\n")
    }

    fn drop_strangers(&mut self) {
        let known: IndexMap<&str, ()> = self.items.iter().map(|item| (item.asin.as_str(), ())).collect();
        self.instructions.retain(|asin, _| known.contains_key(asin.as_str()));
        self.human.retain(|asin, _| known.contains_key(asin.as_str()));
    }
}

/// The file in `dir` whose name begins with `stem`.
fn find(dir: &Path, stem: &'static str, short: bool) -> Result<PathBuf, DataError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(io("read", dir))? {
        let name = entry.map_err(io("read", dir))?.file_name();
        let name = name.to_string_lossy().into_owned();
        if name.starts_with(stem) && (name.ends_with(".json") || name.ends_with(".json.gz")) {
            names.push(name);
        }
    }
    // The name breaks ties, because a folder lists its files in no order of its own.
    names.sort_by_key(|name| (name.contains(THOUSAND) != short, name.clone()));
    let name = names.first().ok_or(DataError::MissingFile { dir: dir.into(), stem })?;
    Ok(dir.join(name))
}

/// Opens a text file for reading, unpacked on the way if its name ends in `.gz`.
pub fn open_text(path: &Path) -> Result<Box<dyn BufRead>, DataError> {
    let file = File::open(path).map_err(io("open", path))?;
    let gzipped = path.extension().is_some_and(|extension| extension == "gz");
    let reader: Box<dyn Read> = if gzipped { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    Ok(Box::new(BufReader::with_capacity(1 << 16, reader)))
}

fn human_entries(record: Value) -> Result<Vec<RawHumanInstruction>, FieldProblem> {
    let Value::Array(entries) = record else {
        return Err(FieldProblem::new("(record)", "should hold a list of instructions"));
    };
    let read = |(at, entry)| {
        let numbered =
            |problem: FieldProblem| FieldProblem { field: format!("{at}.{}", problem.field), ..problem };
        RawHumanInstruction::try_from(entry).map_err(numbered)
    };
    entries.into_iter().enumerate().map(read).collect()
}

/// Hands the records of a JSON list or object to `sink`, with their key (of a list, the ASIN).
fn read_records(
    path: &Path,
    limit: Option<usize>,
    bad: &mut BadRecords,
    sink: impl FnMut(String, Value) -> Result<(), FieldProblem>,
) -> Result<(), DataError> {
    let mut json = serde_json::Deserializer::from_reader(open_text(path)?);
    let mut problem = None;
    let records = Records { path, limit, sink, bad, problem: &mut problem };
    let outcome = records.deserialize(&mut json).and_then(|()| json.end());
    match (problem, outcome) {
        (Some(problem), _) => Err(problem),
        (None, Ok(())) => Ok(()),
        (None, Err(source)) if source.is_io() => {
            Err(DataError::Io { action: "read", path: path.into(), source: source.into() })
        }
        (None, Err(source)) => Err(DataError::Json { path: path.into(), source }),
    }
}

/// The visitor of [`read_records`]; a bad record that is refused ends the reading and is left in `problem`.
struct Records<'a, F> {
    path: &'a Path,
    limit: Option<usize>,
    sink: F,
    bad: &'a mut BadRecords,
    problem: &'a mut Option<DataError>,
}

impl<F: FnMut(String, Value) -> Result<(), FieldProblem>> Records<'_, F> {
    fn accept<E: serde::de::Error>(&mut self, record: usize, asin: String, value: Value) -> Result<(), E> {
        let Err(problem) = (self.sink)(asin.clone(), value) else { return Ok(()) };
        let file = self.path.display().to_string();
        let problem = DataError::Record { file, record, asin, problem };
        self.bad.meet(problem).map_err(|problem| {
            *self.problem = Some(problem);
            E::custom("a record breaks the format")
        })
    }
}

impl<'de, F> DeserializeSeed<'de> for Records<'_, F>
where
    F: FnMut(String, Value) -> Result<(), FieldProblem>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F> Visitor<'de> for Records<'_, F>
where
    F: FnMut(String, Value) -> Result<(), FieldProblem>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or an object of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let limit = self.limit.unwrap_or(usize::MAX);
        let mut n_read = 0;
        while n_read < limit {
            let Some(value) = list.next_element::<Value>()? else {
                return Ok(());
            };
            n_read += 1;
            let asin = value.get("asin").and_then(Value::as_str).unwrap_or("?").to_owned();
            self.accept(n_read, asin, value)?;
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut n_read = 0;
        while let Some((asin, value)) = map.next_entry::<String, Value>()? {
            n_read += 1;
            self.accept(n_read, asin, value)?;
        }
        Ok(())
    }
}

/// Writes through a `.partial` file, so that a file with its final name is whole.
fn write_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), DataError> {
    let partial = path.with_extension("json.partial");
    let mut out = BufWriter::new(File::create(&partial).map_err(io("create", &partial))?);
    write(&mut out).and_then(|()| out.flush()).map_err(io("write", &partial))?;
    fs::rename(&partial, path).map_err(io("create", path))
}

fn write_list<T: Serialize>(out: &mut impl Write, records: &[T]) -> io::Result<()> {
    out.write_all(b"[")?;
    for (at, record) in records.iter().enumerate() {
        out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, record)?;
    }
    out.write_all(b"\n]\n")
}

fn write_map<T: Serialize>(out: &mut impl Write, records: &IndexMap<String, T>) -> io::Result<()> {
    out.write_all(b"{")?;
    for (at, (key, record)) in records.iter().enumerate() {
        out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *out, key)?;
        out.write_all(b":")?;
        serde_json::to_writer(&mut *out, record)?;
    }
    out.write_all(b"\n}\n")
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DataError {
    let path = path.to_owned();
    move |source| DataError::Io { action, path, source }
}

#[cfg(test)]
mod tests;
