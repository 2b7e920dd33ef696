//! A comparison as text: one line for each run, with its progress and success rate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use webshop_training::metrics::{Metric, Phase};
use webshop_training::sweep::ComparisonFolder;
use webshop_training::{Result, TrainingError};

use crate::terminal::braille::plot;
use crate::terminal::run::RunView;
use crate::terminal::{Paint, bar, fitted};

/// Width of a progress bar and of a curve, in characters.
const BAR: usize = 12;
/// Width of the column of names.
const NAMES: usize = 30;
/// Width of the column `step/steps`.
const STEPS: usize = 11;

/// The runs of a comparison folder.
#[derive(Debug)]
pub(super) struct ComparisonView {
    folder: ComparisonFolder,
    /// By path relative to the folder, so that the order of lines is stable.
    runs: BTreeMap<PathBuf, RunView>,
    finished: BTreeSet<PathBuf>,
}

impl ComparisonView {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: ComparisonFolder::new(folder), runs: BTreeMap::new(), finished: BTreeSet::new() }
    }

    /// Reads new runs and records. Returns whether the report is written; until then, more runs may follow.
    pub(super) fn update(&mut self) -> Result<bool> {
        let root = self.folder.root().to_path_buf();
        let paths = self.folder.begun()?;
        if paths.is_empty() {
            return Err(TrainingError::bad_file(
                &root,
                "it holds neither a run nor the runs of a comparison",
            ));
        }
        self.finished.clear();
        for path in paths {
            let name = path.strip_prefix(&root).unwrap_or(&path).to_path_buf();
            let mut run = match self.runs.remove(&name) {
                Some(run) => run,
                // A run that is being created has no configuration yet.
                None => match RunView::open(&path) {
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
        // The warm start has a line of its own, so its part of the curve is left out of the others.
        let own = if is_warm_start { &curve[..] } else { run.since_warm_start(&curve) };
        let x = own.first().zip(own.last()).map_or([0.0, 1.0], |(first, last)| [first.0, last.0]);
        let x = if x[0] < x[1] { x } else { [x[0], x[0] + 1.0] };
        let last = own.last().map(|point| format!("{:.1} %", 100.0 * point.1)).unwrap_or_default();
        format!(
            "{}  {}  {:>STEPS$}  {}  {}",
            label(name),
            paint.curve(&bar(share, BAR)),
            format!("{step}/{steps}"),
            paint.curve(&plot(own, x, [0.0, 1.0], BAR, 1).concat()),
            paint.strong(&last)
        )
    }
}

/// Arm and seed in [`NAMES`] characters; a long arm name is cut.
fn label(run: &Path) -> String {
    let part = |path: Option<&Path>| {
        path.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
    };
    let (arm, seed) = (part(run.parent()), part(Some(run)));
    fitted(&format!("{} {seed}", fitted(&arm, NAMES.saturating_sub(seed.chars().count() + 1))), NAMES)
}
