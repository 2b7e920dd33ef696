//! One record a step: what was measured, in files that a program can read and that resume exactly.
//!
//! A [`Record`] is a step with its measured [`Metric`]s; a [`MetricsWriter`] appends it to `metrics.jsonl` (one object a
//! line, absent metrics absent) and `metrics.csv` (one column for each metric, absent ones empty). Numbers are printed
//! with the fewest digits that read back to the same bits, and no clock is in them: equal seeds give equal bytes. How
//! long things took goes to `timings.jsonl`, as [`Timing`]s. An events file repeats both for TensorBoard, and its clock
//! makes it one that is compared with none.
//!
//! Every metric is defined once, as a variant of [`Metric`]; `writer` holds the files, `events` writes the one for
//! TensorBoard, `follow` reads along while they grow. Nothing is averaged or smoothed here.

mod events;
mod follow;
pub(crate) mod record;
mod writer;

pub use crate::metrics::follow::Follower;
pub use crate::metrics::writer::{MetricsPosition, MetricsWriter, read_records, read_timings};

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// Everything that is ever recorded. Rates are shares of 0 to 1.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Metric {
            /// All of them, in the order of the columns.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The tag under which it is recorded.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// What it means, in one line.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+),)+ }
            }
        }
    };
}

metrics! {
    /// Share of the step's episodes with reward exactly 1.
    RolloutSuccessRate = "rollout/success_rate",
    /// Mean reward of the step's episodes.
    RolloutTaskScore = "rollout/task_score",
    /// Mean number of actions in the step's episodes.
    RolloutEpisodeLen = "rollout/episode_len",
    /// Share of the step's actions that the page offered.
    RolloutValidActionRate = "rollout/valid_action_rate",
    /// Share of the step's completions that did not have the form their prompt format asks for.
    RolloutMalformedRate = "rollout/malformed_rate",
    /// Mean over episodes of what malformed completions took off the reward that was learned from; no part of the scores.
    RolloutMalformedPenalty = "rollout/malformed_penalty",
    /// Mean number of tokens the model wrote in an episode.
    RolloutTokens = "rollout/tokens",
    /// Stage of the curriculum, from 0, where there is one.
    RolloutStage = "rollout/stage",
    /// Tokens the model has written for learning so far, those of reference rollouts included.
    RolloutTokensTotal = "rollout/tokens_total",
    /// Share of the step's episodes in which the model wrote down a thought.
    RolloutThinkingRate = "rollout/thinking_rate",
    /// Mean factor for the kind of product bought in the step's episodes; nothing bought counts 0 here and in the next three.
    RolloutRewardType = "rollout/reward_type",
    /// Mean share of the wanted attributes that the product has.
    RolloutRewardAttributes = "rollout/reward_attributes",
    /// Mean share of the wanted options that were chosen.
    RolloutRewardOptions = "rollout/reward_options",
    /// Share of the step's episodes that bought at a price in reach.
    RolloutRewardPrice = "rollout/reward_price",
    /// Mean hierarchical reward of the step's completions, where single steps are practised; here and in the next three.
    RolloutReward = "rollout/reward",
    /// Share of the completions that do what was really done, queries by ROUGE-L over .75.
    RolloutExactAction = "rollout/exact_action",
    /// Share of the completions of the type of what was really done.
    RolloutTypeAccuracy = "rollout/type_accuracy",
    /// Steps that were left out: of goals without a demonstration, or with prompts that leave no room for a completion.
    RolloutDroppedSteps = "rollout/dropped_steps",
    /// The loss whose gradient was stepped along, before clipping.
    TrainLoss = "train/loss",
    /// k1: mean over episodes of Σₜ (log π − log π_ref), in nats an episode; its expectation is the KL to the reference.
    TrainApproxKl = "train/approx_kl",
    /// k3: mean over tokens of exp(−d) − 1 + d with d = log π − log π_ref; never negative, in nats a token.
    TrainKlK3 = "train/kl_k3",
    /// Mean entropy of the sampling distribution over the tokens written, in nats.
    TrainEntropy = "train/entropy",
    /// Global gradient norm before clipping.
    TrainGradNorm = "train/grad_norm",
    /// Mean of A = r − V*.
    TrainAdvMean = "train/adv_mean",
    /// Standard deviation of A over the step's episodes.
    TrainAdvStd = "train/adv_std",
    /// (Σw)²/Σw² of the episodes' weights.
    TrainEffectiveSamples = "train/effective_samples",
    /// Share of the tokens learned from whose gradient a clip took.
    TrainClipfrac = "train/clipfrac",
    /// Mean over groups of the standard deviation of their rewards; of groups of two or more.
    TrainGroupSpread = "train/group_spread",
    /// Largest |log π at training − log π at sampling| of a token: two computations of one number.
    TrainLogProbGap = "train/log_prob_gap",
    /// Mean of those differences.
    TrainLogProbGapMean = "train/log_prob_gap_mean",
    /// Share of tokens that the nucleus left out in training and that were counted in: rounding, where episodes are new.
    TrainOutsideNucleus = "train/outside_nucleus",
    /// Share of tokens that the reference's nucleus leaves out and that were counted in.
    TrainOutsideReference = "train/outside_reference",
    /// Learning rate of the step.
    TrainLr = "train/lr",
    /// Steps so far that were skipped because all rewards said the same.
    TrainSkippedNoSignal = "train/skipped_no_signal",
    /// Steps so far that were refused because a gradient was not a number.
    TrainSkippedNonFinite = "train/skipped_non_finite",
    /// Share of demonstrated tokens that the model would have chosen.
    TrainTokenAccuracy = "train/token_accuracy",
    /// Share of the step's goals whose V* was known before.
    ValueHitRate = "value/hit_rate",
    /// Share of the states that the step's episodes came to, their first and last pages left out, whose V* was known before.
    ValueStateHitRate = "value/state_hit_rate",
    /// Tokens the reference has written so far in episodes that were forked from states.
    ValueForkTokens = "value/fork_tokens",
    /// Tokens of the beginnings of these episodes, which were not written again; from the door, they would have been.
    ValueForkTokensShared = "value/fork_tokens_shared",
    /// RL steps since the reference was the policy.
    ValueAge = "value/age",
    /// Mean V* over the goals that were trained on so far.
    ValueMean = "value/mean",
    /// Share of those goals none of whose reference episodes succeeded.
    ValueShareWithoutSuccess = "value/share_without_success",
    /// Mean jackknife bias of V*, negative where it is too low.
    ValueBias = "value/bias",
    /// Share of held-out episodes with reward exactly 1.
    EvalSuccessRate = "eval/{split}/success_rate",
    /// Lower end of its 95 % interval.
    EvalSuccessLow = "eval/{split}/success_low",
    /// Upper end of its 95 % interval.
    EvalSuccessHigh = "eval/{split}/success_high",
    /// Mean reward of held-out episodes.
    EvalTaskScore = "eval/{split}/task_score",
    /// Lower end of its 95 % interval.
    EvalScoreLow = "eval/{split}/score_low",
    /// Upper end of its 95 % interval.
    EvalScoreHigh = "eval/{split}/score_high",
    /// Mean number of actions in held-out episodes.
    EvalEpisodeLen = "eval/{split}/episode_len",
    /// Share of held-out actions that the page offered.
    EvalValidActionRate = "eval/{split}/valid_action_rate",
    /// Share of held-out episodes in which the model wrote down a thought.
    EvalThinkingRate = "eval/{split}/thinking_rate",
    /// Mean number of tokens the model wrote in a held-out episode.
    EvalTokens = "eval/{split}/tokens",
    /// k1 on held-out episodes: how far the policy has come from the first reference, in nats an episode; not of greedy episodes.
    EvalKl = "eval/{split}/kl",
    /// Mean entropy of the sampling distribution over the tokens of held-out episodes, in nats.
    EvalEntropy = "eval/{split}/entropy",
    /// Mean hierarchical reward of completions at held-out steps of demonstrations; here and in the next five.
    EvalReward = "eval/{split}/reward",
    /// Share of the completions that do what was really done, queries by ROUGE-L over .75.
    EvalExactAction = "eval/{split}/exact_action",
    /// Share of the completions of the type of what was really done.
    EvalTypeAccuracy = "eval/{split}/type_accuracy",
    /// Mean F1 of the types.
    EvalMacroF1 = "eval/{split}/macro_f1",
    /// Mean F1 of the types by how frequent they are.
    EvalWeightedF1 = "eval/{split}/weighted_f1",
    /// Share of the completions that could not be read.
    EvalInvalidRate = "eval/{split}/invalid_rate",
    /// As `rollout/reward_type`, of held-out episodes.
    EvalRewardType = "eval/{split}/reward_type",
    /// As `rollout/reward_attributes`, of held-out episodes.
    EvalRewardAttributes = "eval/{split}/reward_attributes",
    /// As `rollout/reward_options`, of held-out episodes.
    EvalRewardOptions = "eval/{split}/reward_options",
    /// As `rollout/reward_price`, of held-out episodes.
    EvalRewardPrice = "eval/{split}/reward_price",
    /// Share of held-out episodes that ended without a purchase.
    EvalNeverBought = "eval/{split}/never_bought",
    /// Share of held-out episodes that bought a product without the wanted attributes, or of another type.
    EvalWrongProduct = "eval/{split}/wrong_product",
    /// Share of held-out episodes that bought a right product with a wanted option not chosen.
    EvalMissingOption = "eval/{split}/missing_option",
    /// Share of held-out episodes whose only fault was the price.
    EvalOverPrice = "eval/{split}/over_price",
}

