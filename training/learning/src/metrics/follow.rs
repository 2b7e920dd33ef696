//! Reads the records and timings of a run in progress.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::{Result, TrainingError};
use crate::metrics::writer::{METRICS_JSONL, TIMINGS_JSONL};
use crate::metrics::{Record, Timing};

/// Reads `metrics.jsonl` and `timings.jsonl` of a run, each line once.
#[derive(Debug)]
pub struct Follower {
    split: String,
    records: Lines<Record>,
    timings: Lines<Timing>,
}

impl Follower {
    /// Follows the run in `folder`, which is evaluated on `split`. Reads nothing yet.
    pub fn new(folder: &Path, split: &str) -> Self {
        let (records, timings) =
            (Lines::new(folder.join(METRICS_JSONL)), Lines::new(folder.join(TIMINGS_JSONL)));
        Self { split: split.into(), records, timings }
    }

    /// Reads the lines added since the last call, or all of a file again if it became shorter. A run
    /// without files has no records yet; an incomplete line is read when it is complete. Returns whether anything
    /// changed.
    pub fn update(&mut self) -> Result<bool> {
        let has_records = self.records.update(|line| Record::parse(line, &self.split))?;
        let has_timings = self.timings.update(|line| serde_json::from_str(line))?;
        Ok(has_records || has_timings)
    }

    /// All records read so far, in the order of the file.
    pub fn records(&self) -> &[Record] {
        &self.records.parsed
    }

    /// All timings read so far, in the order of the file. While a step is being written, it has a record and no timing.
    pub fn timings(&self) -> &[Timing] {
        &self.timings.parsed
    }
}

/// The lines of a file that grows.
#[derive(Debug)]
struct Lines<T> {
    path: PathBuf,
    /// Number of bytes of whole lines read so far.
    offset: u64,
    parsed: Vec<T>,
}

impl<T> Lines<T> {
    fn new(path: PathBuf) -> Self {
        Self { path, offset: 0, parsed: Vec::new() }
    }

    /// See [`Follower::update`].
    fn update(&mut self, parse: impl Fn(&str) -> serde_json::Result<T>) -> Result<bool> {
        let failed = |e| TrainingError::io("read", &self.path, e);
        let mut file = match File::open(&self.path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
            opened => opened.map_err(failed)?,
        };
        let is_shorter = file.metadata().map_err(failed)?.len() < self.offset;
        if is_shorter {
            self.offset = 0;
            self.parsed.clear();
        }
        let mut text = String::new();
        file.seek(SeekFrom::Start(self.offset))
            .and_then(|_| file.read_to_string(&mut text))
            .map_err(failed)?;
        let before = self.offset;
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            self.parsed.push(parse(line).map_err(|e| TrainingError::bad_file(&self.path, e))?);
            self.offset += line.len() as u64;
        }
        Ok(is_shorter || self.offset > before)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::metrics::Metric;

    #[test]
    fn added_lines_are_read_and_a_shortened_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut follower = Follower::new(folder.path(), "test");
        let losses = |follower: &mut Follower| -> Vec<f64> {
            follower.update().unwrap();
            follower.records().iter().filter_map(|record| record.get(Metric::TrainLoss)).collect()
        };
        assert_eq!(losses(&mut follower), Vec::<f64>::new());
        let line = |step: u64| format!("{{\"step\":{step},\"phase\":\"learn\",\"train/loss\":{step}.5}}\n");
        let write = |text: String| fs::write(folder.path().join(METRICS_JSONL), text).unwrap();
        write(format!("{}{}", line(1), &line(2)[..9]));
        assert_eq!(losses(&mut follower), [1.5]);
        write(line(1) + &line(2) + &line(3));
        assert_eq!(losses(&mut follower), [1.5, 2.5, 3.5]);
        write(line(1) + &line(4));
        assert_eq!(losses(&mut follower), [1.5, 4.5]);
        assert!(!follower.update().unwrap(), "nothing is new");
        write(String::new());
        assert!(follower.update().unwrap() && follower.records().is_empty());
    }

    #[test]
    fn timings_are_read_beside_the_records() {
        let folder = tempfile::tempdir().unwrap();
        let mut follower = Follower::new(folder.path(), "test");
        let path = folder.path().join(TIMINGS_JSONL);
        fs::write(&path, "{\"phase\":\"learn\",\"step\":1,\"seconds\":2.5}\n{\"phase\"").unwrap();
        assert!(follower.update().unwrap());
        assert_eq!(follower.timings(), [Timing::new(crate::metrics::Phase::Learn, 1, 2.5)]);
        fs::write(&path, "no JSON, but longer than the line that was there before it\n").unwrap();
        let error = follower.update().unwrap_err().to_string();
        assert!(error.contains(TIMINGS_JSONL), "{error}");
    }
}
