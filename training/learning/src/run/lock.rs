//! The lock of a run folder: one process at a time trains in it.

use std::fs::{File, OpenOptions, TryLockError};

use crate::error::{Result, TrainingError};
use crate::run::folder::RunFolder;

/// The file that is locked; it stays empty.
pub(crate) const LOCK: &str = "lock";

/// Held while a process trains in a run folder. The system releases it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct RunLock {
    _file: File,
}

impl RunLock {
    /// Locks the folder of a run. Fails if another process trains in it.
    pub(crate) fn take(run: &RunFolder) -> Result<Self> {
        let path = run.root().join(LOCK);
        let open = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let file = open.map_err(|e| TrainingError::io("open", &path, e))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(TrainingError::RunInUse(run.root().into())),
            // Some file systems have no locks; the run is trained nevertheless.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Self { _file: file }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_second_trainer_is_refused_until_the_first_ends() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::create(folder.path(), &Config::default()).unwrap();
        let first = RunLock::take(&run).unwrap();
        let refused = RunLock::take(&run).unwrap_err().to_string();
        assert!(refused.ends_with("another process trains in it; wait for its end, or stop it"), "{refused}");
        drop(first);
        RunLock::take(&run).unwrap();
    }
}
