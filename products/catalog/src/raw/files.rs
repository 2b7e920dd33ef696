//! Reads and writes the three files.
//!
//! The JSON of a file is never held completely, and records beyond a limit take no memory.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::thread;

use indexmap::IndexMap;
use sha2::{Digest, Sha256};

use super::record::{parse_item, parse_record};
use super::records::read_records;
use super::skipped::BadRecords;
use super::writing::{DirWriter, RecordWriter};
use super::{HUMAN, INSTRUCTIONS, ITEMS, RawData, RawHumanInstruction, RawInstruction, RawItem, io_error};
use crate::error::{DataError, FieldProblem};
use crate::fields::Object;

/// Marks the files with the original's first thousand products.
const THOUSAND: &str = "_1000";

impl RawData {
    /// Reads the three files in `dir`, uncompressed or gzipped: `items_shuffle*.json`,
    /// `items_ins_v2*.json`, `items_human_ins*.json`.
    ///
    /// With a `limit`, only the first `limit` product records are kept (before any is skipped, as
    /// in the original) and only their instructions. If a folder holds both the original's full
    /// file and its `_1000` one, a limit of at most 1,000 reads the short one.
    ///
    /// # Errors
    /// [`DataError::MissingFile`], [`DataError::Json`], [`DataError::Record`], and [`DataError::Io`] of files that cannot be
    /// read.
    pub fn read_dir(dir: &Path, limit: Option<usize>) -> Result<Self, DataError> {
        let mut data = Self::default();
        let mut known = HashSet::new();
        read_files(dir, limit, &mut BadRecords::Refused, |record| {
            match record {
                RawRecord::Malformed(asin, problem) if !known.contains(&asin) => return Err(problem),
                RawRecord::Item(ref item) => {
                    known.insert(item.asin.clone());
                }
                _ => {}
            }
            data.add(record);
            Ok(())
        })?;
        if limit.is_some() {
            data.drop_instructions_without_product();
        }
        Ok(data)
    }

    /// Writes `items_shuffle.json`, `items_ins_v2.json` and `items_human_ins.json` into `dir`, one record a
    /// line, and creates `dir` if necessary. Existing files are an error. The names of incomplete
    /// files begin with [`PARTIAL`](crate::atomic::PARTIAL).
    ///
    /// # Errors
    /// [`DataError::Exists`] and [`DataError::Io`].
    pub fn write_dir(&self, dir: &Path) -> Result<(), DataError> {
        let mut writer = DirWriter::create(dir)?;
        self.items.iter().try_for_each(|item| writer.item(item))?;
        self.instructions.iter().try_for_each(|(asin, entry)| writer.instruction(asin, entry))?;
        self.human.iter().try_for_each(|(asin, entries)| writer.human(asin, entries))?;
        writer.finish()
    }

    /// Writes all three parts as one JSON object, one record a line: the form of the embedded
    /// catalogs.
    pub fn write_one(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"{\"items\":")?;
        let mut items = RecordWriter::list(&mut *out)?;
        self.items.iter().try_for_each(|item| items.add(None, item))?;
        items.finish()?.write_all(b",\"instructions\":")?;
        let mut instructions = RecordWriter::map(&mut *out)?;
        self.instructions.iter().try_for_each(|(asin, entry)| instructions.add(Some(asin), entry))?;
        instructions.finish()?.write_all(b",\"human\":")?;
        let mut human = RecordWriter::map(&mut *out)?;
        self.human.iter().try_for_each(|(asin, entries)| human.add(Some(asin), entries))?;
        human.finish()?.write_all(b"}\n")
    }

    /// Appends a record; a malformed one is left out.
    pub(crate) fn add(&mut self, record: RawRecord) {
        match record {
            RawRecord::Item(item) => self.items.push(item),
            RawRecord::Malformed(..) => {}
            RawRecord::Instruction(asin, entry) => {
                self.instructions.insert(asin, entry);
            }
            RawRecord::Human(asin, entries) => {
                self.human.insert(asin, entries);
            }
        }
    }

    pub(crate) fn drop_instructions_without_product(&mut self) {
        let known: IndexMap<&str, ()> = self.items.iter().map(|item| (item.asin.as_str(), ())).collect();
        self.instructions.retain(|asin, _| known.contains_key(asin.as_str()));
        self.human.retain(|asin, _| known.contains_key(asin.as_str()));
    }
}

