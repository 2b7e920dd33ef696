//! Reads the records of a run in progress.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::{Result, TrainingError};
use crate::metrics::Record;
use crate::metrics::writer::METRICS_JSONL;

/// Reads `metrics.jsonl` of a run, each line once.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    split: String,
    /// Number of bytes of whole lines read so far.
    offset: u64,
    records: Vec<Record>,
}

impl Follower {
    /// Follows the run in `folder`, which is evaluated on `split`. Reads nothing yet.
    pub fn new(folder: &Path, split: &str) -> Self {
        Self { path: folder.join(METRICS_JSONL), split: split.into(), offset: 0, records: Vec::new() }
    }

    /// Reads the lines added since the last call, or all of them again if the file became shorter. A run
    /// without a file has no records yet; an incomplete line is read when it is complete.
    pub fn update(&mut self) -> Result<()> {
        let failed = |e| TrainingError::io("read", &self.path, e);
        let mut file = match File::open(&self.path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(failed)?,
        };
        if file.metadata().map_err(failed)?.len() < self.offset {
            self.offset = 0;
            self.records.clear();
        }
        let mut text = String::new();
        file.seek(SeekFrom::Start(self.offset))
            .and_then(|_| file.read_to_string(&mut text))
            .map_err(failed)?;
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let record =
                Record::parse(line, &self.split).map_err(|e| TrainingError::bad_file(&self.path, e))?;
            self.records.push(record);
            self.offset += line.len() as u64;
        }
        Ok(())
    }

    /// All records read so far, in the order of the file.
    pub fn records(&self) -> &[Record] {
        &self.records
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
    }
}
