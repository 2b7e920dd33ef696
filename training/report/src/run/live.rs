//! Runs in progress, for a page that is loaded again and again.
//!
//! [`LiveRuns`] is a growing list of [`LiveRun`]s: run folders, and those of comparisons as they are begun. A
//! run's [`RunProgress`] has its latest numbers and its charts, made of the records so far. Only lines that are new are
//! read, and charts are drawn again only if there are any.
//!
//! A run whose folder is not there yet is waited for.

mod progress;

pub use crate::run::live::progress::{Figure, LiveRun, PhaseProgress, RunProgress, Stage};

use std::fs;
use std::path::{Path, PathBuf};

use webshop_training::sweep::ComparisonFolder;
use webshop_training::{Result, TrainingError};

/// Run folders and comparison folders to look at.
#[derive(Debug)]
pub struct LiveRuns {
    comparisons: Vec<ComparisonFolder>,
    runs: Vec<LiveRun>,
}

impl LiveRuns {
    /// The runs in these folders. A folder that is empty or not there is taken for that of a run to come.
    ///
    /// # Errors
    /// If a path is no folder, or holds other things than a run or a comparison, or a run's configuration cannot be
    /// read.
    pub fn open(folders: &[PathBuf]) -> Result<Self> {
        let mut live = Self { comparisons: Vec::new(), runs: Vec::new() };
        for folder in folders {
            let mut run = LiveRun::new(folder);
            let comparison = ComparisonFolder::new(folder);
            if run.config()?.is_some() || is_to_come(folder)? {
                live.runs.push(run);
            } else if comparison.warm_starts().is_dir() || comparison.runs().is_dir() {
                live.comparisons.push(comparison);
            } else {
                let problem = "it holds neither a run of `webshop train` nor a comparison; a folder that is empty or \
                               not there yet is watched until a run begins in it";
                return Err(TrainingError::bad_file(folder, problem));
            }
        }
        live.update()?;
        Ok(live)
    }

    /// Adds the runs of comparisons that were begun since the last call, behind the others.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn update(&mut self) -> Result<()> {
        for comparison in &self.comparisons {
            for path in comparison.begun()? {
                if !self.runs.iter().any(|run| run.folder() == path) {
                    self.runs.push(LiveRun::new(&path));
                }
            }
        }
        Ok(())
    }

    /// The runs so far, numbered from 0. A run keeps its number.
    pub fn runs(&mut self) -> &mut [LiveRun] {
        &mut self.runs
    }
}

/// Whether a run may begin in a folder: it is not there, or holds at most remains of interrupted writes.
fn is_to_come(folder: &Path) -> Result<bool> {
    let failed = |e| TrainingError::io("read", folder, e);
    if !fs::exists(folder).map_err(failed)? {
        return Ok(true);
    }
    if !folder.is_dir() {
        return Ok(false);
    }
    for entry in fs::read_dir(folder).map_err(failed)? {
        if !entry.map_err(failed)?.file_name().to_string_lossy().starts_with('.') {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use webshop_training::RunFolder;
    use webshop_training::config::Config;

    #[test]
    fn a_folder_without_files_is_waited_for_and_another_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let to_come = [dir.path().join("not/there"), dir.path().to_path_buf()];
        let mut live = LiveRuns::open(&to_come).unwrap();
        let stages: Vec<Stage> = live.runs().iter_mut().map(|run| run.progress().unwrap().stage).collect();
        assert_eq!(stages, [Stage::Waiting, Stage::Waiting]);
        let file = dir.path().join("a.txt");
        fs::write(&file, "").unwrap();
        for wrong in [file, dir.path().to_path_buf()] {
            let error = LiveRuns::open(std::slice::from_ref(&wrong)).unwrap_err().to_string();
            let begin = format!("`{}` cannot be used: it holds neither a run", wrong.display());
            assert!(error.starts_with(&begin), "{error}");
        }
    }

    #[test]
    fn runs_of_a_comparison_are_added_as_they_begin() {
        let dir = tempfile::tempdir().unwrap();
        let comparison = ComparisonFolder::new(dir.path());
        let begin = |folder: &Path| RunFolder::create(folder, &Config::default()).unwrap();
        begin(&comparison.run("grpo", 1));
        let mut live = LiveRuns::open(&[dir.path().to_path_buf()]).unwrap();
        begin(&comparison.run("apo", 1));
        live.update().unwrap();
        live.update().unwrap();
        let folders: Vec<&Path> = live.runs().iter().map(|run| run.folder()).collect();
        assert_eq!(folders, [comparison.run("grpo", 1), comparison.run("apo", 1)], "numbers are kept");
        let progress = live.runs()[0].progress().unwrap();
        assert_eq!((progress.stage, progress.figures.len()), (Stage::Running, 0));
    }
}
