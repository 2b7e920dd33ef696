//! Metrics of a run: one record per step, in files that a resumed run continues exactly.
//!
//! A [`Record`] is a step with its measured [`Metric`]s. A [`MetricsWriter`] appends it to `metrics.jsonl`
//! (one object per line, without the metrics that were not measured) and `metrics.csv` (one column per
//! metric, empty if not measured). Numbers are printed with the fewest digits that read back to the same
//! bits, and contain no clock: equal seeds give equal bytes. Durations go to `timings.jsonl`, as [`Timing`]s.
//! An events file repeats both for TensorBoard; it contains a clock, so its bytes differ between runs.
//!
//! Every metric is defined once, as a variant of [`Metric`]. `writer` writes the files, `events` the one for
//! TensorBoard, `follow` reads the records of a run in progress. Nothing is averaged or smoothed here.

mod events;
mod follow;
pub(crate) mod record;
mod writer;

pub use crate::metrics::follow::Follower;
pub(crate) use crate::metrics::writer::METRICS_JSONL;
pub use crate::metrics::writer::{MetricsPosition, MetricsWriter, read_records, read_timings};

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// All metrics. Rates are shares, 0 to 1.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Metric {
            /// All metrics, in the order of the columns.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The tag in the files.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// A description in one line.
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
    /// Share of the step's completions that are malformed in their prompt format.
    RolloutMalformedRate = "rollout/malformed_rate",
    /// Mean over episodes of the penalty for malformed completions, subtracted from the training reward; not
    /// part of any score.
    RolloutMalformedPenalty = "rollout/malformed_penalty",
    /// Mean number of generated tokens per episode.
    RolloutTokens = "rollout/tokens",
    /// Stage of the curriculum, from 0, if there is one.
    RolloutStage = "rollout/stage",
    /// Tokens generated for training so far, those of reference rollouts included.
    RolloutTokensTotal = "rollout/tokens_total",
    /// Share of the step's episodes in which the model wrote a thought.
    RolloutThinkingRate = "rollout/thinking_rate",
    /// Mean product-type factor of the step's episodes; an episode without a purchase counts 0 here and in
    /// the next three.
    RolloutRewardType = "rollout/reward_type",
    /// Mean share of the required attributes that the bought product has.
    RolloutRewardAttributes = "rollout/reward_attributes",
    /// Mean share of the required options that were chosen.
    RolloutRewardOptions = "rollout/reward_options",
    /// Share of the step's episodes that bought within the price limit.
    RolloutRewardPrice = "rollout/reward_price",
    /// Mean hierarchical reward of the step's completions, in single-step mode; here and in the next three.
    RolloutReward = "rollout/reward",
    /// Share of completions with the ground-truth action, queries at a ROUGE-L over .75.
    RolloutExactAction = "rollout/exact_action",
    /// Share of completions with the ground-truth action type.
    RolloutTypeAccuracy = "rollout/type_accuracy",
    /// Examples left out: goals without a demonstration, or prompts that leave no room for a completion.
    RolloutDroppedSteps = "rollout/dropped_steps",
    /// The loss of the episodes, before clipping; without the critic's error and, with `rl.demonstration_share`, without the
    /// loss of cloning.
    TrainLoss = "train/loss",
    /// k1: Σₜ (log π − log π_ref), in nats per episode; the mean over the episodes of a minibatch whose target has a
    /// weight, before its update and after those of earlier minibatches, then over the step's updates. Its expectation
    /// is the KL to the reference only in a step of one update in which the policy samples every episode and every
    /// episode has a weight.
    TrainApproxKl = "train/approx_kl",
    /// k3: mean over tokens of exp(−d) − 1 + d with d = log π − log π_ref; never negative, in nats per token; of the
    /// same episodes as k1.
    TrainKlK3 = "train/kl_k3",
    /// Mean entropy of the sampling distribution over generated tokens, in nats.
    TrainEntropy = "train/entropy",
    /// Global gradient norm before clipping.
    TrainGradNorm = "train/grad_norm",
    /// Mean over all episodes of the step of the loss's advantage A: r − V*, r − mean or a z-score, as the loss defines
    /// it; with advantages by turn, of their sums.
    TrainAdvMean = "train/adv_mean",
    /// Standard deviation of A over all episodes of the step.
    TrainAdvStd = "train/adv_std",
    /// (Σw)²/Σw² of the weights of all episodes of the step; an episode without gradient has weight 0.
    TrainEffectiveSamples = "train/effective_samples",
    /// With a critic: mean squared error of its values before each update, over turns, then over episodes.
    TrainValueLoss = "train/value_loss",
    /// With a critic: 1 − Var(R − V)/Var(R) over the step's turns, before the updates; absent if all returns
    /// are equal.
    TrainExplainedVariance = "train/explained_variance",
    /// Share of trained tokens whose gradient is 0 because of the clip.
    TrainClipfrac = "train/clipfrac",
    /// Mean over groups of two or more episodes of the standard deviation of their rewards.
    TrainGroupSpread = "train/group_spread",
    /// Largest difference of a token's log-probability between training and sampling, in nats.
    TrainLogProbGap = "train/log_prob_gap",
    /// Mean of those differences.
    TrainLogProbGapMean = "train/log_prob_gap_mean",
    /// Share of tokens outside the nucleus in training, which are trained on all the same; with new episodes
    /// only by rounding.
    TrainOutsideNucleus = "train/outside_nucleus",
    /// Share of tokens outside the reference's nucleus, which are trained on all the same.
    TrainOutsideReference = "train/outside_reference",
    /// Learning rate of the step.
    TrainLr = "train/lr",
    /// Batches so far whose rewards gave no signal. Nothing is learned from them, but demonstrations beside them are.
    TrainSkippedNoSignal = "train/skipped_no_signal",
    /// Updates so far, of weights or critic, that were skipped because a gradient was not finite.
    TrainSkippedNonFinite = "train/skipped_non_finite",
    /// Share of the step's goals whose V* was known before.
    ValueHitRate = "value/hit_rate",
    /// Share of the states that the step's episodes reached, first and last pages excluded, whose V* was
    /// known before.
    ValueStateHitRate = "value/state_hit_rate",
    /// Tokens that the reference has generated so far in episodes forked from states.
    ValueForkTokens = "value/fork_tokens",
    /// Tokens of the shared prefixes of these episodes, which were not generated again.
    ValueForkTokensShared = "value/fork_tokens_shared",
    /// RL steps since the reference was the policy.
    ValueAge = "value/age",
    /// Mean V* over the goals of which it was estimated, discarded ones (`value.keep_spread`) included.
    ValueMean = "value/mean",
    /// Share of those goals none of whose reference episodes succeeded, whatever reward is trained on.
    ValueShareWithoutSuccess = "value/share_without_success",
    /// Mean jackknife bias of V*; negative if V* is too low.
    ValueBias = "value/bias",
    /// Share of held-out episodes with reward exactly 1.
    EvalSuccessRate = "eval/{split}/success_rate",
    /// Lower end of its 95 % interval, clustered by product.
    EvalSuccessLow = "eval/{split}/success_low",
    /// Upper end of its 95 % interval, clustered by product.
    EvalSuccessHigh = "eval/{split}/success_high",
    /// Mean reward of held-out episodes.
    EvalTaskScore = "eval/{split}/task_score",
    /// Lower end of its 95 % interval, clustered by product.
    EvalScoreLow = "eval/{split}/score_low",
    /// Upper end of its 95 % interval, clustered by product.
    EvalScoreHigh = "eval/{split}/score_high",
    /// Mean number of actions in held-out episodes.
    EvalEpisodeLen = "eval/{split}/episode_len",
    /// Share of held-out actions that the page offered.
    EvalValidActionRate = "eval/{split}/valid_action_rate",
    /// Share of held-out episodes in which the model wrote a thought.
    EvalThinkingRate = "eval/{split}/thinking_rate",
    /// Mean number of generated tokens per held-out episode.
    EvalTokens = "eval/{split}/tokens",
    /// k1 estimate of the KL to the first reference on held-out episodes, in nats per episode; absent for
    /// greedy evaluation.
    EvalKl = "eval/{split}/kl",
    /// Mean entropy of the sampling distribution over generated tokens of held-out episodes, in nats.
    EvalEntropy = "eval/{split}/entropy",
    /// Mean hierarchical reward of completions at held-out steps of demonstrations; here and in the next
    /// five.
    EvalReward = "eval/{split}/reward",
    /// Share of completions with the ground-truth action, queries at a ROUGE-L over .75.
    EvalExactAction = "eval/{split}/exact_action",
    /// Share of completions with the ground-truth action type.
    EvalTypeAccuracy = "eval/{split}/type_accuracy",
    /// Mean F1 over the action types.
    EvalMacroF1 = "eval/{split}/macro_f1",
    /// Mean F1 over the action types, weighted by frequency.
    EvalWeightedF1 = "eval/{split}/weighted_f1",
    /// Share of completions that could not be parsed.
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
    /// Share of held-out episodes that bought a product without the required attributes, or of another type.
    EvalWrongProduct = "eval/{split}/wrong_product",
    /// Share of held-out episodes that bought a right product without a required option.
    EvalMissingOption = "eval/{split}/missing_option",
    /// Share of held-out episodes whose only fault was the price.
    EvalOverPrice = "eval/{split}/over_price",
    /// Share of held-out episodes that read the features of a product; absent with the next five if none does.
    EvalReads = "eval/{split}/reads",
    /// Share rejected of the products whose features were read and noted as fitting.
    EvalRejectsFitting = "eval/{split}/rejects_fitting",
    /// Share rejected of the other products whose features were read.
    EvalRejectsOthers = "eval/{split}/rejects_others",
    /// Share of held-out episodes that act on features: they read, keep what their notes call fitting and put
    /// back the rest.
    EvalActs = "eval/{split}/acts",
    /// Success rate of these episodes.
    EvalActsSuccess = "eval/{split}/acts_success",
    /// Success rate of the other held-out episodes.
    EvalOthersSuccess = "eval/{split}/others_success",
}

