//! What is to be compared with what: the file of a comparison, resolved before any work begins.
//!
//! ```toml
//! title = "Two losses"                     # of the report
//! base = "tiny.toml"                       # beside this file; without it, the default experiment
//! catalog = "1000"                         # short for `catalog.source=…`, for all arms
//! set = ["rl.steps=40"]               # values of all arms
//! seeds = [0, 1, 2]
//! baseline = "apo"                         # the arm that the others are measured against
//!
//! [[arm]]
//! name = "apo"                             # also the name of its folder
//!
//! [[arm]]
//! name = "wsft"
//! set = ["rl.loss.kind=wsft"]              # over those of all arms
//! ```
//!
//! Arms may differ in whatever comes after the warm start and in nothing before it. An arm with `alone = true` has a warm
//! start of its own and may differ in all but the seed, the evaluated shop and the evaluation.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::config::Config;
use crate::error::{Result, TrainingError};
use crate::run::branch::warm_start_differences;

/// Arms and seeds, every configuration valid and all of them comparable.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// What stands at the head of the report.
    pub title: String,
    /// Under each of which every arm runs, in the order of the file.
    pub seeds: Vec<u64>,
    /// Position of the arm that the others are measured against.
    pub baseline: usize,
    /// At least one, in the order of the file.
    pub arms: Vec<Arm>,
    /// The configuration of the warm starts: what the arms have in common, whatever else is in it.
    common: Config,
    /// How all runs are asked for: the file's path and the values over it, as they were given.
    whole_command: String,
    /// How a single run is asked for: `webshop train` with the flags that all arms have in common.
    command: String,
}

/// One of the things that are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Arm {
    /// In tables, charts and paths.
    pub name: String,
    /// The changed values as they were given.
    pub overrides: Vec<String>,
    /// Whether it has a warm start of its own.
    pub is_alone: bool,
    config: Config,
}

/// The file as it is written.
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

impl Comparison {
    /// Reads the file of a comparison and the configuration that it builds on. The values `set` (`KEY=VALUE`) stand over
    /// those that the file sets for all arms, and under those of single arms.
    pub fn load(path: &Path, set: &[String]) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|e| TrainingError::io("read", path, e))?;
        let file: File = toml::from_str(&text).map_err(|e| TrainingError::ConfigSyntax {
            origin: format!("`{}`", path.display()),
            problem: e.to_string().trim_end().to_string(),
        })?;
        Self::resolve(path, file, set)
    }

    fn resolve(path: &Path, file: File, set: &[String]) -> Result<Self> {
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
        shared.extend(file.catalog.map(|source| format!("catalog.source={}", toml::Value::String(source))));
        shared.extend_from_slice(set);
        let common = Config::load(base.as_deref(), &shared)?;
        let resolve = |arm: ArmEntry| {
            let config = Config::load(base.as_deref(), &[&shared[..], &arm.set[..]].concat())?;
            let differences = warm_start_differences(&common, &config);
            let found = differences.iter().find(|found| !arm.alone || is_read_by_evaluation(&found.key));
            if let Some(found) = found {
                let problem = match arm.alone {
                    true => "which decides about what all arms are judged by; set it for all arms",
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
            whole_command: format!("webshop compare --config {}{}", path.display(), flags(set)),
            command: train_command(base.as_deref(), &shared),
            common,
        })
    }

    /// The configuration of the warm start under `seed`.
    pub fn warm_start(&self, seed: u64) -> Config {
        Config { seed, ..self.common.clone() }
    }

    /// The command that makes all runs.
    pub fn whole_command(&self) -> &str {
        &self.whole_command
    }

    /// The command that makes the run of `arm` under `seed` alone, to the same bytes.
    pub fn command(&self, arm: &Arm, seed: u64) -> String {
        format!("{}{} --seed {seed}", self.command, flags(&arm.overrides))
    }

    /// Keeps the search index of a catalog that is a folder in `cache`, for all runs.
    pub fn keep_index_in(&mut self, cache: &Path) {
        let arms = self.arms.iter_mut().map(|arm| &mut arm.config);
        for config in arms.chain([&mut self.common]) {
            config.catalog.index_cache = Some(cache.into());
        }
    }
}

impl Arm {
    /// The configuration of its run under `seed`.
    pub fn config(&self, seed: u64) -> Config {
        Config { seed, ..self.config.clone() }
    }
}

fn train_command(base: Option<&Path>, shared: &[String]) -> String {
    let base = base.map(|base| format!(" --config {}", base.display())).unwrap_or_default();
    format!("webshop train{base}{}", flags(shared))
}

/// Changed values as a shell takes them, each after a space.
fn flags(values: &[String]) -> String {
    values.iter().map(|value| format!(" --set '{value}'")).collect()
}

