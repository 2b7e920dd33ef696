//! Names of checkpoints, and the links to the newest and the best one.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{Result, TrainingError};
use crate::run::atomic::{PARTIAL, remove_if_there, sync};
pub(crate) use crate::run::folder::MODEL;
use crate::run::folder::RunFolder;

/// The configuration in a checkpoint, which makes a copied checkpoint complete.
pub(crate) const CONFIG: &str = "config.toml";
/// The optimizer state in a checkpoint.
pub(crate) const OPTIMIZER: &str = "optimizer.safetensors";
/// Folder of the critic in a checkpoint of a loss that has one.
pub(crate) const CRITIC: &str = "critic";

/// A link among the checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// The newest.
    Last,
    /// The checkpoint of the best evaluation.
    Best,
}

impl Link {
    fn name(self) -> &'static str {
        match self {
            Self::Last => "last",
            Self::Best => "best",
        }
    }

    fn of(name: &OsStr) -> Option<Self> {
        [Self::Last, Self::Best].into_iter().find(|link| name == link.name())
    }

    /// The checkpoint that the link names, if it exists.
    fn checkpoint(self, checkpoints: &Path) -> Result<Option<PathBuf>> {
        let Some(name) = named(checkpoints, self)? else {
            return Ok(None);
        };
        let path = checkpoints.join(name);
        match path.is_dir() {
            true => Ok(Some(path)),
            false => {
                let problem = format!("`{}` names it but it is gone", self.name());
                Err(TrainingError::NoCheckpoint { path, problem })
            }
        }
    }
}

impl RunFolder {
    /// The newest complete checkpoint, or `None` if the run was stopped before its first.
    pub(crate) fn last_checkpoint(&self) -> Result<Option<PathBuf>> {
        Link::Last.checkpoint(&self.checkpoints())
    }

    /// Sets `best` to the checkpoint of `step`, which must exist.
    pub(crate) fn set_best(&self, step: u64) -> Result<()> {
        set(&self.checkpoints(), Link::Best, &step_name(step))
    }
}

/// Sets a link in the folder `checkpoints` to the checkpoint `name`.
pub(crate) fn set(checkpoints: &Path, link: Link, name: &str) -> Result<()> {
    let place = checkpoints.join(link.name());
    let fresh = checkpoints.join(format!("{PARTIAL}{}", link.name()));
    remove_if_there(&fresh)?;
    make_link(name, &fresh).map_err(|e| TrainingError::io("write", &fresh, e))?;
    fs::rename(&fresh, &place).map_err(|e| TrainingError::io("rename", &fresh, e))?;
    sync(checkpoints)
}

/// The target name of a link, if the link exists.
pub(super) fn named(checkpoints: &Path, link: Link) -> Result<Option<String>> {
    let place = checkpoints.join(link.name());
    match fs::read_link(&place) {
        Ok(target) => Ok(Some(target.to_string_lossy().into_owned())),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        // Where links are not supported, a text file holds the name.
        Err(_) => match fs::read_to_string(&place) {
            Ok(name) => Ok(Some(name.trim().into())),
            Err(e) => Err(TrainingError::io("read", &place, e)),
        },
    }
}

/// `step-000100`; wider from a million steps on.
pub(crate) fn step_name(step: u64) -> String {
    format!("step-{step:06}")
}

/// The step in a [`step_name`].
pub(super) fn step_of(name: &str) -> Option<u64> {
    name.strip_prefix("step-")?.parse().ok()
}

/// What is said of a path that does not exist. One of the form `OWNER/NAME` may be meant as a model of Hugging Face,
/// unless there is a folder `OWNER`, or it is that of runs.
fn no_such_path(path: &Path) -> String {
    let is_folder = |owner: &str| Path::new(owner).is_dir() || ["", ".", "..", "runs"].contains(&owner);
    let parts: Option<Vec<&str>> = path.to_str().map(|name| name.split('/').collect());
    match parts.as_deref() {
        Some([owner, name]) if !is_folder(owner) => format!(
            "there is no such path; models are not downloaded: `hf download {owner}/{name} --local-dir DIR` makes a folder to name"
        ),
        _ => "there is no such path".to_owned(),
    }
}

/// Finds the checkpoint at `path`: a checkpoint, a link to one, or a run folder, of which it is
/// `checkpoints/last`. A folder that holds a file named `marker` is a checkpoint.
pub(crate) fn find_checkpoint(path: &Path, marker: &str) -> Result<PathBuf> {
    let missing = |problem: String| TrainingError::NoCheckpoint { path: path.into(), problem };
    // A folder of that name is no link.
    let is_folder = fs::symlink_metadata(path).is_ok_and(|data| data.is_dir());
    let link = path.file_name().and_then(Link::of).filter(|_| !is_folder);
    if !path.exists() && link.is_none() {
        return Err(missing(no_such_path(path)));
    }
    let linked = match (link, path.parent()) {
        (Some(link), Some(checkpoints)) => link.checkpoint(checkpoints)?,
        _ => Link::Last.checkpoint(&RunFolder::at(path).checkpoints())?,
    };
    let candidates = [Some(path.to_path_buf()), linked];
    candidates
        .into_iter()
        .flatten()
        .find(|candidate| candidate.join(marker).is_file())
        .ok_or_else(|| missing(format!("it has no `{marker}`, and no `checkpoints/last` that has one")))
}

#[cfg(unix)]
pub(super) fn make_link(target: &str, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
pub(super) fn make_link(target: &str, link: &Path) -> std::io::Result<()> {
    fs::write(link, target)
}
