//! Files that are made again when they are missing or damaged.
//!
//! The name of a [`CacheFile`] holds a digest of everything that its contents follow from, so that a file is never out of
//! date; modification times are not read. It is a list of blocks and a SHA-256 of them. Nothing depends on a
//! cache: what cannot be read is made again, and what cannot be written is not cached. Files that are no longer
//! asked for stay until somebody removes them, which is safe at any time.

use std::env;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use sha2::{Digest, Sha256};

use crate::atomic::atomically;

/// Blocks that wait to be used.
const MOST_WAITING: usize = 4;

/// The folder where programs cache catalogs and their indexes unless told otherwise: `$WEBSHOP_CACHE`, else
/// `$XDG_CACHE_HOME/webshop`, else `$HOME/.cache/webshop`. Empty variables count as unset; `None` if all are.
pub fn user_cache() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let of_user = || folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    folder("WEBSHOP_CACHE").or_else(|| Some(of_user()?.join("webshop")))
}

/// One file of a cache folder.
#[derive(Clone, Debug)]
pub struct CacheFile(PathBuf);

impl CacheFile {
    /// The file `name` in `folder`; neither need exist.
    pub fn new(folder: &Path, name: &str) -> Self {
        Self(folder.join(name))
    }

    /// Passes the blocks to `take`, in the order in which they were written; `None` if the file is missing or
    /// damaged, or `take` refuses a block. Damage may be found only after the last block.
    pub fn read(&self, mut take: impl FnMut(Vec<u8>) -> Option<()>) -> Option<()> {
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(MOST_WAITING);
            let reading = scope.spawn(move || self.read_blocks(&sender));
            // A refused block drops the receiver, which ends the other thread.
            receiver.into_iter().try_for_each(&mut take)?;
            reading.join().expect("reading does not panic")
        })
    }

    fn read_blocks(&self, sender: &SyncSender<Vec<u8>>) -> Option<()> {
        let file = File::open(&self.0).ok()?;
        let mut n_left = file.metadata().ok()?.len().checked_sub(Sha256::output_size() as u64)?;
        let mut file = BufReader::new(file);
        let mut hasher = Sha256::new();
        while n_left > 0 {
            let mut length = [0; size_of::<u64>()];
            file.read_exact(&mut length).ok()?;
            let n_bytes = u64::from_le_bytes(length);
            n_left = n_left.checked_sub(length.len() as u64)?.checked_sub(n_bytes)?;
            let mut block = vec![0; usize::try_from(n_bytes).ok()?];
            file.read_exact(&mut block).ok()?;
            hasher.update(length);
            hasher.update(&block);
            sender.send(block).ok()?;
        }
        let mut digest = Vec::new();
        file.read_to_end(&mut digest).ok()?;
        (hasher.finalize().as_slice() == digest).then_some(())
    }

    /// Writes the file anew, with the blocks that `fill` makes. Equal blocks make equal bytes. Until it is whole the
    /// file has another name.
    ///
    /// # Errors
    /// The error of the file system or of `fill`; nothing is left behind then.
    pub fn write(&self, fill: impl FnOnce(&mut BlockWriter) -> io::Result<()>) -> io::Result<()> {
        fs::create_dir_all(self.folder())?;
        atomically(&self.0, |partial| {
            let file = File::create(partial)?;
            let mut writer = BlockWriter { out: BufWriter::new(file), hasher: Sha256::new() };
            fill(&mut writer)?;
            let BlockWriter { mut out, hasher } = writer;
            out.write_all(&hasher.finalize())?;
            out.into_inner()?.sync_all()
        })
    }

    /// The folder that holds the file.
    pub fn folder(&self) -> &Path {
        self.0.parent().unwrap_or(Path::new("."))
    }
}

/// Writes the blocks of a [`CacheFile`].
pub struct BlockWriter {
    out: BufWriter<File>,
    hasher: Sha256,
}

impl BlockWriter {
    /// Appends a block.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn block(&mut self, bytes: &[u8]) -> io::Result<()> {
        for part in [&(bytes.len() as u64).to_le_bytes(), bytes] {
            self.hasher.update(part);
            self.out.write_all(part)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &CacheFile) -> Option<Vec<Vec<u8>>> {
        let mut blocks = Vec::new();
        file.read(|block| {
            blocks.push(block);
            Some(())
        })?;
        Some(blocks)
    }

    #[test]
    fn blocks_come_back_unless_a_byte_is_changed_or_missing() {
        let folder = tempfile::tempdir().unwrap();
        let file = CacheFile::new(&folder.path().join("new"), "name");
        assert_eq!(read(&file), None);
        let blocks = [b"one".to_vec(), Vec::new(), vec![7; 100_000]];
        file.write(|writer| blocks.iter().try_for_each(|block| writer.block(block))).unwrap();
        assert_eq!(read(&file).unwrap(), blocks);
        assert_eq!(file.read(|_| None), None, "a refused block");

        let whole = fs::read(&file.0).unwrap();
        for at in [0, 7, 8, 12, 5_000, whole.len() - 1] {
            let mut changed = whole.clone();
            changed[at] ^= 64;
            fs::write(&file.0, changed).unwrap();
            assert_eq!(read(&file), None, "byte {at}");
        }
        for n_bytes in [0, 3, 31, 32, 40, whole.len() - 1] {
            fs::write(&file.0, &whole[..n_bytes]).unwrap();
            assert_eq!(read(&file), None, "{n_bytes} bytes");
        }
        fs::write(&file.0, [&whole[..], b"!"].concat()).unwrap();
        assert_eq!(read(&file), None, "a byte more");
    }

    #[test]
    fn an_error_leaves_the_former_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = CacheFile::new(folder.path(), "name");
        file.write(|writer| writer.block(b"former")).unwrap();
        let fails = |writer: &mut BlockWriter| {
            writer.block(b"new")?;
            Err(io::Error::other("no more"))
        };
        assert_eq!(file.write(fails).unwrap_err().to_string(), "no more");
        assert_eq!(read(&file).unwrap(), [b"former"]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