/// One record of one of the three files.
pub(crate) enum RawRecord {
    Item(RawItem),
    /// A malformed product with its ASIN. The original skips it if the ASIN is a repeated one.
    Malformed(String, FieldProblem),
    /// The synthetic instruction for an ASIN.
    Instruction(String, RawInstruction),
    /// The human instructions for an ASIN.
    Human(String, Vec<RawHumanInstruction>),
}

/// Passes the records in `dir` to `sink`: at most `limit` products, then the synthetic instructions, then the
/// human ones.
pub(crate) fn read_files(
    dir: &Path,
    limit: Option<usize>,
    bad: &mut BadRecords,
    mut sink: impl FnMut(RawRecord) -> Result<(), FieldProblem>,
) -> Result<(), DataError> {
    let [items, instructions, human] = find_files(dir, limit)?;
    read_records(&items, limit, bad, parse_item, |asin, content| {
        sink(match content {
            Ok(item) => RawRecord::Item(item),
            Err(problem) => RawRecord::Malformed(asin.to_owned(), problem),
        })
    })?;
    read_records(&instructions, None, bad, parse_record, |asin, content| {
        let Object(entry) = content?;
        sink(RawRecord::Instruction(asin.to_owned(), entry))
    })?;
    read_records(&human, None, bad, parse_record, |asin, content: Result<Vec<Object<_>>, _>| {
        let entries = content?.into_iter().map(|Object(entry)| entry);
        sink(RawRecord::Human(asin.to_owned(), entries.collect()))
    })
}

/// The SHA-256 of each of the three files that [`read_files`] reads, as they are on the disk.
pub(crate) fn digest_files(dir: &Path, limit: Option<usize>) -> Result<[[u8; 32]; 3], DataError> {
    let [items, instructions, human] = find_files(dir, limit)?;
    thread::scope(|scope| {
        let rest = scope.spawn(|| Ok((digest_file(&instructions)?, digest_file(&human)?)));
        let items = digest_file(&items)?;
        let (instructions, human) = rest.join().expect("hashing does not panic")?;
        Ok([items, instructions, human])
    })
}

fn digest_file(path: &Path) -> Result<[u8; 32], DataError> {
    let digest = || {
        let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
        let mut hasher = Sha256::new();
        loop {
            let part = file.fill_buf()?;
            if part.is_empty() {
                return Ok(hasher.finalize().into());
            }
            hasher.update(part);
            let n_bytes = part.len();
            file.consume(n_bytes);
        }
    };
    digest().map_err(io_error("read", path))
}

/// The three files in `dir` for a catalog of at most `limit` products.
fn find_files(dir: &Path, limit: Option<usize>) -> Result<[PathBuf; 3], DataError> {
    let short = limit.is_some_and(|limit| limit <= 1_000);
    let [items, instructions, human] = [ITEMS, INSTRUCTIONS, HUMAN].map(|stem| find(dir, stem, short));
    Ok([items?, instructions?, human?])
}

/// The file in `dir` whose name begins with `stem`.
fn find(dir: &Path, stem: &'static str, short: bool) -> Result<PathBuf, DataError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(io_error("read", dir))? {
        let name = entry.map_err(io_error("read", dir))?.file_name();
        let name = name.to_string_lossy().into_owned();
        if name.starts_with(stem) && (name.ends_with(".json") || name.ends_with(".json.gz")) {
            names.push(name);
        }
    }
    // The name breaks ties, because a folder lists its files in no particular order.
    names.sort_by_key(|name| (name.contains(THOUSAND) != short, name.clone()));
    let name = names.first().ok_or(DataError::MissingFile { dir: dir.into(), stem })?;
    Ok(dir.join(name))
}

#[cfg(test)]
mod tests;
