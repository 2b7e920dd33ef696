//! Atomic file writes.
//!
//! A file is written under a temporary name in the same folder and then renamed, so that a process killed at any instant
//! leaves either the former or the new content. The names of temporary files begin with [`PARTIAL`].

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// Prefix of the names of incomplete files and folders.
pub const PARTIAL: &str = ".partial-";

/// Number of files that this process began to write.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// Calls `write` with a temporary path beside `path`, then renames the file to `path`. `write` flushes the file to the disk.
///
/// # Errors
/// The error of `write` or of the file system; `path` is as before then, and nothing is left behind.
pub fn atomically(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Other processes, and other threads of this one, may write the same file at the same time.
    let number = WRITES.fetch_add(1, Ordering::Relaxed);
    let partial = path.with_file_name(format!("{PARTIAL}{}-{number}-{name}", process::id()));
    write(&partial).and_then(|()| fs::rename(&partial, path)).inspect_err(|_| {
        // The first error is the one to return.
        let _ = fs::remove_file(&partial);
    })
}

/// Writes `bytes` so that `path` holds either its former content or all of the new, whenever the process is stopped.
///
/// # Errors
/// The error of the file system; `path` is as before then, and nothing is left behind.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    atomically(path, |partial| {
        let mut file = File::create(partial)?;
        file.write_all(bytes)?;
        file.sync_all()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn a_failed_write_keeps_the_former_content_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept");
        write_atomically(&path, b"former").unwrap();
        let failed = atomically(&path, |partial| {
            fs::write(partial, "half")?;
            Err(io::Error::other("the disk is full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "the disk is full");
        assert_eq!(fs::read(&path).unwrap(), b"former");
        // A file cannot be renamed over a folder.
        let in_the_way = folder.path().join("folder");
        fs::create_dir(&in_the_way).unwrap();
        write_atomically(&in_the_way, b"new").unwrap_err();
        assert!(in_the_way.is_dir());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
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
}
