//! A folder that keeps sessions, so that they outlive the process.
//!
//! ```text
//! server.json           the shop, and the number of the next session
//! native-3.session      a session, by interface and number ([`super::stored`])
//! lock                  locked while a server uses the folder
//! *.tmp                 what was being written when a server was killed; removed at the next start
//! *.damaged             a session's file that could not be read at a start
//! ```
//!
//! A file is written beside its place and renamed, so that it is whole whenever the process ends. Nothing is synced: a
//! file outlives the process, and may not outlive a loss of power. Names of files have no text of a client.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use webshop_env::{Shop, ShopFingerprint, SnapshotError};
use webshop_products::Digest;

use super::stored::{StoredError, StoredSession};
use super::{Interface, SessionId};
use crate::error::StoreError;

const MANIFEST: &str = "server.json";
const LOCK: &str = "lock";
const SESSION: &str = "session";
const PARTIAL: &str = "tmp";

/// What [`MANIFEST`] says.
#[derive(Serialize, Deserialize)]
struct Manifest {
    /// The number of the next session.
    next_ordinal: u64,
    /// [`Shop::snapshot_digest`].
    world: Digest,
    /// Names the parts of the shop, for errors.
    shop: ShopFingerprint,
}

/// A folder that keeps sessions.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    world: Digest,
    shop: ShopFingerprint,
    /// The file that is locked as long as it is open.
    _lock: File,
}

/// What a folder holds when it is opened.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// A number that no session has had.
    pub(super) next_ordinal: u64,
    /// The sessions, in the order of their ids.
    pub(super) sessions: Vec<(SessionId, StoredSession)>,
}

impl Store {
    /// Opens a folder, which is made if there is none, and reads its sessions. Damaged ones are set aside.
    ///
    /// # Errors
    /// If the folder cannot be used, another server uses it, or its sessions are of another shop or another version.
    pub(super) fn open(folder: &Path, shop: &Shop) -> Result<(Store, Contents), StoreError> {
        fs::create_dir_all(folder).map_err(io_error(folder))?;
        let lock = lock(folder)?;
        let (folder, world, shop) = (folder.to_owned(), shop.snapshot_digest(), shop.fingerprint().clone());
        let store = Store { folder, world, shop, _lock: lock };
        let files = store.files()?;
        let noted = store.manifest()?;
        store.check_shop(noted.as_ref(), files.len())?;
        let mut contents = Contents::default();
        for (id, path) in files {
            contents.next_ordinal = contents.next_ordinal.max(id.ordinal + 1);
            let bytes = fs::read(&path).map_err(io_error(&path))?;
            match StoredSession::from_bytes(&bytes) {
                Ok(session) => contents.sessions.push((id, session)),
                Err(StoredError::Damaged(reason)) => store.set_aside(id, &reason)?,
                Err(StoredError::Layout(found)) => {
                    return Err(StoreError::Session { path, reason: format!("its layout is `{found}`") });
                }
            }
        }
        let noted = noted.map_or(0, |manifest| manifest.next_ordinal);
        contents.next_ordinal = contents.next_ordinal.max(noted);
        // A folder that cannot be written is found out now, and not by the first session.
        store.write_next(contents.next_ordinal).map_err(io_error(&store.path(MANIFEST)))?;
        Ok((store, contents))
    }

    /// Writes a session's state. If that fails, the session is not kept at all: a restart that knows an older state
    /// would continue from there without a word.
    pub(super) fn save(&self, id: SessionId, session: &StoredSession) {
        let path = self.session_path(id);
        if let Err(error) = write(&path, &session.to_bytes()) {
            let path = path.display();
            tracing::error!("session `{id}` would not outlive the server: cannot write `{path}`: {error}");
            self.remove(id);
        }
    }

