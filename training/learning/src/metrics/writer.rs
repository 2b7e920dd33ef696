//! The metric files of a run folder: appended step by step, truncated on resume, read for the report.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainingError};
use crate::metrics::events::EventsFile;
use crate::metrics::{Metric, Record, Timing};
use crate::run::atomic::write_atomically;

/// Lengths of the metric files at a checkpoint; saved with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricsPosition {
    /// Lines of `metrics.jsonl`.
    pub records: u64,
    /// Lines of `timings.jsonl`.
    pub timings: u64,
    /// Bytes of the events file; absent in the checkpoints of earlier versions.
    #[serde(default)]
    pub events: u64,
}

/// Appends records to the files of a run folder.
#[derive(Debug)]
pub struct MetricsWriter {
    split: String,
    position: MetricsPosition,
    jsonl: Appended,
    csv: Appended,
    timings: Appended,
    events: EventsFile,
}

/// The records as JSON Lines.
pub(crate) const METRICS_JSONL: &str = "metrics.jsonl";
/// The records as a table.
const METRICS_CSV: &str = "metrics.csv";
/// The timings as JSON Lines.
pub(super) const TIMINGS_JSONL: &str = "timings.jsonl";

impl MetricsWriter {
    /// Creates the files of a run that is evaluated on `split`, or continues them at `position`: later
    /// records are removed, since their steps will be repeated.
    ///
    /// Fails if a file is shorter than `position`.
    pub fn open(folder: &Path, split: &str, position: MetricsPosition) -> Result<Self> {
        let mut header = "step,phase".to_string();
        for metric in Metric::ALL {
            header.push(',');
            header.push_str(&metric.tag(split));
        }
        let csv_lines = if position.records == 0 { 0 } else { position.records + 1 };
        keep_columns(folder, split, &header, position.records)?;
        let mut writer = Self {
            split: split.into(),
            position,
            jsonl: Appended::open(folder.join(METRICS_JSONL), position.records)?,
            csv: Appended::open(folder.join(METRICS_CSV), csv_lines)?,
            timings: Appended::open(folder.join(TIMINGS_JSONL), position.timings)?,
            events: EventsFile::open(folder, position.events)?,
        };
        if csv_lines == 0 {
            writer.csv.line(&header)?;
        }
        Ok(writer)
    }

    /// Appends a record and its timing. Both are in the files when this returns.
    pub fn write(&mut self, record: &Record, timing: &Timing) -> Result<()> {
        let seconds =
            serde_json::to_string(timing).map_err(|e| TrainingError::bad_file(&self.timings.path, e))?;
        self.jsonl.line(&record.json(&self.split))?;
        self.csv.line(&record.csv())?;
        self.position.records += 1;
        self.timings.line(&seconds)?;
        self.position.timings += 1;
        let measured = record.values.iter().map(|(metric, value)| (metric.tag(&self.split), *value));
        let perf = timing.perf.iter().map(|(name, value)| (format!("perf/{name}"), *value));
        self.events.step(record.step, timing.seconds, &measured.chain(perf).collect::<Vec<_>>())?;
        self.position.events = self.events.length();
        Ok(())
    }

    /// Flushes all files to the disk and returns their lengths, to be saved with a checkpoint.
    pub(crate) fn sync(&mut self) -> Result<MetricsPosition> {
        for file in [&self.jsonl, &self.csv, &self.timings] {
            file.file.sync_all().map_err(|e| TrainingError::io("write", &file.path, e))?;
        }
        self.events.sync()?;
        Ok(self.position)
    }
}

/// Writes the table of the first `n` records again if its columns are those of another version of this program.
fn keep_columns(folder: &Path, split: &str, header: &str, n: u64) -> Result<()> {
    let path = folder.join(METRICS_CSV);
    let text = if n == 0 { None } else { std::fs::read_to_string(&path).ok() };
    if text.as_deref().and_then(|text| text.lines().next()).is_none_or(|line| line == header) {
        return Ok(());
    }
    let mut table = format!("{header}\n");
    for record in read_records(folder, split)?.iter().take(n as usize) {
        table += &record.csv();
        table.push('\n');
    }
    write_atomically(&path, table.as_bytes())
}

/// All records of a run folder, in order; an incomplete last line is ignored.
pub fn read_records(folder: &Path, split: &str) -> Result<Vec<Record>> {
    read_lines(&folder.join(METRICS_JSONL), |line| Record::parse(line, split))
}

/// All timings of a run folder, in order; an incomplete last line is ignored.
pub fn read_timings(folder: &Path) -> Result<Vec<Timing>> {
    read_lines(&folder.join(TIMINGS_JSONL), |line| serde_json::from_str(line))
}

fn read_lines<T>(path: &Path, parse: impl Fn(&str) -> serde_json::Result<T>) -> Result<Vec<T>> {
    let text = std::fs::read_to_string(path).map_err(|e| TrainingError::io("read", path, e))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let numbered = whole.lines().zip(1..);
    numbered
        .map(|(line, number)| {
            parse(line).map_err(|e| TrainingError::bad_file(path, format!("line {number}: {e}")))
        })
        .collect()
}

