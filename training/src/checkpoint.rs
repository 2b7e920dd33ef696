//! The run folder, and states in it from which a run continues exactly.
//!
//! A [`RunFolder`] is made once for a new run or opened to resume one, never reused silently. It knows the names of
//! the files in it:
//!
//! ```text
//! config.toml  cmdline.txt  fingerprint.json  summary.json  value.json
//! metrics.jsonl  metrics.csv  timings.jsonl  events.out.tfevents.webshop
//! report.html  curve.svg  trip.svg  episodes/*.jsonl
//! checkpoints/step-000100/   model/  optimizer.safetensors  trainer_state.json
//! checkpoints/last           a link to the newest complete one
//! ```
//!
//! A checkpoint is written beside its place and renamed when it is complete, and `last` is replaced by a rename
//! afterwards: killed at any instant, the folder holds only whole checkpoints and a `last` that names one. What
//! belongs into a checkpoint is its writer's business; nothing here knows a model.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Serialize, de::DeserializeOwned};

use crate::config::Config;
use crate::durable::{
    PARTIAL, read_json, remove_if_there, remove_partial, sync, sync_folder, write_atomically, write_json,
};
use crate::error::{Result, TrainingError};

/// The command line that began the run.
const COMMAND: &str = "cmdline.txt";
/// The file that says where the trainer stood.
const TRAINER_STATE: &str = "trainer_state.json";
/// The link to the newest checkpoint.
const LAST: &str = "last";

/// The folder of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolder {
    root: PathBuf,
}

impl RunFolder {
    /// Makes the folder of a new run and saves its configuration. A folder that holds anything is refused.
    pub fn create(root: &Path, config: &Config) -> Result<Self> {
        fs::create_dir_all(root).map_err(|e| TrainingError::io("create", root, e))?;
        // A start that was cut short before its first file was whole is no run.
        remove_partial(root)?;
        let mut entries = fs::read_dir(root).map_err(|e| TrainingError::io("read", root, e))?;
        if entries.next().is_some() {
            return Err(TrainingError::RunFolderNotEmpty(root.into()));
        }
        let run = Self { root: root.into() };
        // The configuration comes first: with it, a run that was cut short here can be resumed.
        write_atomically(&run.config(), config.to_toml().as_bytes())?;
        run.create_folders()?;
        Ok(run)
    }

    /// Opens the folder of a run that was begun, to go on with it, and reads its configuration. Remains of a write that
    /// was cut short are removed.
    pub fn resume(root: &Path) -> Result<(Self, Config)> {
        let (run, config) = Self::look(root)?;
        run.create_folders()?;
        remove_partial(&run.root)?;
        remove_partial(&run.checkpoints())?;
        Ok((run, config))
    }

