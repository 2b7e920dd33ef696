//! Trains the runs of a comparison, and resumes unfinished ones.

use std::borrow::Cow;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use webshop_lm::device::Compute;

use crate::config::{Config, KeyDifference};
use crate::error::{Result, TrainingError};
use crate::observer::{Observer, Silent};
use crate::run::atomic::read_json;
use crate::run::branch::{branch_run, warm_start_differences};
use crate::run::folder::RunFolder;
use crate::setup::fingerprint::Fingerprint;
use crate::sweep::plan::{Arm, Comparison};
use crate::sweep::queue::run_in_order;
use crate::trainer::{RunSummary, TrainOptions, compute_or_cpu, train, warm_up};

/// The folder of a comparison: its runs, shared values and report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparisonFolder {
    root: PathBuf,
}

impl ComparisonFolder {
    /// The folder at `root`, which need not exist yet.
    pub fn new(root: &Path) -> Self {
        Self { root: root.into() }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of the warm starts.
    pub fn warm_starts(&self) -> PathBuf {
        self.root.join("warm-start")
    }

    /// The folder of the arms.
    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// The folder of V* tables, which arms with equal value keys share.
    pub fn values(&self) -> PathBuf {
        self.root.join("values")
    }

    /// The page of the report.
    pub fn report(&self) -> PathBuf {
        self.root.join("report.html")
    }

    /// The tables of the report as Markdown.
    pub fn table(&self) -> PathBuf {
        self.root.join("table.md")
    }

    /// The warm start of the runs under `seed`.
    pub fn warm_start(&self, seed: u64) -> PathBuf {
        self.warm_starts().join(format!("seed-{seed}"))
    }

    /// The run of the arm of this name under `seed`.
    pub fn run(&self, arm: &str, seed: u64) -> PathBuf {
        self.runs().join(arm).join(format!("seed-{seed}"))
    }

    /// The folders of the warm starts and of the runs that were begun, sorted by path within each; hidden folders, which
    /// are being created, are left out. Empty if the folder is none of a comparison.
    pub fn begun(&self) -> Result<Vec<PathBuf>> {
        let mut paths = subfolders(&self.warm_starts())?;
        for arm in subfolders(&self.runs())? {
            paths.extend(subfolders(&arm)?);
        }
        Ok(paths)
    }
}

/// The subfolders of a folder, sorted by name, without hidden ones; empty if the folder does not exist.
fn subfolders(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|e| TrainingError::io("read", folder, e))? {
        let path = entry.map_err(|e| TrainingError::io("read", folder, e))?.path();
        let is_visible = !path.file_name().unwrap_or_default().to_string_lossy().starts_with('.');
        if path.is_dir() && is_visible {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// What a comparison is made with besides its plan.
#[derive(Clone, Copy)]
pub struct CompareOptions<'a> {
    /// Runs at a time, each on its share of the threads.
    pub n_jobs: NonZeroUsize,
    /// Device, dtype and kernels; `None` for the CPU backend. Runs that were begun with others are refused.
    pub compute: Option<&'a Compute>,
    /// Creates the observer of the named run.
    pub observe: &'a (dyn Fn(&str) -> Box<dyn Observer> + Sync),
    /// Writes the report of a finished run.
    pub write_report: &'a (dyn Fn(&RunFolder) -> Result<PathBuf> + Sync),
    /// Once it is set, the running runs write a checkpoint and [`TrainingError::Interrupted`] is returned; another call
    /// continues them. Set by a run that fails.
    pub stop: Option<&'a AtomicBool>,
}

impl<'a> CompareOptions<'a> {
    /// One run at a time on the CPU backend, silent, which nothing stops.
    pub fn new(write_report: &'a (dyn Fn(&RunFolder) -> Result<PathBuf> + Sync)) -> Self {
        let n_jobs = NonZeroUsize::MIN;
        Self { n_jobs, compute: None, observe: &|_| Box::new(Silent), write_report, stop: None }
    }
}

/// Trains the missing runs of `comparison` in `folder`. The runs have the same bytes for any number of jobs and threads
/// and any interruption.
///
/// # Errors
/// Before any training if the folder has a run with another configuration; the error names the key.
pub fn compare(
    comparison: &Comparison,
    folder: &ComparisonFolder,
    options: CompareOptions<'_>,
) -> Result<()> {
    let (compute, never) = (compute_or_cpu(options.compute)?, AtomicBool::new(false));
    let CompareOptions { n_jobs, observe, write_report, stop, .. } = options;
    // Jobs share the device, which no job may use while another records a step.
    let compute = if n_jobs.get() > 1 { Cow::Owned(compute.eager()) } else { compute };
    let stop = stop.unwrap_or(&never);
    let work = Work { compute: &compute, comparison, folder, observe, write_report, stop };
    work.check()?;
    let n_seeds = comparison.seeds.len();
    // The warm starts first, then arm by arm: neighbours in the queue have different seeds, so that the
    // second run of a seed finds the V* of its first.
    let n_runs = comparison.arms.len() * n_seeds;
    let waits_for: Vec<Option<usize>> =
        (0..n_seeds + n_runs).map(|item| (item >= n_seeds).then(|| (item - n_seeds) % n_seeds)).collect();
    let n_threads = (rayon::current_num_threads() / n_jobs).max(1);
    let mut errors = run_in_order(n_jobs.get(), &waits_for, |item| {
        let threads = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build();
        let threads = threads.map_err(|e| TrainingError::Threads { n_threads, problem: e.to_string() })?;
        let made = threads.install(|| match item.checked_sub(n_seeds) {
            None => work.warm_start(comparison.seeds[item]),
            Some(run) => work.run(&comparison.arms[run / n_seeds], comparison.seeds[run % n_seeds]),
        });
        if made.is_err() {
            // Running runs stop at their next checkpoint.
            stop.store(true, Ordering::Relaxed);
        }
        made
    });
    // A failure comes before the interruptions that it caused.
    errors.sort_by_key(|error| matches!(error, TrainingError::Interrupted { .. }));
    errors.into_iter().next().map_or(Ok(()), Err)
}

/// The state that all workers share.
struct Work<'a> {
    compute: &'a Compute,
    comparison: &'a Comparison,
    folder: &'a ComparisonFolder,
    observe: &'a (dyn Fn(&str) -> Box<dyn Observer> + Sync),
    write_report: &'a (dyn Fn(&RunFolder) -> Result<PathBuf> + Sync),
    stop: &'a AtomicBool,
}

impl Work<'_> {
    /// Fails if a run in the folder has another configuration.
    fn check(&self) -> Result<()> {
        for &seed in &self.comparison.seeds {
            self.begun_warm_start(seed)?;
            for arm in &self.comparison.arms {
                self.begun_run(arm, seed)?;
            }
        }
        Ok(())
    }