impl Metric {
    /// The tag in a run that is evaluated on `split`.
    pub fn tag(self, split: &str) -> String {
        self.name().replace("{split}", split)
    }
}

/// The phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Copy tasks, and cloning of demonstrations.
    WarmStart,
    /// Reinforcement learning.
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

/// The measurements of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The part of the run.
    pub phase: Phase,
    /// Steps since the run began: optimizer steps of the warm start, then batches of reinforcement learning; 0 before
    /// the first.
    pub step: u64,
    values: BTreeMap<Metric, f64>,
}

impl Record {
    /// A record without measurements.
    pub fn new(phase: Phase, step: u64) -> Self {
        Self { phase, step, values: BTreeMap::new() }
    }

    /// Adds a measurement, replacing an earlier one of the same metric. NaN and infinities are recorded as
    /// absent, since JSON cannot hold them.
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

    /// Reads a line of [`Record::json`]; unknown tags are ignored.
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

/// The duration of a step. Only this record and the events file contain wall-clock seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The part of the run.
    pub phase: Phase,
    /// As in the [`Record`] it belongs to.
    pub step: u64,
    /// Seconds since the start of the run, without pauses between a stop and a resumption.
    pub seconds: f64,
    /// Seconds of the parts of the step (`rollout`, `forks`, `train`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, f64>,
    /// Speeds of the step (`gen_tok_per_s`, `train_tok_per_s`, `env_steps_per_s`) and its duration
    /// (`step_s`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub perf: BTreeMap<String, f64>,
}

impl Timing {
    /// A timing without parts and speeds.
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
        assert_eq!(
            Metric::TrainAdvStd.meaning().trim(),
            "Standard deviation of A over all episodes of the step."
        );
    }
}
