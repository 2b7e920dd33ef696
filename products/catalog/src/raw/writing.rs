//! Writing the original's files: JSON with one record a line.
//!
//! [`RecordWriter`] is one list or object in the making, [`DirWriter`] a folder of the three. Records are written as they
//! come, so that a catalog of any size can be.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{HUMAN, INSTRUCTIONS, ITEMS, RawHumanInstruction, RawInstruction, RawItem, io_error};
use crate::error::DataError;

/// The three files of a folder, each under its name with the ending `.partial` until all are whole.
pub(crate) struct DirWriter {
    items: RecordFile,
    instructions: RecordFile,
    human: RecordFile,
}

impl DirWriter {
    /// Begins the files in `dir`, which is made if need be. Refuses to replace any.
    pub fn create(dir: &Path) -> Result<Self, DataError> {
        fs::create_dir_all(dir).map_err(io_error("create", dir))?;
        let [items, instructions, human] =
            [ITEMS, INSTRUCTIONS, HUMAN].map(|stem| dir.join(format!("{stem}.json")));
        if let Some(path) = [&items, &instructions, &human].into_iter().find(|path| path.exists()) {
            return Err(DataError::Exists { path: path.clone() });
        }
        Ok(Self {
            items: RecordFile::create(items, RecordWriter::list)?,
            instructions: RecordFile::create(instructions, RecordWriter::map)?,
            human: RecordFile::create(human, RecordWriter::map)?,
        })
    }

    /// Writes the next product.
    pub fn item(&mut self, item: &RawItem) -> Result<(), DataError> {
        self.items.add(None, item)
    }

    /// Writes the next synthetic instruction.
    pub fn instruction(&mut self, asin: &str, entry: &RawInstruction) -> Result<(), DataError> {
        self.instructions.add(Some(asin), entry)
    }

    /// Writes what people say of the next product.
    pub fn human(&mut self, asin: &str, entries: &[RawHumanInstruction]) -> Result<(), DataError> {
        self.human.add(Some(asin), &entries)
    }

    /// Ends the files and gives them their names.
    pub fn finish(self) -> Result<(), DataError> {
        [self.items, self.instructions, self.human].into_iter().try_for_each(RecordFile::finish)
    }
}

struct RecordFile {
    path: PathBuf,
    partial: PathBuf,
    records: RecordWriter<BufWriter<File>>,
}

impl RecordFile {
    fn create(
        path: PathBuf,
        begin: impl FnOnce(BufWriter<File>) -> io::Result<RecordWriter<BufWriter<File>>>,
    ) -> Result<Self, DataError> {
        let partial = path.with_extension("json.partial");
        let file = File::create(&partial).map_err(io_error("create", &partial))?;
        let records = begin(BufWriter::new(file)).map_err(io_error("write", &partial))?;
        Ok(Self { path, partial, records })
    }

    fn add(&mut self, key: Option<&str>, record: &impl Serialize) -> Result<(), DataError> {
        self.records.add(key, record).map_err(io_error("write", &self.partial))
    }

    fn finish(self) -> Result<(), DataError> {
        let Self { path, partial, records } = self;
        records.finish().and_then(|mut out| out.flush()).map_err(io_error("write", &partial))?;
        fs::rename(&partial, &path).map_err(io_error("create", &path))
    }
}

/// A JSON list, or an object, that is being written.
pub(super) struct RecordWriter<W> {
    out: W,
    end: &'static [u8],
    is_empty: bool,
}

impl<W: Write> RecordWriter<W> {
    /// Begins a list, whose records have no keys.
    pub fn list(out: W) -> io::Result<Self> {
        Self::begin(out, b"[", b"\n]\n")
    }

    /// Begins an object, whose records all have keys.
    pub fn map(out: W) -> io::Result<Self> {
        Self::begin(out, b"{", b"\n}\n")
    }

    fn begin(mut out: W, start: &[u8], end: &'static [u8]) -> io::Result<Self> {
        out.write_all(start)?;
        Ok(Self { out, end, is_empty: true })
    }

    pub fn add(&mut self, key: Option<&str>, record: &impl Serialize) -> io::Result<()> {
        self.out.write_all(if self.is_empty { b"\n" } else { b",\n" })?;
        self.is_empty = false;
        if let Some(key) = key {
            serde_json::to_writer(&mut self.out, key)?;
            self.out.write_all(b":")?;
        }
        Ok(serde_json::to_writer(&mut self.out, record)?)
    }

    /// Ends the list or the object.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(self.end)?;
        Ok(self.out)
    }
}