impl Metric {
    /// The tag in a run that is evaluated on `split`.
    pub fn tag(self, split: &str) -> String {
        self.name().replace("{split}", split)
    }
}

/// Which part of a run a step belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Cloning of demonstrations.
    WarmStart,
    /// Learning from own episodes.
    Learn,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WarmStart => "warm_start",
            Self::Learn => "learn",
        })
    }
}

/// What was measured after a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The part of the run.
    pub phase: Phase,
    /// Optimizer steps taken since the run began, over all phases; 0 before the first.
    pub step: u64,
    values: BTreeMap<Metric, f64>,
}

impl Record {
    /// A record without measurements.
    pub fn new(phase: Phase, step: u64) -> Self {
        Self { phase, step, values: BTreeMap::new() }
    }

    /// Adds a measurement, replacing an earlier one of the same metric. NaN and infinities are recorded as absent,
    /// since JSON has no word for them.
    pub fn set(&mut self, metric: Metric, value: f64) -> &mut Self {
        if value.is_finite() {
            self.values.insert(metric, value);
        }
        self
    }

    /// A measurement, if it was made.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.values.get(&metric).copied()
    }

    /// The record as a line of `metrics.jsonl`, without its end.
    fn json(&self, split: &str) -> String {
        let mut object = serde_json::Map::new();
        object.insert("step".into(), self.step.into());
        object.insert("phase".into(), self.phase.to_string().into());
        for (metric, value) in &self.values {
            object.insert(metric.tag(split), (*value).into());
        }
        serde_json::Value::Object(object).to_string()
    }

    /// The record as a line of `metrics.csv`, without its end.
    fn csv(&self) -> String {
        let mut line = format!("{},{}", self.step, self.phase);
        for metric in Metric::ALL {
            line.push(',');
            if let Some(value) = self.get(*metric) {
                line.push_str(&value.to_string());
            }
        }
        line
    }

    /// Reads a line that [`Record::json`] made; unknown tags are passed over.
    fn parse(line: &str, split: &str) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Line {
            step: u64,
            phase: Phase,
            #[serde(flatten)]
            values: serde_json::Map<String, serde_json::Value>,
        }
        let line: Line = serde_json::from_str(line)?;
        let mut record = Self::new(line.phase, line.step);
        for metric in Metric::ALL {
            if let Some(value) = line.values.get(&metric.tag(split)).and_then(serde_json::Value::as_f64) {
                record.set(*metric, value);
            }
        }
        Ok(record)
    }
}