    /// The warm start of `seed`, if it was started.
    fn begun_warm_start(&self, seed: u64) -> Result<Option<RunFolder>> {
        let config = self.comparison.warm_start(seed);
        self.begun(&self.folder.warm_start(seed), |begun| warm_start_differences(begun, &config))
    }

    /// The run of `arm` under `seed`, if it was started.
    fn begun_run(&self, arm: &Arm, seed: u64) -> Result<Option<RunFolder>> {
        let config = self.config(arm, seed);
        self.begun(&self.folder.run(&arm.name, seed), |begun| begun.differences(&config))
    }

    /// The run at `root`, if there is one; fails if `differences` of its configuration are not empty, or if it was begun
    /// on another device.
    fn begun(
        &self,
        root: &Path,
        differences: impl Fn(&Config) -> Vec<KeyDifference>,
    ) -> Result<Option<RunFolder>> {
        let (run, config) = match RunFolder::resume(root) {
            Err(TrainingError::NoRun(_)) => return Ok(None),
            resumed => resumed?,
        };
        let refused = |made: String, here: String| {
            let problem = format!(
                "it was made with {made}, and this comparison says {here}; remove it, or use another folder"
            );
            Err(TrainingError::bad_file(root, problem))
        };
        if let Some(found) = differences(&config).first() {
            return refused(format!("`{} = {}`", found.key, found.here), format!("`{}`", found.there));
        }
        let path = run.fingerprint();
        let begun: Option<Fingerprint> = path.is_file().then(|| read_json(&path)).transpose()?;
        let (made, here) = (begun.map(|begun| begun.compute), self.compute.recorded_kind());
        match made.filter(|made| *made != here) {
            Some(made) => refused(device_in_words(&made), device_in_words(&here)),
            None => Ok(Some(run)),
        }
    }

    /// The configuration of the run of `arm` under `seed`.
    fn config(&self, arm: &Arm, seed: u64) -> Config {
        let mut config = arm.config(seed);
        // With adaptive N, V* of a goal depends on the step at which an arm first draws it, so it is not
        // shared.
        config.value.cache = (!config.value.adaptive).then(|| self.folder.values());
        config
    }

    fn options<'o>(&'o self, observer: &'o dyn Observer) -> TrainOptions<'o> {
        let (compute, stop) = (Some(self.compute), Some(self.stop));
        TrainOptions { compute, observer, stop, ..TrainOptions::default() }
    }

    fn warm_start(&self, seed: u64) -> Result<()> {
        let config = self.comparison.warm_start(seed);
        let run = match self.begun_warm_start(seed)? {
            Some(run) if RunSummary::of(&run)?.is_some_and(|summary| summary.warm_start.is_some()) => {
                return Ok(());
            }
            Some(run) => run,
            None => RunFolder::create(&self.folder.warm_start(seed), &config)?,
        };
        let observer = (self.observe)(&format!("warm start, seed {seed}"));
        warm_up(&config, &run, self.options(observer.as_ref())).map(drop)
    }

    fn run(&self, arm: &Arm, seed: u64) -> Result<()> {
        let config = self.config(arm, seed);
        let root = self.folder.run(&arm.name, seed);
        let run = match self.begun_run(arm, seed)? {
            Some(run) if RunSummary::of(&run)?.is_some_and(|summary| summary.learned.is_some()) => {
                // It may have been interrupted between its summary and its report.
                return if run.report().exists() { Ok(()) } else { (self.write_report)(&run).map(drop) };
            }
            Some(run) => run,
            None if arm.is_alone => RunFolder::create(&root, &config)?,
            None => {
                let (warm_start, _) = RunFolder::open(&self.folder.warm_start(seed))?;
                branch_run(&warm_start, &root, &config)?
            }
        };
        run.save_command(&self.comparison.command(arm, seed))?;
        let observer = (self.observe)(&format!("{}, seed {seed}", arm.name));
        train(&config, &run, self.options(observer.as_ref()))?;
        (self.write_report)(&run).map(drop)
    }
}

/// Device, dtype and kernels of a recorded kind.
fn device_in_words(recorded: &str) -> String {
    if recorded.is_empty() { "the CPU backend".into() } else { format!("`{recorded}`") }
}
