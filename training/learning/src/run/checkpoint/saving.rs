//! Writing checkpoints, and removing old ones.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Result, TrainingError};
use crate::run::atomic::{PARTIAL, remove_if_there, sync_folder, write_json};
use crate::run::checkpoint::names::{Link, named, set, step_name, step_of};
use crate::run::folder::{RunFolder, TRAINER_STATE};

impl RunFolder {
    /// Saves the state after `step` optimizer steps: `write` fills a new folder with the model and the
    /// optimizer, `state` is added as `trainer_state.json`, and `last` is set to the result, whose path is
    /// returned.
    ///
    /// A checkpoint of this step that `last` already names gets the new `state` only: weights and moments are
    /// the same, since only an evaluation came after it. If `write` fails, everything is as before.
    pub(crate) fn save_checkpoint<S: Serialize>(
        &self,
        step: u64,
        state: &S,
        write: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let name = step_name(step);
        let place = self.checkpoints().join(&name);
        if place.is_dir() && named(&self.checkpoints(), Link::Last)?.as_deref() == Some(name.as_str()) {
            write_json(&place.join(TRAINER_STATE), state)?;
            return Ok(place);
        }
        let partial = self.checkpoints().join(format!("{PARTIAL}{name}"));
        let written = self.fill(&partial, state, write);
        if let Err(error) = written {
            // The first error is the one to return; a resumed run removes the remains too.
            let _ = fs::remove_dir_all(&partial);
            return Err(error);
        }
        // A complete folder that `last` does not name was cut off just before the link; it is written anew.
        remove_if_there(&place)?;
        fs::rename(&partial, &place).map_err(|e| TrainingError::io("rename", &partial, e))?;
        set(&self.checkpoints(), Link::Last, &name)?;
        Ok(place)
    }

    /// Removes all but the `n` newest checkpoints; 0 keeps all. Those that `last` and `best` name are always
    /// kept.
    pub(crate) fn keep_newest(&self, n: usize) -> Result<()> {
        let folder = self.checkpoints();
        let Some(last) = named(&folder, Link::Last)?.filter(|_| n > 0) else {
            return Ok(());
        };
        let best = named(&folder, Link::Best)?.as_deref().and_then(step_of);
        let failed = |e| TrainingError::io("read", &folder, e);
        let mut steps = Vec::new();
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            steps.extend(name.to_str().and_then(step_of).filter(|step| Some(*step) < step_of(&last)));
        }
        steps.sort_unstable();
        for step in steps.iter().rev().skip(n - 1).filter(|step| Some(**step) != best) {
            // Renamed first, so that a folder under its own name is always complete.
            let (place, partial) = (folder.join(step_name(*step)), folder.join(format!("{PARTIAL}old")));
            remove_if_there(&partial)?;
            fs::rename(&place, &partial).map_err(|e| TrainingError::io("rename", &place, e))?;
            remove_if_there(&partial)?;
        }
        Ok(())
    }

    fn fill<S: Serialize>(
        &self,
        partial: &Path,
        state: &S,
        write: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<()> {
        remove_if_there(partial)?;
        fs::create_dir(partial).map_err(|e| TrainingError::io("create", partial, e))?;
        write(partial)?;
        write_json(&partial.join(TRAINER_STATE), state)?;
        sync_folder(partial)
    }
}