/// How long a step took. Wall-clock seconds live here and nowhere else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The part of the run.
    pub phase: Phase,
    /// As in the [`Record`] it belongs to.
    pub step: u64,
    /// Seconds since the run began, pauses between a stop and a resumption left out.
    pub seconds: f64,
    /// Seconds of the step spent in named parts of it (`rollout`, `forks`, `train`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, f64>,
    /// Speeds of the step (`gen_tok_per_s`, `train_tok_per_s`, `env_steps_per_s`), and its own seconds (`step_s`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub perf: BTreeMap<String, f64>,
}

impl Timing {
    /// A timing without parts and throughputs.
    pub fn new(phase: Phase, step: u64, seconds: f64) -> Self {
        Self { phase, step, seconds, parts: BTreeMap::new(), perf: BTreeMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_json_cannot_hold_are_absent() {
        let mut record = Record::new(Phase::Learn, 0);
        record.set(Metric::TrainLoss, f64::NAN).set(Metric::TrainApproxKl, f64::INFINITY);
        assert_eq!((record.get(Metric::TrainLoss), record.get(Metric::TrainApproxKl)), (None, None));
    }

    #[test]
    fn every_metric_has_its_own_name() {
        let names: std::collections::BTreeSet<_> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        assert_eq!(names.len(), Metric::ALL.len());
        assert_eq!(Metric::EvalSuccessRate.tag("test"), "eval/test/success_rate");
        assert_eq!(Metric::TrainAdvMean.meaning().trim(), "Mean of A = r − V*.");
    }
}
