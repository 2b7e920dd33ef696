//! The plan of a comparison: its file, resolved before any run starts.
//!
//! ```toml
//! title = "Two losses"                     # of the report
//! base = "tiny.toml"                       # beside this file; without it, the default experiment
//! catalog = "1000"                         # short for `catalog.source=…`, for all arms
//! set = ["rl.steps=40"]               # values of all arms
//! seeds = [0, 1, 2]
//! baseline = "apo"                         # the arm that the others are compared with
//!
//! [[arm]]
//! name = "apo"                             # also the name of its folder
//!
//! [[arm]]
//! name = "wsft"
//! set = ["rl.loss.kind=wsft"]              # over those of all arms
//! ```
//!
//! Arms may differ in keys that are read after the warm start only. An arm with `alone = true` has its own
//! warm start and may differ in everything except the seed, the evaluated shop and the evaluation.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::config::{Config, text_override};
use crate::error::{Result, TrainingError};
use crate::run::branch::warm_start_differences;
use crate::sweep::changes::{Changes, Variation, set_flags, shell_quoted};

/// Arms and seeds, every configuration valid and all of them comparable.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The title of the report.
    pub title: String,
    /// The seeds of every arm, in the order of the file.
    pub seeds: Vec<u64>,
    /// Position of the arm that the others are compared with.
    pub baseline: usize,
    /// The arms, at least one, in the order of the file.
    pub arms: Vec<Arm>,
    /// The configuration of the common warm starts: the base with the values of all arms.
    common: Config,
    /// The command of the comparison, with the path of the file and the overrides as given.
    whole_command: String,
    /// The start of the command of a single run: `webshop train` with the flags of all arms.
    command: String,
}

/// One arm of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Arm {
    /// The name in tables, charts and paths.
    pub name: String,
    /// The changed values as they were given.
    pub overrides: Vec<String>,
    /// Whether it has a warm start of its own.
    pub is_alone: bool,
    config: Config,
}

/// The contents of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: Option<String>,
    base: Option<PathBuf>,
    catalog: Option<String>,
    #[serde(default)]
    set: Vec<String>,
    seeds: Vec<u64>,
    baseline: String,
    #[serde(rename = "arm")]
    arms: Vec<ArmEntry>,
}

/// One `[[arm]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArmEntry {
    name: String,
    #[serde(default)]
    alone: bool,
    #[serde(default)]
    set: Vec<String>,
}

impl File {
    /// With the seeds of `changes`, and its arms with each value. The baseline is that of the first value.
    fn changed(mut self, changes: &Changes) -> Self {
        if !changes.seeds.is_empty() {
            self.seeds.clone_from(&changes.seeds);
        }
        if let Some(Variation { key, values }) = &changes.vary {
            let name = |arm: &str, value: &str| format!("{arm}-{value}");
            let varied = |arm: &ArmEntry, value: &String| ArmEntry {
                name: name(&arm.name, value),
                alone: arm.alone,
                set: [&arm.set[..], &[format!("{key}={value}")]].concat(),
            };
            self.baseline = name(&self.baseline, &values[0]);
            self.arms =
                self.arms.iter().flat_map(|arm| values.iter().map(|value| varied(arm, value))).collect();
        }
        self
    }
}

