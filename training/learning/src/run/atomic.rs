//! Atomic file writes.
//!
//! [`write_atomically`] writes a temporary file and renames it, so that a process killed at any instant
//! leaves either the former or the new content. The names of temporary files begin with [`PARTIAL`]; they are
//! removed when the folder is opened again. Log files are appended by lines instead, see `metrics`.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Serialize, de::DeserializeOwned};

use crate::error::{Result, TrainingError};

/// Number of files that this process began to write.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// Prefix of the names of incomplete files and folders.
pub(crate) const PARTIAL: &str = ".partial-";

/// Writes `bytes` so that `path` holds either its former content or all of the new, whenever the process is
/// stopped.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Two runs of a comparison may write the same file at once, so each write has a name of its own.
    let write = WRITES.fetch_add(1, Ordering::Relaxed);
    let partial = path.with_file_name(format!("{PARTIAL}{}-{write}-{name}", std::process::id()));
    let written = File::create(&partial).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&partial, path)).map_err(|e| {
        // The first error is the one to return.
        let _ = fs::remove_file(&partial);
        TrainingError::io("write", path, e)
    })
}

/// Writes `value` as indented JSON, atomically.
pub(crate) fn write_json<S: Serialize>(path: &Path, value: &S) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value).map_err(|e| TrainingError::bad_file(path, e))?;
    text.push('\n');
    write_atomically(path, text.as_bytes())
}

/// Reads the JSON that `write_json` wrote; floats read back to the same bits.
pub fn read_json<S: DeserializeOwned>(path: &Path) -> Result<S> {
    let text = fs::read_to_string(path).map_err(|e| TrainingError::io("read", path, e))?;
    serde_json::from_str(&text).map_err(|e| TrainingError::bad_file(path, e))
}

/// Removes incomplete files and folders directly in `folder`.
pub(crate) fn remove_partial(folder: &Path) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(|e| TrainingError::io("read", folder, e))?;
    for entry in entries {
        let entry = entry.map_err(|e| TrainingError::io("read", folder, e))?;
        if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
            remove_if_there(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes a file, a link or a whole folder.
pub(crate) fn remove_if_there(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(e) => Err(e),
    };
    match removed {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(TrainingError::io("remove", path, e)),
        _ => Ok(()),
    }
}

/// Flushes all files in a folder and below to the disk.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(|e| TrainingError::io("read", folder, e))?;
    for entry in entries {
        let path = entry.map_err(|e| TrainingError::io("read", folder, e))?.path();
        match path.is_dir() {
            true => sync_folder(&path)?,
            false => sync(&path)?,
        }
    }
    sync(folder)
}

/// Flushes one file or folder to the disk.
pub(crate) fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|file| file.sync_all()).map_err(|e| TrainingError::io("write", path, e))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn floats_come_back_to_the_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers.json");
        let numbers = [0.1 + 0.2, 1.0 / 3.0, f64::MIN_POSITIVE, 1e300 / 7.0, -0.0];
        write_json(&path, &numbers).unwrap();
        let read: [f64; 5] = read_json(&path).unwrap();
        assert_eq!(read.map(f64::to_bits), numbers.map(f64::to_bits));
    }

    #[test]
    fn a_failed_write_keeps_the_former_content_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        fs::create_dir(&path).unwrap();
        // A file cannot be renamed over a folder.
        let error = write_atomically(&path, b"new").unwrap_err().to_string();
        assert!(error.starts_with("cannot write"), "{error}");
        assert!(path.is_dir());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn concurrent_writes_of_one_file_leave_one_of_the_contents_whole() {
        const N_THREADS: usize = 8;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("value.json");
        // Contents of different lengths, so that a mixture of two would show.
        let contents: Vec<Vec<u8>> =
            (0..N_THREADS).map(|thread| vec![b'a' + thread as u8; 10_000 * (thread + 1)]).collect();
        let start = Barrier::new(N_THREADS);
        thread::scope(|scope| {
            for content in &contents {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..20 {
                        write_atomically(&path, content).unwrap();
                    }
                });
            }
        });
        assert!(contents.contains(&fs::read(&path).unwrap()), "the file is a mixture");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "temporary files are left");
    }

    #[test]
    fn damaged_json_names_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        fs::write(&path, "{\"step\": ").unwrap();
        let error = read_json::<u64>(&path).unwrap_err().to_string();
        assert!(error.contains("state.json` cannot be used"), "{error}");
    }
}