    /// Opens the folder of a run that was begun and may be under way, to read it only.
    pub fn look(root: &Path) -> Result<(Self, Config)> {
        let run = Self { root: root.into() };
        let path = run.config();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Err(TrainingError::NoRun(root.into())),
            Err(e) => return Err(TrainingError::io("read", &path, e)),
        };
        let config = Config::resolve(&path.display().to_string(), &text, &[])?;
        Ok((run, config))
    }

    fn create_folders(&self) -> Result<()> {
        for folder in [self.checkpoints(), self.episodes()] {
            fs::create_dir_all(&folder).map_err(|e| TrainingError::io("create", &folder, e))?;
        }
        Ok(())
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `config.toml`: the resolved configuration.
    pub fn config(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// Keeps the command the run was begun with, for its report.
    pub fn save_command(&self, command: &str) -> Result<()> {
        write_atomically(&self.root.join(COMMAND), command.as_bytes())
    }

    /// The command the run was begun with; empty if it was not begun by one.
    pub fn command(&self) -> Result<String> {
        let path = self.root.join(COMMAND);
        match fs::read_to_string(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(String::new()),
            read => read.map_err(|e| TrainingError::io("read", &path, e)),
        }
    }

    /// `fingerprint.json`: what the results are about.
    pub fn fingerprint(&self) -> PathBuf {
        self.root.join("fingerprint.json")
    }

    /// `summary.json`: the results that stand at the top of the report.
    pub fn summary(&self) -> PathBuf {
        self.root.join("summary.json")
    }

    /// `value.json`: V* of every training goal.
    pub fn value(&self) -> PathBuf {
        self.root.join("value.json")
    }

    /// `report.html`: the page that a person reads.
    pub fn report(&self) -> PathBuf {
        self.root.join("report.html")
    }

    /// `curve.svg`: the learning curve alone.
    pub fn curve(&self) -> PathBuf {
        self.root.join("curve.svg")
    }

    /// `trip.svg`: a whole trip as a drawing.
    pub fn trip(&self) -> PathBuf {
        self.root.join("trip.svg")
    }

    /// `episodes/`: whole trips.
    pub fn episodes(&self) -> PathBuf {
        self.root.join("episodes")
    }

    /// `checkpoints/`.
    pub fn checkpoints(&self) -> PathBuf {
        self.root.join("checkpoints")
    }

    /// Saves the state after `step` optimizer steps: `write` fills a new folder with the model and the optimizer,
    /// `state` is added as `trainer_state.json`, and `last` is set to the result, whose path is returned.
    ///
    /// A checkpoint of this step that `last` already names gets the new `state` only: weights and moments are those of
    /// the step, and what came after it was an evaluation. If `write` fails, everything is as before.
    pub fn save_checkpoint<S: Serialize>(
        &self,
        step: u64,
        state: &S,
        write: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let name = step_name(step);
        let place = self.checkpoints().join(&name);
        if place.is_dir() && self.last_name()?.as_deref() == Some(name.as_str()) {
            write_json(&place.join(TRAINER_STATE), state)?;
            return Ok(place);
        }
        let partial = self.checkpoints().join(format!("{PARTIAL}{name}"));
        let written = self.fill(&partial, state, write);
        if let Err(error) = written {
            // The first error is the one to tell; what it left behind is also removed on resume.
            let _ = fs::remove_dir_all(&partial);
            return Err(error);
        }
        // A complete folder that `last` does not name was cut off just before the link; it is written anew.
        remove_if_there(&place)?;
        fs::rename(&partial, &place).map_err(|e| TrainingError::io("rename", &partial, e))?;
        set_last(&self.checkpoints(), &name)?;
        Ok(place)
    }

    /// Removes all but the `n` newest checkpoints; 0 keeps all. The one `last` names is always among the kept.
    pub fn keep_newest(&self, n: usize) -> Result<()> {
        let Some(last) = self.last_name()?.filter(|_| n > 0) else {
            return Ok(());
        };
        let folder = self.checkpoints();
        let failed = |e| TrainingError::io("read", &folder, e);
        let mut steps = Vec::new();
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            steps.extend(name.to_str().and_then(step_of).filter(|step| Some(*step) < step_of(&last)));
        }
        steps.sort_unstable();
        for step in steps.iter().rev().skip(n - 1) {
            // Under another name first: what stands under its own is whole.
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

    /// The newest complete checkpoint, or `None` if the run was stopped before its first.
    pub fn last_checkpoint(&self) -> Result<Option<PathBuf>> {
        let Some(name) = self.last_name()? else {
            return Ok(None);
        };
        let path = self.checkpoints().join(name);
        match path.is_dir() {
            true => Ok(Some(path)),
            false => {
                Err(TrainingError::NoCheckpoint { path, problem: "`last` names it but it is gone".into() })
            }
        }
    }

    fn last_name(&self) -> Result<Option<String>> {
        let last = self.checkpoints().join(LAST);
        match fs::read_link(&last) {
            Ok(target) => Ok(Some(target.to_string_lossy().into_owned())),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            // Not a link: a text file that holds the name, where links are not to be had.
            Err(_) => match fs::read_to_string(&last) {
                Ok(name) => Ok(Some(name.trim().into())),
                Err(e) => Err(TrainingError::io("read", &last, e)),
            },
        }
    }
}

/// Makes `last` in the folder `checkpoints` name this one of them.
pub(crate) fn set_last(checkpoints: &Path, name: &str) -> Result<()> {
    let last = checkpoints.join(LAST);
    let fresh = checkpoints.join(format!("{PARTIAL}{LAST}"));
    remove_if_there(&fresh)?;
    link(name, &fresh).map_err(|e| TrainingError::io("write", &fresh, e))?;
    fs::rename(&fresh, &last).map_err(|e| TrainingError::io("rename", &fresh, e))?;
    sync(checkpoints)
}

/// `step-000100`; wider from a million steps on.
pub fn step_name(step: u64) -> String {
    format!("step-{step:06}")
}

/// The step in a [`step_name`].
fn step_of(name: &str) -> Option<u64> {
    name.strip_prefix("step-")?.parse().ok()
}

/// The `trainer_state.json` of a checkpoint.
pub fn read_trainer_state<S: DeserializeOwned>(checkpoint: &Path) -> Result<S> {
    read_json(&checkpoint.join(TRAINER_STATE))
}

/// The checkpoint a person means by `path`: a checkpoint, `last`, or a run folder, whose `checkpoints/last` it is. A
/// folder that holds a file named `marker` is a checkpoint.
pub fn find_checkpoint(path: &Path, marker: &str) -> Result<PathBuf> {
    let missing = |problem: String| TrainingError::NoCheckpoint { path: path.into(), problem };
    if !path.exists() {
        return Err(missing("there is no such path".into()));
    }
    let run = match path.file_name() {
        Some(name) if name == OsStr::new(LAST) => path.parent().and_then(Path::parent),
        _ => Some(path),
    };
    let named = run.and_then(|root| RunFolder { root: root.into() }.last_checkpoint().transpose());
    let candidates = [Some(path.to_path_buf()), named.transpose()?];
    candidates
        .into_iter()
        .flatten()
        .find(|candidate| candidate.join(marker).is_file())
        .ok_or_else(|| missing(format!("it has no `{marker}`, and no `checkpoints/{LAST}` that has one")))
}

#[cfg(unix)]
fn link(target: &str, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn link(target: &str, link: &Path) -> std::io::Result<()> {
    fs::write(link, target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_run() -> (tempfile::TempDir, RunFolder) {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::create(&folder.path().join("run"), &Config::default()).unwrap();
        (folder, run)
    }

    fn write_model(text: &'static str) -> impl FnOnce(&Path) -> Result<()> {
        move |folder| fs::write(folder.join("model"), text).map_err(|e| TrainingError::io("write", folder, e))
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_with_files_is_refused_and_untouched() {
        let (_keep, run) = new_run();
        let before = names(run.root());
        let error = RunFolder::create(run.root(), &Config::default()).unwrap_err();
        assert!(matches!(error, TrainingError::RunFolderNotEmpty(_)), "{error}");
        assert_eq!(names(run.root()), before);
    }

    #[test]
    fn resuming_needs_a_run_and_returns_its_configuration() {
        let (keep, run) = new_run();
        assert!(matches!(RunFolder::resume(keep.path()).unwrap_err(), TrainingError::NoRun(_)));
        let (again, config) = RunFolder::resume(run.root()).unwrap();
        assert_eq!((again, config), (run, Config::default()));
    }

    #[test]
    fn the_last_checkpoint_is_the_last_one_saved() {
        let (_keep, run) = new_run();
        assert_eq!(run.last_checkpoint().unwrap(), None);
        run.save_checkpoint(50, &1.5, write_model("a")).unwrap();
        let second = run.save_checkpoint(100, &0.1, write_model("b")).unwrap();
        assert_eq!(run.last_checkpoint().unwrap(), Some(second.clone()));
        assert_eq!(names(&run.checkpoints()), ["last", "step-000050", "step-000100"]);
        assert_eq!(read_trainer_state::<f64>(&second).unwrap(), 0.1);
        assert_eq!(fs::read_to_string(run.checkpoints().join("last/model")).unwrap(), "b");
    }

    #[test]
    fn only_the_newest_are_kept_when_not_all_are() {
        let (_keep, run) = new_run();
        for step in [2, 10, 9, 100] {
            run.save_checkpoint(step, &(), write_model("a")).unwrap();
        }
        run.keep_newest(0).unwrap();
        assert_eq!(names(&run.checkpoints()).len(), 5);
        run.keep_newest(2).unwrap();
        assert_eq!(names(&run.checkpoints()), ["last", "step-000010", "step-000100"]);
        assert!(run.last_checkpoint().unwrap().unwrap().ends_with("step-000100"));
    }

    #[test]
    fn a_failed_save_leaves_the_one_before() {
        let (_keep, run) = new_run();
        let first = run.save_checkpoint(1, &(), write_model("a")).unwrap();
        let full = |folder: &Path| {
            fs::write(folder.join("model"), "half").unwrap();
            Err(TrainingError::DiskFull(folder.into()))
        };
        assert!(matches!(run.save_checkpoint(2, &(), full).unwrap_err(), TrainingError::DiskFull(_)));
        assert_eq!(run.last_checkpoint().unwrap(), Some(first));
        assert_eq!(names(&run.checkpoints()), ["last", "step-000001"]);
    }

    #[test]
    fn a_run_killed_at_any_instant_of_saving_resumes_from_a_whole_checkpoint() {
        let (_keep, run) = new_run();
        let first = run.save_checkpoint(1, &(), write_model("a")).unwrap();
        let checkpoints = run.checkpoints();
        // Killed while writing, after the folder was renamed, and while the link was being replaced.
        fs::create_dir(checkpoints.join(".partial-step-000002")).unwrap();
        fs::write(checkpoints.join(".partial-step-000002/model"), "half").unwrap();
        fs::create_dir(checkpoints.join("step-000002")).unwrap();
        fs::write(checkpoints.join("step-000002/model"), "whole but unnamed").unwrap();
        link("step-000002", &checkpoints.join(".partial-last")).unwrap();

        let (run, _) = RunFolder::resume(run.root()).unwrap();
        assert_eq!(run.last_checkpoint().unwrap(), Some(first));
        assert_eq!(names(&checkpoints), ["last", "step-000001", "step-000002"]);
        let second = run.save_checkpoint(2, &(), write_model("b")).unwrap();
        assert_eq!(fs::read_to_string(second.join("model")).unwrap(), "b");
        assert_eq!(run.last_checkpoint().unwrap(), Some(second));
    }

    #[test]
    fn saving_a_step_again_renews_its_state_only() {
        let (_keep, run) = new_run();
        run.save_checkpoint(1, &"before", write_model("a")).unwrap();
        let again = run.save_checkpoint(1, &"after", write_model("never written")).unwrap();
        assert_eq!(fs::read_to_string(again.join("model")).unwrap(), "a");
        assert_eq!(read_trainer_state::<String>(&again).unwrap(), "after");
    }

    #[test]
    fn a_start_cut_short_can_be_started_again_or_resumed() {
        let keep = tempfile::tempdir().unwrap();
        fs::write(keep.path().join(".partial-config.toml"), "seed =").unwrap();
        let run = RunFolder::create(keep.path(), &Config::default()).unwrap();
        fs::remove_dir(run.checkpoints()).unwrap();
        let (run, _) = RunFolder::resume(run.root()).unwrap();
        assert_eq!(run.last_checkpoint().unwrap(), None);
    }

    #[test]
    fn a_checkpoint_is_found_by_any_of_its_names() {
        let (keep, run) = new_run();
        let saved = run.save_checkpoint(1, &(), write_model("a")).unwrap();
        for path in [run.root().to_path_buf(), run.checkpoints().join("last"), saved] {
            let found = find_checkpoint(&path, "model").unwrap();
            assert_eq!(fs::read_to_string(found.join("model")).unwrap(), "a", "{}", path.display());
        }
        let error = find_checkpoint(keep.path(), "model").unwrap_err().to_string();
        assert!(error.ends_with("it has no `model`, and no `checkpoints/last` that has one"), "{error}");
        assert!(find_checkpoint(&keep.path().join("none"), "model").is_err());
    }

    #[test]
    fn a_named_checkpoint_that_is_gone_is_an_error() {
        let (_keep, run) = new_run();
        let saved = run.save_checkpoint(1, &(), write_model("a")).unwrap();
        fs::remove_dir_all(saved).unwrap();
        assert!(matches!(run.last_checkpoint().unwrap_err(), TrainingError::NoCheckpoint { .. }));
    }
}
