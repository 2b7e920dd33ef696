//! Rules that split goals into training, validation and test: by family, by product, the paper's, verl-agent's.
//!
//! Results under different rules are not comparable, so the split enters the fingerprint of a
//! [`crate::GoalSet`].
//!
//! [`SplitRule::VerlAgent`] **leaks**: its training and test goals overlap almost completely. It exists only
//! to reproduce published numbers.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::goal::GoalId;
use webshop_pycompat::PythonRandom;

/// The seed with which the original shuffles its goals.
pub(crate) const SHUFFLE_SEED: u64 = 233;

/// The paper's ranges of the shuffled goals; the rest is for training.
const PAPER_TEST: Range<usize> = 0..500;
const PAPER_VALIDATION: Range<usize> = 500..1_500;

/// verl-agent evaluates on this many first goals of each worker and trains on the others.
const VERL_TEST: usize = 500;

/// Seeds of verl-agent's workers in its example scripts: 16 training groups, 128 evaluation environments.
const VERL_TRAIN_SEEDS: Range<u64> = 0..16;
const VERL_TEST_SEEDS: Range<u64> = 1_000..1_128;

/// A rule that splits goals into training, validation and test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SplitRule {
    /// Disjoint by family: products that share a title, or a query and the first word of the title, are on one
    /// side. 60 % of the products, 10 % and 30 %, up to the size of a family, whatever the seed.
    #[default]
    ByFamily,
    /// Disjoint by product: 60 % of the products, 10 % and 30 %, whatever the seed. Near-copies of a test
    /// product may be trained on.
    ByProduct,
    /// The split of Yao et al. 2022: goals in catalog order, shuffled by Python's generator with seed 233;
    /// the first 500 are for testing, the next 1,000 for validation, the rest for training. Goals of one
    /// product (with different options) may be in several splits.
    Paper,
    /// verl-agent's split, **leaky**: each worker shuffles all goals with its own seed and splits them at
    /// 500; training and evaluation workers have different seeds. Training holds every goal that some
    /// training worker may use, test and validation every goal that some evaluation worker may use.
    VerlAgent,
}

impl SplitRule {
    const NAMES: [(Self, &str); 4] = [
        (Self::ByFamily, "by-family"),
        (Self::ByProduct, "by-product"),
        (Self::Paper, "paper"),
        (Self::VerlAgent, "verl-agent"),
    ];

    /// Whether test goals may also be training goals.
    pub fn is_leaky(self) -> bool {
        self == Self::VerlAgent
    }

    /// The least number of goals that the rule can split.
    pub fn min_goals(self) -> usize {
        match self {
            Self::ByFamily | Self::ByProduct => 0,
            Self::Paper => PAPER_VALIDATION.end + 1,
            Self::VerlAgent => VERL_TEST + 1,
        }
    }
}

impl fmt::Display for SplitRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMES.iter().find(|(rule, _)| rule == self);
        f.pad(named.map_or("", |(_, name)| name))
    }
}

/// The text names no [`SplitRule`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown split rule `{0}`; use `by-family`, `by-product`, `paper` or `verl-agent`")]
pub struct UnknownSplitRule(String);

impl FromStr for SplitRule {
    type Err = UnknownSplitRule;

    fn from_str(text: &str) -> Result<Self, UnknownSplitRule> {
        let named = Self::NAMES.iter().find(|(_, name)| *name == text);
        named.map(|(rule, _)| *rule).ok_or_else(|| UnknownSplitRule(text.into()))
    }
}

/// Training, validation and test by the paper's rule, each ascending.
///
/// # Panics
/// Below [`SplitRule::min_goals`].
pub(crate) fn paper(n_goals: usize) -> [Vec<GoalId>; 3] {
    let shuffled = shuffled(n_goals, SHUFFLE_SEED);
    let part = |range: Range<usize>| sorted(shuffled[range].to_vec());
    [part(PAPER_VALIDATION.end..n_goals), part(PAPER_VALIDATION), part(PAPER_TEST)]
}

/// Training, validation and test by verl-agent's rule, each ascending.
///
/// # Panics
/// Below [`SplitRule::min_goals`].
pub(crate) fn verl_agent(n_goals: usize) -> [Vec<GoalId>; 3] {
    let any = |seeds: Range<u64>, part: Range<usize>| {
        let mut is_in = vec![false; n_goals];
        for seed in seeds {
            for goal in &shuffled(n_goals, seed)[part.clone()] {
                is_in[goal.0 as usize] = true;
            }
        }
        (0..n_goals as u32).map(GoalId).filter(|goal| is_in[goal.0 as usize]).collect::<Vec<_>>()
    };
    let test = any(VERL_TEST_SEEDS, 0..VERL_TEST);
    [any(VERL_TRAIN_SEEDS, VERL_TEST..n_goals), test.clone(), test]
}

fn shuffled(n_goals: usize, seed: u64) -> Vec<GoalId> {
    let mut goals: Vec<GoalId> = (0..n_goals as u32).map(GoalId).collect();
    PythonRandom::new(seed).shuffle(&mut goals);
    goals
}

fn sorted(mut goals: Vec<GoalId>) -> Vec<GoalId> {
    goals.sort_unstable();
    goals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_splits_the_shuffled_goals_by_range() {
        let [train, validation, test] = paper(6_910);
        assert_eq!([train.len(), validation.len(), test.len()], [5_410, 1_000, 500]);
        // >>> goals = list(range(6910)); random.seed(233); random.shuffle(goals); goals[0], goals[500],
        // goals[1500]
        let firsts = [(&test, 3_963), (&validation, 3_809), (&train, 6_204)];
        assert!(firsts.iter().all(|(part, goal)| part.contains(&GoalId(*goal))));
        let mut all = [train, validation, test].concat();
        all.sort_unstable();
        assert!(all.into_iter().eq((0..6_910).map(GoalId)), "every goal is in one part");
    }

    #[test]
    fn verl_agents_test_goals_are_training_goals() {
        let [train, _, test] = verl_agent(6_910);
        assert_eq!([train.len(), test.len()], [6_910; 2], "every test goal is a training goal");
        // The first worker of each kind, counted in Python: 457 of 500 test goals are trained on.
        let [trains, tests] = [VERL_TRAIN_SEEDS, VERL_TEST_SEEDS].map(|seeds| shuffled(6_910, seeds.start));
        let is_shared = |goal: &&GoalId| trains[VERL_TEST..].contains(goal);
        assert_eq!(tests[..VERL_TEST].iter().filter(is_shared).count(), 457);
    }

    #[test]
    fn names_round_trip() {
        for (rule, name) in SplitRule::NAMES {
            assert_eq!((rule.to_string().as_str(), name.parse()), (name, Ok(rule)));
            assert_eq!(serde_json::to_string(&rule).unwrap(), format!("\"{name}\""));
        }
        assert!("random".parse::<SplitRule>().is_err());
    }
}