impl Comparison {
    /// Reads the file of a comparison and its base configuration, with some `changes`.
    pub fn load(path: &Path, changes: &Changes) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|e| TrainingError::io("read", path, e))?;
        let file: File = toml::from_str(&text).map_err(|e| TrainingError::ConfigSyntax {
            origin: format!("`{}`", path.display()),
            problem: e.to_string().trim_end().to_string(),
        })?;
        Self::resolve(path, file.changed(changes), changes)
    }

    fn resolve(path: &Path, file: File, changes: &Changes) -> Result<Self> {
        let refused = |problem: String| TrainingError::bad_file(path, problem);
        let names: Vec<&str> = file.arms.iter().map(|arm| arm.name.as_str()).collect();
        if let Some(name) = names.iter().find(|name| !is_folder_name(name)) {
            return Err(refused(format!("arm `{name}` must be named by letters, digits and `-_.+`")));
        }
        if let Some(name) = repeated(&names) {
            return Err(refused(format!("two arms are named `{name}`")));
        }
        if let Some(seed) = repeated(&file.seeds) {
            return Err(refused(format!("seed `{seed}` is named twice")));
        }
        if file.seeds.is_empty() {
            return Err(refused("`seeds` names none".into()));
        }
        let Some(baseline) = names.iter().position(|name| **name == file.baseline) else {
            return Err(refused(format!("`baseline` names no arm: `{}`", file.baseline)));
        };
        let base = file.base.map(|base| path.parent().unwrap_or(Path::new("")).join(base));
        let mut shared = file.set;
        shared.extend(file.catalog.map(|source| text_override("catalog.source", &source)));
        shared.extend_from_slice(&changes.set);
        let common = Config::load(base.as_deref(), &shared)?;
        let resolve = |arm: ArmEntry| {
            let config = Config::load(base.as_deref(), &[&shared[..], &arm.set[..]].concat())?;
            let differences = warm_start_differences(&common, &config);
            let found =
                differences.iter().find(|found| !arm.alone || is_read_by_evaluation(&found.key, &common));
            if let Some(found) = found {
                let problem = match arm.alone {
                    true => "which decides how all arms are evaluated; set it for all arms",
                    false => {
                        "which the common warm start depends on; set it for all arms, compare in another file, or give \
                         the arm a warm start of its own by `alone = true`"
                    }
                };
                return Err(refused(format!("arm `{}` changes `{}`, {problem}", arm.name, found.key)));
            }
            Ok(Arm { name: arm.name, overrides: arm.set, is_alone: arm.alone, config })
        };
        let arms = file.arms.into_iter().map(resolve).collect::<Result<Vec<Arm>>>()?;
        Ok(Self {
            title: file.title.unwrap_or_else(|| "A comparison".into()),
            seeds: file.seeds,
            baseline,
            arms,
            whole_command: format!("webshop compare --config {}{}", quoted(path), changes.flags()),
            command: train_command(base.as_deref(), &shared) + &changes.device_flags,
            common,
        })
    }

    /// The configuration of the warm start under `seed`.
    pub fn warm_start(&self, seed: u64) -> Config {
        Config { seed, ..self.common.clone() }
    }

    /// The command of the whole comparison.
    pub fn whole_command(&self) -> &str {
        &self.whole_command
    }

    /// The command that repeats the run of `arm` under `seed` alone, with the same bytes.
    pub fn command(&self, arm: &Arm, seed: u64) -> String {
        format!("{}{} --seed {seed}", self.command, set_flags(&arm.overrides))
    }

    /// Caches a catalog folder and its search index in `cache`, for all runs.
    pub fn cache_in(&mut self, cache: &Path) {
        let arms = self.arms.iter_mut().map(|arm| &mut arm.config);
        for config in arms.chain([&mut self.common]) {
            config.catalog.cache = Some(cache.into());
        }
    }
}

impl Arm {
    /// The configuration of the run under `seed`.
    pub fn config(&self, seed: u64) -> Config {
        Config { seed, ..self.config.clone() }
    }
}

fn quoted(path: &Path) -> String {
    shell_quoted(&path.to_string_lossy())
}

fn train_command(base: Option<&Path>, shared: &[String]) -> String {
    let base = base.map(|base| format!(" --config {}", quoted(base))).unwrap_or_default();
    format!("webshop train{base}{}", set_flags(shared))
}

/// Whether the evaluation of the arms of `common` depends on this key.
fn is_read_by_evaluation(key: &str, common: &Config) -> bool {
    let evaluated = [
        "seed",
        "shop_r1.mix",
        "shop_r1.terminate_share",
        "shop_r1.eval_examples",
        "prompt.results_shown",
        "prompt.price_ranges",
        "prompt.detail_chars",
        "run.max_steps",
    ];
    let training_only = ["catalog.train_on_source", "catalog.auxiliary_shops", "evaluation.warm_start_every"];
    // Validation shops and those of the judgement have as many products as auxiliary ones.
    let has_shops = common.evaluation.has_validation_shops() || common.judgement.has_shops();
    let is_size = key == "catalog.auxiliary_products" && !has_shops;
    let in_section = ["catalog.", "evaluation.", "judgement."].iter().any(|section| key.starts_with(section));
    // In a layout, held-out steps are those of the run's demonstrator.
    let has_steps = common.shop_r1.eval_examples > 0 && !common.prompt.format.is_chat();
    let habits = || toml::Table::try_from(common.warm_start.habits).expect("habits have names");
    let is_demonstrator = |name: &str| name == "demonstrations" || habits().contains_key(name);
    let demonstrates = has_steps && key.strip_prefix("warm_start.").is_some_and(is_demonstrator);
    evaluated.contains(&key) || demonstrates || (in_section && !training_only.contains(&key) && !is_size)
}

fn is_folder_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_plain)
}

/// The first value that occurs twice.
fn repeated<T: Ord + Copy>(values: &[T]) -> Option<T> {
    let mut seen = BTreeSet::new();
    values.iter().copied().find(|value| !seen.insert(*value))
}

#[cfg(test)]
mod tests;
