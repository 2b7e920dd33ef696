//! Reads the records of one file.
//!
//! One thread splits the file and parses the records, the calling thread uses them, since both take about as
//! long. The records arrive in the order of the file.

use std::fmt;
use std::io::{self, BufRead};
use std::num::NonZero;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::io_error;
use super::open::open_text;
use super::record::Record;
use super::skipped::BadRecords;
use super::splitter::{Broken, Splitter};
use crate::error::{DataError, FieldProblem};

/// Records passed from one thread to the other at a time, and how many such batches may wait.
const BATCH: usize = 256;
const MOST_WAITING: usize = 4;

/// Passes the records of a JSON list or object to `sink`, each with its ASIN, at most `limit`. `parse` makes a
/// record of its key, if it has one, and its JSON. What `sink` refuses is a bad record, and if bad records are
/// skipped, so is an element that is not JSON, such as one with Python's `NaN`.
pub(super) fn read_records<T: Send>(
    path: &Path,
    limit: Option<usize>,
    bad: &mut BadRecords,
    parse: impl Fn(Option<String>, &[u8]) -> serde_json::Result<Record<T>> + Send,
    mut sink: impl FnMut(&str, Result<T, FieldProblem>) -> Result<(), FieldProblem>,
) -> Result<(), DataError> {
    let file = open_text(path)?;
    let are_skipped = bad.are_skipped();
    let (sender, receiver) = sync_channel(MOST_WAITING);
    let parsed = thread::scope(|scope| {
        let parsing = scope.spawn(|| parse_all(file, limit, are_skipped, parse, sender));
        // An error drops the receiver, which ends the other thread.
        for (number, Record { asin, content }) in (1..).zip(receiver.into_iter().flatten()) {
            sink(&asin, content).or_else(|problem| {
                let file = path.display().to_string();
                bad.meet(DataError::Record { file, record: NonZero::new(number), asin, problem })
            })?;
        }
        Ok(parsing.join().expect("parsing does not panic"))
    })?;
    parsed.map_err(|broken| match broken {
        Broken::Io(source) => io_error("read", path)(source),
        Broken::Json => syntax_error(path),
    })
}

/// Sends the records of a file in batches, until all are sent or the receiver is gone. If bad records
/// `are_skipped`, an element that is not JSON is one of them.
fn parse_all<T>(
    file: impl BufRead,
    limit: Option<usize>,
    are_skipped: bool,
    parse: impl Fn(Option<String>, &[u8]) -> serde_json::Result<Record<T>>,
    sender: SyncSender<Vec<Record<T>>>,
) -> Result<(), Broken> {
    let mut elements = Splitter::new(file)?;
    let mut n_left = limit.unwrap_or(usize::MAX);
    let mut fill = |batch: &mut Vec<Record<T>>| {
        while batch.len() < BATCH {
            let Some((key, json)) = elements.next()? else { return Ok(false) };
            if n_left > 0 {
                n_left -= 1;
                let asin = key.clone();
                match parse(key, json) {
                    Err(error) if are_skipped => batch.push(Record::not_json(asin, &error)),
                    record => batch.push(record?),
                }
            } else if !are_skipped {
                serde_json::from_slice::<IgnoredAny>(json)?;
            }
        }
        Ok(true)
    };
    loop {
        let mut batch = Vec::with_capacity(BATCH);
        let outcome: Result<bool, Broken> = fill(&mut batch);
        if sender.send(batch).is_err() || !outcome? {
            return Ok(());
        }
    }
}

/// The error of the parser for a file that is not JSON. It knows line and column in the file, and not only in
/// a record, because it parses the file as a whole.
fn syntax_error(path: &Path) -> DataError {
    let parse = || {
        let mut json = serde_json::Deserializer::from_reader(open_text(path)?);
        let outcome = AllRecords::deserialize(&mut json).and_then(|AllRecords| json.end());
        Ok(match outcome {
            Err(source) if source.is_io() => io_error("read", path)(source.into()),
            Err(source) => DataError::Json { path: path.into(), source },
            Ok(()) => io_error("read", path)(io::Error::other("it changed while it was read")),
        })
    };
    parse().unwrap_or_else(|error| error)
}

/// The records of a file, parsed and dropped.
struct AllRecords;

impl<'de> Deserialize<'de> for AllRecords {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for AllRecords {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or an object of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Value>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<String, Value>()?.is_some() {}
        Ok(self)
    }
}
