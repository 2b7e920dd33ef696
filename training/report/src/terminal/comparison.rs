//! A comparison: a line for every run, with how far it is and how well it does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::terminal::braille::plot;
use crate::terminal::run::RunView;
use crate::terminal::{Paint, bar, fitted};
use webshop_training::ComparisonFolder;
use webshop_training::{Result, TrainingError};
use webshop_training::{Metric, Phase};

/// Characters of a bar of progress, and of a curve.
const BAR: usize = 12;
/// Characters of the column of names.
const NAMES: usize = 30;
/// Characters of steps taken and to be taken.
const STEPS: usize = 11;

/// The folder of a comparison as its runs come and grow.
#[derive(Debug)]
pub(super) struct ComparisonView {
    folder: ComparisonFolder,
    /// By path below the folder, so that a run stands where it stood.
    runs: BTreeMap<PathBuf, RunView>,
    finished: BTreeSet<PathBuf>,
}

impl ComparisonView {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: ComparisonFolder::new(folder), runs: BTreeMap::new(), finished: BTreeSet::new() }
    }

    /// Whether there is a report; until then, a run may be yet to come.
    pub(super) fn update(&mut self) -> Result<bool> {
        let root = self.folder.root().to_path_buf();
        let mut places = folders(&self.folder.warm_starts())?;
        for arm in folders(&self.folder.runs())? {
            places.extend(folders(&arm)?);
        }
        if places.is_empty() {
            return Err(TrainingError::bad_file(&root, "it holds no run and no runs of a comparison"));
        }
        self.finished.clear();
        for place in places {
            let name = place.strip_prefix(&root).unwrap_or(&place).to_path_buf();
            let mut run = match self.runs.remove(&name) {
                Some(run) => run,
                // A run that is just being begun has no configuration yet.
                None => match RunView::open(&place) {
                    Err(TrainingError::NoRun(_)) => continue,
                    opened => opened?,
                },
            };
            if run.update()? {
                self.finished.insert(name.clone());
            }
            self.runs.insert(name, run);
        }
        Ok(self.folder.report().exists())
    }

    pub(super) fn draw(&self, width: usize, height: usize, paint: Paint) -> String {
        let (n_finished, n_runs) = (self.finished.len(), self.runs.len());
        let head = format!("{}: {n_finished} of {n_runs} runs are finished", self.folder.root().display());
        let mut lines = vec![paint.strong(fitted(&head, width).trim_end()), String::new()];
        let columns = format!("{:NAMES$}  {:BAR$}  {:>STEPS$}  success, held out", "", "progress", "step");
        lines.push(paint.faint(fitted(&columns, width).trim_end()));
        lines.extend(self.runs.iter().map(|(name, run)| self.line(name, run, paint)));
        if lines.len() > height {
            let n_left_out = lines.len() - height + 1;
            lines.truncate(height.saturating_sub(1));
            lines.push(format!("and {n_left_out} more"));
        }
        lines.join("\n") + "\n"
    }

    fn line(&self, name: &Path, run: &RunView, paint: Paint) -> String {
        let is_warm_start = name.starts_with("warm-start");
        let (step, steps) = run.progress(if is_warm_start { Phase::WarmStart } else { Phase::Learn });
        let share = if self.finished.contains(name) { 1.0 } else { step as f64 / steps.max(1) as f64 };
        let curve = run.curve(Metric::EvalSuccessRate);
        // The warm start has a line of its own.
        let own = if is_warm_start { &curve[..] } else { run.since_warm_start(&curve) };
        let x = own.first().zip(own.last()).map_or([0.0, 1.0], |(first, last)| [first.0, last.0]);
        let x = if x[0] < x[1] { x } else { [x[0], x[0] + 1.0] };
        let last = own.last().map(|point| format!("{:.1} %", 100.0 * point.1)).unwrap_or_default();
        format!(
            "{}  {}  {:>STEPS$}  {}  {}",
            told(name),
            paint.curve(&bar(share, BAR)),
            format!("{step}/{steps}"),
            paint.curve(&plot(own, x, [0.0, 1.0], BAR, 1).concat()),
            paint.strong(&last)
        )
    }
}

/// Arm and seed in [`NAMES`] characters, of which a long name leaves room for the seed.
fn told(run: &Path) -> String {
    let part = |path: Option<&Path>| {
        path.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
    };
    let (arm, seed) = (part(run.parent()), part(Some(run)));
    fitted(&format!("{} {seed}", fitted(&arm, NAMES.saturating_sub(seed.chars().count() + 1))), NAMES)
}

/// The folders in a folder, by name; none if it is not there.
fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|e| TrainingError::io("read", folder, e))? {
        let path = entry.map_err(|e| TrainingError::io("read", folder, e))?.path();
        let is_whole = !path.file_name().unwrap_or_default().to_string_lossy().starts_with('.');
        if path.is_dir() && is_whole {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