/// A file that is appended by whole lines.
#[derive(Debug)]
struct Appended {
    path: PathBuf,
    file: File,
}

impl Appended {
    /// Opens or creates the file and keeps its first `keep_lines` lines.
    fn open(path: PathBuf, keep_lines: u64) -> Result<Self> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(|e| TrainingError::io("open", &path, e))?;
        let mut reader = BufReader::new(&mut file);
        let (mut length, mut line) = (0, Vec::new());
        for found in 0..keep_lines {
            line.clear();
            let n = reader.read_until(b'\n', &mut line).map_err(|e| TrainingError::io("read", &path, e))?;
            if line.last() != Some(&b'\n') {
                let problem = format!("it has {found} lines where the checkpoint counted {keep_lines}");
                return Err(TrainingError::bad_file(&path, problem));
            }
            length += n as u64;
        }
        file.set_len(length)
            .and_then(|()| file.seek(SeekFrom::Start(length)))
            .map_err(|e| TrainingError::io("write", &path, e))?;
        Ok(Self { path, file })
    }

    fn line(&mut self, text: &str) -> Result<()> {
        let line = format!("{text}\n");
        self.file.write_all(line.as_bytes()).map_err(|e| TrainingError::io("write", &self.path, e))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::metrics::Phase;

    fn record(step: u64) -> Record {
        let mut record = Record::new(Phase::Learn, step);
        record.set(Metric::TrainLoss, 0.1 + 0.2).set(Metric::EvalSuccessRate, 0.5);
        record
    }

    fn timing(step: u64) -> Timing {
        Timing::new(Phase::Learn, step, 1.25)
    }

    #[test]
    fn a_record_is_one_json_line_and_one_csv_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = MetricsWriter::open(folder.path(), "test", MetricsPosition::default()).unwrap();
        writer.write(&record(7), &timing(7)).unwrap();
        assert_eq!(
            fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap(),
            "{\"step\":7,\"phase\":\"learn\",\"train/loss\":0.30000000000000004,\"eval/test/success_rate\":0.5}\n"
        );
        let csv = fs::read_to_string(folder.path().join("metrics.csv")).unwrap();
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].len(), rows[1].len()), (2 + Metric::ALL.len(), 2 + Metric::ALL.len()));
        let column = rows[0].iter().position(|name| *name == "train/loss").unwrap();
        assert_eq!((rows[1][0], rows[1][1], rows[1][column]), ("7", "learn", "0.30000000000000004"));
    }

    #[test]
    fn records_read_back_equal() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer =
            MetricsWriter::open(folder.path(), "validation", MetricsPosition::default()).unwrap();
        writer.write(&record(1), &timing(1)).unwrap();
        assert_eq!(read_records(folder.path(), "validation").unwrap(), [record(1)]);
        assert_eq!(read_timings(folder.path()).unwrap(), [timing(1)]);
    }

    #[test]
    fn a_table_with_other_columns_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(METRICS_CSV);
        let mut writer = MetricsWriter::open(folder.path(), "test", MetricsPosition::default()).unwrap();
        writer.write(&record(1), &timing(1)).unwrap();
        let position = writer.sync().unwrap();
        let table = fs::read_to_string(&path).unwrap();
        fs::write(&path, "step,phase,of_another_version\n1,learn,0.5\n").unwrap();
        drop(MetricsWriter::open(folder.path(), "test", position).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), table);
    }

    #[test]
    fn a_resumed_run_leaves_the_same_bytes() {
        let bytes = |folder: &Path| {
            [METRICS_JSONL, METRICS_CSV, TIMINGS_JSONL].map(|name| fs::read(folder.join(name)).unwrap())
        };
        let write = |writer: &mut MetricsWriter, steps: std::ops::Range<u64>| {
            for step in steps {
                writer.write(&record(step), &timing(step)).unwrap();
            }
        };
        let straight = tempfile::tempdir().unwrap();
        let mut writer = MetricsWriter::open(straight.path(), "test", MetricsPosition::default()).unwrap();
        write(&mut writer, 0..6);
        for checkpoint in [0, 3] {
            let cut = tempfile::tempdir().unwrap();
            let mut writer = MetricsWriter::open(cut.path(), "test", MetricsPosition::default()).unwrap();
            write(&mut writer, 0..checkpoint);
            let position = writer.sync().unwrap();
            write(&mut writer, checkpoint..5);
            // Killed in the middle of a line.
            writer.jsonl.file.write_all(b"{\"step\":5,\"pha").unwrap();
            drop(writer);
            assert_eq!(read_records(cut.path(), "test").unwrap().len(), 5);
            let mut writer = MetricsWriter::open(cut.path(), "test", position).unwrap();
            write(&mut writer, checkpoint..6);
            assert_eq!(bytes(cut.path()), bytes(straight.path()));
        }
    }

    #[test]
    fn missing_records_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let position = MetricsPosition { records: 2, ..MetricsPosition::default() };
        let error = MetricsWriter::open(folder.path(), "test", position).unwrap_err().to_string();
        assert!(error.ends_with("it has 0 lines where the checkpoint counted 2"), "{error}");
    }
}
