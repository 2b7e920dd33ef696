//! Files of a run: written atomically, read with errors that name them, and removed.
//!
//! Temporary names begin with [`PARTIAL`]; what has such a name is removed when the folder is opened again. Log files are
//! appended by lines instead, see `metrics`.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use serde::{Serialize, de::DeserializeOwned};
pub(crate) use webshop_products::PARTIAL;

use crate::error::{Result, TrainingError};

/// Writes `bytes` so that `path` holds either its former content or all of the new, whenever the process is
/// stopped.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    webshop_products::write_atomically(path, bytes).map_err(|e| TrainingError::io("write", path, e))
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
    fn damaged_json_names_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        fs::write(&path, "{\"step\": ").unwrap();
        let error = read_json::<u64>(&path).unwrap_err().to_string();
        assert!(error.contains("state.json` cannot be used"), "{error}");
    }
}
