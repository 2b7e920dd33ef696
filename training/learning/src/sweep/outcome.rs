//! Reads the finished runs of a comparison and checks that they can be compared.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use webshop_products::{GoalId, hex, read_json_lines};

use crate::error::{Result, TrainingError};
use crate::metrics::{Record, Timing, read_records, read_timings};
use crate::run::atomic::read_json;
use crate::run::episodes::{EpisodeOutcome, read_episodes};
use crate::run::folder::{REFERENCE, RunFolder, step_name};
use crate::setup::fingerprint::Fingerprint;
use crate::sweep::plan::Comparison;
use crate::sweep::run::ComparisonFolder;
use crate::trainer::RunSummary;
use webshop_evaluation::next_action::StepResult;
use webshop_evaluation::{Judgement, Summary};

/// An arm with its run for each seed, in the order of the comparison.
pub struct ArmOutcome {
    /// Its name in the comparison file.
    pub name: String,
    /// One run per seed.
    pub runs: Vec<RunOutcome>,
}

/// A finished run.
pub struct RunOutcome {
    /// The last evaluation's figures.
    pub summary: Summary,
    /// Its episodes, in the order of the goals.
    pub episodes: Vec<EpisodeOutcome>,
    /// Results of its completions at held-out steps, if they are evaluated.
    pub step_results: Vec<StepResult>,
    /// How it was judged when it was over; `None` with `judgement.episodes = 0`.
    pub judgement: Option<Judgement>,
    /// All records with their timings.
    pub records: Vec<(Record, Timing)>,
    /// Versions and digests that the run depends on.
    pub fingerprint: Fingerprint,
    /// Digest of the model folder at the end of the warm start.
    pub reference: String,
}

/// Reads all runs of `comparison`. Fails if a run is not finished or does not match the others: another shop,
/// other goals, or another warm start of the same seed.
pub fn read_outcomes(comparison: &Comparison, folder: &ComparisonFolder) -> Result<Vec<ArmOutcome>> {
    let split = comparison.warm_start(0).evaluation.split.to_string();
    let mut arms: Vec<ArmOutcome> = Vec::new();
    for arm in &comparison.arms {
        let mut runs: Vec<RunOutcome> = Vec::new();
        // The first arm may be alone; what arms share is then of the first that is not.
        let sharing = arms.iter().zip(&comparison.arms).find(|(_, arm)| !arm.is_alone).map(|(arm, _)| arm);
        for (number, seed) in comparison.seeds.iter().enumerate() {
            let root = folder.run(&arm.name, *seed);
            let run = RunOutcome::read(&root, &split)?;
            if let Some(first) = arms.first().map(|arm| &arm.runs[0]).or(runs.first()) {
                run.check_same_tasks(first, true, &root)?;
            }
            if let Some(sibling) = arms.first().map(|arm| &arm.runs[number]) {
                run.check_same_judgement(sibling, &root)?;
            }
            if !arm.is_alone {
                if let Some(first) = sharing.map(|arm| &arm.runs[0]).or(runs.first()) {
                    run.check_same_tasks(first, false, &root)?;
                }
                if let Some(sibling) = sharing.map(|arm| &arm.runs[number]) {
                    run.check_same_warm_start(sibling, &root)?;
                }
            }
            runs.push(run);
        }
        arms.push(ArmOutcome { name: arm.name.clone(), runs });
    }
    Ok(arms)
}

impl RunOutcome {
    fn read(root: &Path, split: &str) -> Result<Self> {
        let (run, config) = RunFolder::open(root)?;
        let Some(learned) = RunSummary::of(&run)?.and_then(|summary| summary.learned) else {
            return Err(TrainingError::bad_file(root, "the run has not come to its end"));
        };
        let file = format!("{}.jsonl", step_name(learned.step));
        let completions = run.completions().join(&file);
        Ok(Self {
            summary: learned.summary,
            episodes: read_episodes(&run.episodes().join(&file))?,
            step_results: if learned.next_action.is_some() {
                read_json_lines(&completions)?
            } else {
                Vec::new()
            },
            judgement: match config.judgement.episodes {
                0 => None,
                _ => Some(read_json(&run.judgement())?),
            },
            records: read_records(root, split)?.into_iter().zip(read_timings(root)?).collect(),
            fingerprint: read_json(&run.fingerprint())?,
            reference: digest(&root.join(REFERENCE))?,
        })
    }

    /// The goals of the last evaluation with the numbers of their shops.
    fn goals(&self) -> impl Iterator<Item = (u64, GoalId)> {
        self.episodes.iter().map(|episode| (episode.shop, episode.goal))
    }

    /// Fails if the goals, rewards, prompts or steps differ from those of `other`. If one of them has its own warm
    /// start (`is_alone`), prompt format, training data, frozen weights and loss may differ.
    fn check_same_tasks(&self, other: &Self, is_alone: bool, root: &Path) -> Result<()> {
        // The tokenizer depends on the seed.
        let mut shop =
            Fingerprint { tokenizer: other.fingerprint.tokenizer.clone(), ..self.fingerprint.clone() };
        if is_alone {
            shop.prompt.clone_from(&other.fingerprint.prompt);
            shop.task_set.clone_from(&other.fingerprint.task_set);
            shop.base.clone_from(&other.fingerprint.base);
            shop.examples.clone_from(&other.fingerprint.examples);
            shop.loss.clone_from(&other.fingerprint.loss);
        }
        let steps = |run: &Self| {
            run.step_results.iter().map(|result| result.ground_truth.clone()).collect::<Vec<_>>()
        };
        let is_same =
            shop == other.fingerprint && self.goals().eq(other.goals()) && steps(self) == steps(other);
        match is_same {
            true => Ok(()),
            false => Err(TrainingError::bad_file(
                root,
                "its shop, rewards, prompts or goals are not those of the other runs; remove it and compare again",
            )),
        }
    }

    /// Fails if the runs of a seed were judged on other goals. A run that was not judged is compared with none.
    fn check_same_judgement(&self, sibling: &Self, root: &Path) -> Result<()> {
        let judged_on = |judgement: &Judgement| -> Vec<(String, usize)> {
            judgement.sets.iter().map(|set| (set.title(), set.shops)).collect()
        };
        match (&self.judgement, &sibling.judgement) {
            (Some(own), Some(other)) if judged_on(own) != judged_on(other) => Err(TrainingError::bad_file(
                root,
                "it was not judged on the goals of the other runs of its seed; set `judgement` for all arms alike",
            )),
            _ => Ok(()),
        }
    }

    fn check_same_warm_start(&self, sibling: &Self, root: &Path) -> Result<()> {
        let is_same = self.reference == sibling.reference
            && self.fingerprint.tokenizer == sibling.fingerprint.tokenizer;
        match is_same {
            true => Ok(()),
            false => Err(TrainingError::bad_file(
                root,
                "its warm start is not that of the other runs of its seed; remove it and compare again",
            )),
        }
    }
}

/// The digest of a folder: of the relative paths and the bytes of its files, by path.
fn digest(folder: &Path) -> Result<String> {
    let mut files = Vec::new();
    collect_files(folder, &mut files)?;
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let bytes = fs::read(&file).map_err(|e| TrainingError::io("read", &file, e))?;
        hash.update(file.strip_prefix(folder).unwrap_or(&file).as_os_str().as_encoded_bytes());
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    Ok(hex(&hash.finalize()))
}

/// The files below a folder.
fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let failed = |e| TrainingError::io("read", folder, e);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        match path.is_dir() {
            true => collect_files(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}
