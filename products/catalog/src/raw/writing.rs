//! Writes the original's files: JSON with one record a line.
//!
//! [`RecordWriter`] writes one list or object, [`DirWriter`] a folder with the three files. Records are
//! written one by one, so a catalog of any size can be written.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{HUMAN, INSTRUCTIONS, ITEMS, RawHumanInstruction, RawInstruction, RawItem, io_error};
use crate::atomic::PARTIAL;
use crate::error::DataError;

/// The three files of a folder, each with the prefix [`PARTIAL`] until all are complete.
pub(crate) struct DirWriter {
    items: RecordFile,
    instructions: RecordFile,
    human: RecordFile,
}

impl DirWriter {
    /// Creates the files in `dir`, and `dir` if necessary. Existing files are an error.
    pub(crate) fn create(dir: &Path) -> Result<Self, DataError> {
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
    pub(crate) fn item(&mut self, item: &RawItem) -> Result<(), DataError> {
        self.items.add(None, item)
    }

    /// Writes the next synthetic instruction.
    pub(crate) fn instruction(&mut self, asin: &str, entry: &RawInstruction) -> Result<(), DataError> {
        self.instructions.add(Some(asin), entry)
    }

    /// Writes the human instructions for the next product.
    pub(crate) fn human(&mut self, asin: &str, entries: &[RawHumanInstruction]) -> Result<(), DataError> {
        self.human.add(Some(asin), &entries)
    }

    /// Completes the files and gives them their final names.
    pub(crate) fn finish(self) -> Result<(), DataError> {
        let files = [self.items, self.instructions, self.human];
        let mut complete = Vec::with_capacity(files.len());
        for RecordFile { path, partial, records } in files {
            let sync = |mut out: BufWriter<File>| out.flush().and_then(|()| out.get_ref().sync_all());
            records.finish().and_then(sync).map_err(io_error("write", &partial.0))?;
            complete.push((partial, path));
        }
        complete
            .iter()
            .try_for_each(|(partial, path)| fs::rename(&partial.0, path).map_err(io_error("create", path)))
    }
}

/// An incomplete file, which is removed unless it was renamed.
struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        // After a renaming there is none; otherwise the first error is the one to return.
        let _ = fs::remove_file(&self.0);
    }
}

struct RecordFile {
    path: PathBuf,
    partial: Partial,
    records: RecordWriter<BufWriter<File>>,
}

impl RecordFile {
    fn create(
        path: PathBuf,
        begin: impl FnOnce(BufWriter<File>) -> io::Result<RecordWriter<BufWriter<File>>>,
    ) -> Result<Self, DataError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let partial = Partial(path.with_file_name(format!("{PARTIAL}{name}")));
        let file = File::create(&partial.0).map_err(io_error("create", &partial.0))?;
        let records = begin(BufWriter::new(file)).map_err(io_error("write", &partial.0))?;
        Ok(Self { path, partial, records })
    }

    fn add(&mut self, key: Option<&str>, record: &impl Serialize) -> Result<(), DataError> {
        self.records.add(key, record).map_err(io_error("write", &self.partial.0))
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
    pub(crate) fn list(out: W) -> io::Result<Self> {
        Self::begin(out, b"[", b"\n]\n")
    }

    /// Begins an object, whose records all have keys.
    pub(crate) fn map(out: W) -> io::Result<Self> {
        Self::begin(out, b"{", b"\n}\n")
    }

    fn begin(mut out: W, start: &[u8], end: &'static [u8]) -> io::Result<Self> {
        out.write_all(start)?;
        Ok(Self { out, end, is_empty: true })
    }

    pub(crate) fn add(&mut self, key: Option<&str>, record: &impl Serialize) -> io::Result<()> {
        self.out.write_all(if self.is_empty { b"\n" } else { b",\n" })?;
        self.is_empty = false;
        if let Some(key) = key {
            serde_json::to_writer(&mut self.out, key)?;
            self.out.write_all(b":")?;
        }
        Ok(serde_json::to_writer(&mut self.out, record)?)
    }

    /// Ends the list or the object.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(self.end)?;
        Ok(self.out)
    }
}
