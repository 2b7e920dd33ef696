//! The TensorBoard events file of a run, appended step by step.
//!
//! The file is a sequence of records, each framed as TensorFlow's `TFRecord`
//! (`tensorflow/core/lib/io/record_writer.cc`):
//!
//! ```text
//! u64 length | u32 masked crc of the length | payload | u32 masked crc of the payload       little endian
//! masked crc = rotate_right(crc32c, 15) + 0xa282ead8
//! ```
//!
//! A payload is a protocol buffer `Event` (`tensorflow/core/util/event.proto`), of which these fields are
//! written:
//!
//! ```text
//! Event { 1: double wall_time, 2: int64 step, 3: string file_version, 5: Summary }
//! Summary { repeated 1: Value { 1: string tag, 2: float simple_value } }
//! ```
//!
//! The wall time of a step is the start time of the run, which is the wall time of the first event, plus the
//! seconds the run has taken; pauses between a stop and a resumption are not included. No file that is
//! compared byte by byte contains it. Images, histograms and texts are not written.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{Result, TrainingError};
use crate::run::clock::unix_seconds;

/// File name in the run folder; TensorBoard looks for `tfevents`.
pub(super) const EVENTS: &str = "events.out.tfevents.webshop";
/// The file version in the first event of every file.
const FILE_VERSION: &str = "brain.Event:2";
/// Bytes before the payload of the first event.
const FRAME_HEAD: usize = 12;

/// An events file, open for appending.
#[derive(Debug)]
pub(super) struct EventsFile {
    path: PathBuf,
    file: File,
    length: u64,
    /// Unix time at which the run started.
    begun: f64,
}

impl EventsFile {
    /// Creates the events file of the run in `folder`, or continues it after its first `keep` bytes; the rest
    /// belongs to steps that will be repeated and is removed.
    ///
    /// Fails if the file is shorter than `keep`.
    pub(super) fn open(folder: &Path, keep: u64) -> Result<Self> {
        let path = folder.join(EVENTS);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(|e| TrainingError::io("open", &path, e))?;
        let found = file.metadata().map_err(|e| TrainingError::io("read", &path, e))?.len();
        if found < keep {
            let problem = format!("it has {found} bytes where the checkpoint counted {keep}");
            return Err(TrainingError::bad_file(&path, problem));
        }
        let begun = match keep {
            0 => unix_seconds(),
            _ => {
                // The first field of the first event: a key of one byte, then the time.
                let mut head = [0; FRAME_HEAD + 9];
                file.read_exact(&mut head).map_err(|e| TrainingError::io("read", &path, e))?;
                let time = head.last_chunk::<8>().expect("the head is longer than that");
                f64::from_le_bytes(*time)
            }
        };
        file.set_len(keep)
            .and_then(|()| file.seek(SeekFrom::Start(keep)))
            .map_err(|e| TrainingError::io("write", &path, e))?;
        let mut events = Self { path, file, length: keep, begun };
        if keep == 0 {
            events.append(&version_event(begun))?;
        }
        Ok(events)
    }

    /// Appends the values of a step that ended `seconds` after the start of the run.
    pub(super) fn step(&mut self, step: u64, seconds: f64, values: &[(String, f64)]) -> Result<()> {
        self.append(&scalar_event(self.begun + seconds, step, values))
    }

    /// Number of bytes written.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Flushes the file to the disk.
    pub(super) fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(|e| TrainingError::io("write", &self.path, e))
    }

    fn append(&mut self, event: &[u8]) -> Result<()> {
        let record = framed(event);
        self.length += record.len() as u64;
        self.file.write_all(&record).map_err(|e| TrainingError::io("write", &self.path, e))
    }
}

/// The first event of every file.
fn version_event(wall_time: f64) -> Vec<u8> {
    let mut event = Vec::new();
    put_double(&mut event, 1, wall_time);
    put_bytes(&mut event, 3, FILE_VERSION.as_bytes());
    event
}

fn scalar_event(wall_time: f64, step: u64, values: &[(String, f64)]) -> Vec<u8> {
    let mut summary = Vec::new();
    for (tag, number) in values {
        let mut value = Vec::new();
        put_bytes(&mut value, 1, tag.as_bytes());
        put_float(&mut value, 2, *number as f32);
        put_bytes(&mut summary, 1, &value);
    }
    let mut event = Vec::new();
    put_double(&mut event, 1, wall_time);
    put_key(&mut event, 2, VARINT);
    put_varint(&mut event, step);
    put_bytes(&mut event, 5, &summary);
    event
}

/// Wire types of protocol buffers.
const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;
const FOUR_BYTES: u64 = 5;

fn put_key(to: &mut Vec<u8>, field: u64, wire_type: u64) {
    put_varint(to, field << 3 | wire_type);
}

fn put_varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

fn put_double(to: &mut Vec<u8>, field: u64, value: f64) {
    put_key(to, field, EIGHT_BYTES);
    to.extend(value.to_le_bytes());
}

fn put_float(to: &mut Vec<u8>, field: u64, value: f32) {
    put_key(to, field, FOUR_BYTES);
    to.extend(value.to_le_bytes());
}

fn put_bytes(to: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_key(to, field, LENGTH_DELIMITED);
    put_varint(to, bytes.len() as u64);
    to.extend(bytes);
}

/// A payload in its frame.
fn framed(payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u64).to_le_bytes();
    let mut record = Vec::from(length);
    record.extend(masked_crc(&length).to_le_bytes());
    record.extend(payload);
    record.extend(masked_crc(payload).to_le_bytes());
    record
}

fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Castagnoli's CRC, bit by bit; a step has some hundred bytes.
fn crc32c(bytes: &[u8]) -> u32 {
    /// The polynomial with reversed bits.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let bit = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn checksums_are_those_of_the_standard() {
        // RFC 3720, appendix B.4: 32 zeros, 32 ones, ascending bytes; and the check value of the catalogue.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(&(0..32).collect::<Vec<u8>>()), 0x46dd_794e);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn events_have_the_bytes_that_tensorboard_writes() {
        // `tensorboard.compat.proto` and `tensorboard.summary.writer.record_writer` of tensorboard 2.21.
        assert_eq!(
            hex(&framed(&version_event(1.5))),
            "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c"
        );
        let values = [("train/loss".to_string(), 0.5), ("eval/test/success_rate".into(), -1.25)];
        assert_eq!(
            hex(&framed(&scalar_event(2.25, 300, &values))),
            "40000000000000002817f49509000000000000024010ac022a320a110a0a747261696e2f6c6f7373150000003f0a1d0a166576\
             616c2f746573742f737563636573735f72617465150000a0bf81b745bb"
        );
    }

    #[test]
    fn a_file_continues_after_the_kept_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let read = || std::fs::read(folder.path().join(EVENTS)).unwrap();
        let value = |number: f64| [("a".to_string(), number)];
        let mut events = EventsFile::open(folder.path(), 0).unwrap();
        events.step(1, 1.0, &value(1.0)).unwrap();
        let kept = events.length();
        events.step(2, 2.0, &value(2.0)).unwrap();
        let whole = read();
        assert_eq!(events.length(), whole.len() as u64);
        // Repeated after a resumption, the second step has the same bytes, its time included.
        let mut events = EventsFile::open(folder.path(), kept).unwrap();
        events.step(2, 2.0, &value(2.0)).unwrap();
        assert_eq!(read(), whole);
        let error = EventsFile::open(folder.path(), 10_000).unwrap_err().to_string();
        assert!(
            error.ends_with(&format!("it has {} bytes where the checkpoint counted 10000", whole.len())),
            "{error}"
        );
    }
}