    /// Removes a session's file, if there is one.
    pub(super) fn remove(&self, id: SessionId) {
        let path = self.session_path(id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let path = path.display();
                tracing::error!(
                    "session `{id}` would come back after a restart: cannot remove `{path}`: {error}"
                );
            }
            _ => {}
        }
    }

    /// Notes the number of the next session.
    pub(super) fn save_next(&self, next_ordinal: u64) {
        if let Err(error) = self.write_next(next_ordinal) {
            let path = self.path(MANIFEST);
            let path = path.display();
            tracing::error!("a restart may use session numbers again: cannot write `{path}`: {error}");
        }
    }

    /// Judges the snapshot of a session: a damaged one is set aside.
    ///
    /// # Errors
    /// If the snapshot is sound, but of another shop or another version.
    pub(super) fn refuse(&self, id: SessionId, error: &SnapshotError) -> Result<(), StoreError> {
        match error {
            SnapshotError::Version { .. } | SnapshotError::OtherShop { .. } => {
                Err(StoreError::Session { path: self.session_path(id), reason: error.to_string() })
            }
            SnapshotError::Foreign(_) | SnapshotError::Damaged { .. } | SnapshotError::Impossible(_) => {
                self.set_aside(id, &error.to_string())
            }
        }
    }

    /// Renames a damaged file, which no later start reads.
    fn set_aside(&self, id: SessionId, reason: &str) -> Result<(), StoreError> {
        let path = self.session_path(id);
        let aside = beside(&path, "damaged");
        fs::rename(&path, &aside).map_err(io_error(&path))?;
        let (path, aside) = (path.display(), aside.display());
        tracing::warn!("session `{id}` is lost: `{path}` is damaged ({reason}), and is now `{aside}`");
        Ok(())
    }

    /// The files of sessions, in the order of their ids. What was not written to its end is removed. Files that no
    /// server wrote stay as they are.
    fn files(&self) -> Result<Vec<(SessionId, PathBuf)>, StoreError> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(io_error(&self.folder))? {
            let path = entry.map_err(io_error(&self.folder))?.path();
            if let Some(id) = self.id_of(&path) {
                files.push((id, path));
            } else if path.extension().is_some_and(|extension| extension == PARTIAL) {
                let whole = path.with_extension("");
                if whole == self.path(MANIFEST) || self.id_of(&whole).is_some() {
                    fs::remove_file(&path).map_err(io_error(&path))?;
                }
            }
        }
        files.sort();
        Ok(files)
    }

    /// What was noted of the folder; `None` if it is new.
    fn manifest(&self) -> Result<Option<Manifest>, StoreError> {
        let path = self.path(MANIFEST);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(io_error(&path))?,
        };
        let manifest = serde_json::from_slice(&bytes);
        manifest.map(Some).map_err(|error| StoreError::Manifest { path, reason: error.to_string() })
    }

    /// A folder without sessions may go to another shop.
    fn check_shop(&self, noted: Option<&Manifest>, n_sessions: usize) -> Result<(), StoreError> {
        let Some(noted) = noted.filter(|noted| noted.world != self.world && n_sessions > 0) else {
            return Ok(());
        };
        let names = self.shop.differences(&noted.shop);
        // What the fingerprint does not name are rules.
        let names = if names.is_empty() { vec!["rules"] } else { names };
        let folder = self.folder.clone();
        Err(StoreError::OtherShop { folder, n_sessions, differences: names.join(", ") })
    }

    fn write_next(&self, next_ordinal: u64) -> io::Result<()> {
        let manifest = Manifest { next_ordinal, world: self.world, shop: self.shop.clone() };
        let bytes = serde_json::to_vec(&manifest).expect("a manifest holds texts and numbers");
        write(&self.path(MANIFEST), &bytes)
    }

    /// The session whose file this is; `None` for other files.
    fn id_of(&self, path: &Path) -> Option<SessionId> {
        let (interface, ordinal) = path.file_stem()?.to_str()?.split_once('-')?;
        let interface = Interface::ALL.into_iter().find(|known| known.name() == interface)?;
        let id = SessionId { interface, ordinal: ordinal.parse().ok()? };
        // Numbers also parse with signs and leading zeros. The largest one has none after it, and no server wrote it.
        (self.session_path(id) == path && id.ordinal < u64::MAX).then_some(id)
    }

    fn session_path(&self, id: SessionId) -> PathBuf {
        self.path(&format!("{}-{}.{SESSION}", id.interface.name(), id.ordinal))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Locks a folder until the file is closed.
fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join(LOCK);
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).open(&path).map_err(io_error(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(io_error(&path)(error)),
    }
}

/// Writes a file whole, or not at all. Two writers of one file must not write at once.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let partial = beside(path, PARTIAL);
    fs::write(&partial, bytes)?;
    fs::rename(&partial, path)
}

/// The path with one more extension.
fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

/// The error of a file or folder.
fn io_error(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    |source| StoreError::Io { path, source }
}