/// Whether this key decides about the goals and steps that arms are judged on, or how.
fn is_read_by_evaluation(key: &str) -> bool {
    let judged =
        ["seed", "shop_r1.mix", "shop_r1.terminate_share", "shop_r1.eval_examples", "prompt.results_shown"];
    let practice = ["catalog.auxiliary_shops", "catalog.auxiliary_products", "evaluation.warm_start_every"];
    let in_section = key.starts_with("catalog.") || key.starts_with("evaluation.");
    judged.contains(&key) || (in_section && !practice.contains(&key))
}

fn is_folder_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_plain)
}

/// The first value that stands for the second time.
fn repeated<T: Ord + Copy>(values: &[T]) -> Option<T> {
    let mut seen = BTreeSet::new();
    values.iter().copied().find(|value| !seen.insert(*value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"
        seeds = [0, 3]
        baseline = "founding"
        set = ["rl.steps=7"]

        [[arm]]
        name = "apo"

        [[arm]]
        name = "founding"
        set = ["rl.loss.kind=wsft", "rl.steps=8"]
    "#;

    fn load(text: &str) -> Result<Comparison> {
        load_with(text, &[])
    }

    fn load_with(text: &str, set: &[String]) -> Result<Comparison> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("two.toml");
        fs::write(&file, text).unwrap();
        Comparison::load(&file, set)
    }

    #[test]
    fn an_arm_is_the_common_configuration_with_its_own_values_over_it() {
        let two = load(TWO).unwrap();
        let steps = |arm: &Arm| (arm.config(3).seed, arm.config(3).rl.steps);
        assert_eq!(two.arms.iter().map(steps).collect::<Vec<_>>(), [(3, 7), (3, 8)]);
        assert_eq!((two.baseline, two.seeds.as_slice()), (1, &[0, 3][..]));
        assert_eq!(
            two.command(&two.arms[1], 3),
            "webshop train --set 'rl.steps=7' --set 'rl.loss.kind=wsft' --set 'rl.steps=8' --seed 3"
        );
    }

    #[test]
    fn values_given_beside_the_file_are_over_those_of_all_arms_and_under_those_of_one() {
        let two = load_with(TWO, &["rl.steps=9".into(), "rl.lr=0.5".into()]).unwrap();
        let values = |arm: &Arm| (arm.config(0).rl.steps, arm.config(0).rl.lr);
        assert_eq!(two.arms.iter().map(values).collect::<Vec<_>>(), [(9, 0.5), (8, 0.5)]);
        assert!(two.whole_command().ends_with("two.toml --set 'rl.steps=9' --set 'rl.lr=0.5'"));
    }

    #[test]
    fn the_comparisons_that_come_along_are_valid() {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
        for (file, n_arms, n_seeds) in [
            ("learners.toml", 11, 3),
            ("nothing.toml", 10, 3),
            ("shop_r1_arms.toml", 6, 3),
            ("shop_r1_ablations.toml", 13, 1),
        ] {
            let comparison = Comparison::load(&configs.join(file), &[]).unwrap();
            assert_eq!((comparison.arms.len(), comparison.seeds.len()), (n_arms, n_seeds), "{file}");
        }
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let refusal = |from: &str, to: &str| {
            assert!(TWO.contains(from), "`{from}` is there to be replaced");
            let error = load(&TWO.replacen(from, to, 1)).unwrap_err().to_string();
            error.split_once("two.toml` ").map_or(error.clone(), |(_, problem)| problem.to_owned())
        };
        for (from, to, problem) in [
            ("\"apo\"", "\"founding\"", "cannot be used: two arms are named `founding`"),
            ("\"apo\"", "\"../a\"", "cannot be used: arm `../a` must be named by letters, digits and `-_.+`"),
            ("[0, 3]", "[3, 0, 3]", "cannot be used: seed `3` is named twice"),
            ("[0, 3]", "[]", "cannot be used: `seeds` names none"),
            ("= \"founding\"", "= \"grpo\"", "cannot be used: `baseline` names no arm: `grpo`"),
            (
                "\"rl.steps=8\"",
                "\"warm_start.lr=1\"",
                "cannot be used: arm `founding` changes `warm_start.lr`, which the common warm start depends on; set \
                 it for all arms, compare in another file, or give the arm a warm start of its own by `alone = true`",
            ),
            (
                "\"rl.steps=8\"",
                "\"seed=1\"",
                "cannot be used: arm `founding` changes `seed`, which the common warm start depends on; set it for \
                 all arms, compare in another file, or give the arm a warm start of its own by `alone = true`",
            ),
            ("rl.steps=8", "rl.lrr=8", "unknown configuration key `rl.lrr` (did you mean `rl.lr`?)"),
        ] {
            assert_eq!(refusal(from, to), problem);
        }
        assert!(refusal("seeds", "sseeds").contains("unknown field `sseeds`"));
        assert_eq!(
            refusal("\"rl.steps=8\"", "\"evaluation.episodes=7\"]\nalone = true #"),
            "cannot be used: arm `founding` changes `evaluation.episodes`, which decides about what all arms are judged \
             by; set it for all arms"
        );
    }
}
