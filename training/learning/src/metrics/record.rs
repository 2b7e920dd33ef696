//! Copies the numbers of summaries to the metrics of a record.

use webshop_agent::Episode;

use crate::data::trajectory::Trajectory;
use crate::loss::TargetStatistics;
use crate::loss::step::UpdateStatistics;
use crate::metrics::{Metric, Record};
use crate::reward::malformed_turns;
use webshop_evaluation::next_action::NextActionScores;
use webshop_evaluation::{Reading, Summary};

/// Records the episodes of an RL step.
pub(crate) fn record_rollout(record: &mut Record, summary: &Summary, batch: &[Trajectory]) {
    record
        .set(Metric::RolloutSuccessRate, summary.success_rate)
        .set(Metric::RolloutTaskScore, summary.score)
        .set(Metric::RolloutEpisodeLen, summary.mean_turns)
        .set(Metric::RolloutValidActionRate, 1.0 - summary.inadmissible_rate)
        .set(Metric::RolloutTokens, summary.mean_sampled_tokens)
        .set(Metric::RolloutThinkingRate, summary.thinking_rate)
        .set(Metric::TrainEntropy, mean_entropy(batch));
    if let Some(parts) = &summary.reward_parts {
        record
            .set(Metric::RolloutRewardType, parts.product_type)
            .set(Metric::RolloutRewardAttributes, parts.attributes)
            .set(Metric::RolloutRewardOptions, parts.options)
            .set(Metric::RolloutRewardPrice, parts.price);
    }
}

/// Mean entropy over the sampled tokens, nats.
pub(crate) fn mean_entropy(trajectories: &[Trajectory]) -> f64 {
    let n_tokens: usize = trajectories.iter().map(Trajectory::n_sampled).sum();
    let entropy: f64 =
        trajectories.iter().map(|trajectory| trajectory.mean_entropy * trajectory.n_sampled() as f64).sum();
    entropy / n_tokens.max(1) as f64
}

/// Records the rate of malformed completions of an RL step and their penalty, at `penalty` each.
pub(crate) fn record_malformed(record: &mut Record, episodes: &[Episode], penalty: f64) {
    let malformed: usize = episodes.iter().map(malformed_turns).sum();
    let n_turns: usize = episodes.iter().map(|episode| episode.turns.len()).sum();
    record
        .set(Metric::RolloutMalformedRate, malformed as f64 / n_turns.max(1) as f64)
        .set(Metric::RolloutMalformedPenalty, penalty * malformed as f64 / episodes.len().max(1) as f64);
}

/// Records the statistics of an update.
pub(crate) fn record_update(record: &mut Record, terms: &UpdateStatistics) {
    record
        .set(Metric::TrainLoss, terms.loss)
        .set(Metric::TrainApproxKl, terms.kl)
        .set(Metric::TrainKlK3, terms.kl_k3)
        .set(Metric::TrainClipfrac, terms.clipfrac)
        .set(Metric::TrainLogProbGap, terms.log_prob_gap)
        .set(Metric::TrainLogProbGapMean, terms.log_prob_gap_mean)
        .set(Metric::TrainOutsideNucleus, terms.outside_nucleus[0])
        .set(Metric::TrainOutsideReference, terms.outside_nucleus[1]);
}

/// Records the advantages and weights of a whole batch.
pub(crate) fn record_targets(record: &mut Record, targets: &TargetStatistics) {
    record
        .set(Metric::TrainAdvMean, targets.adv_mean)
        .set(Metric::TrainAdvStd, targets.adv_std)
        .set(Metric::TrainEffectiveSamples, targets.effective_samples);
}

/// Records a held-out evaluation.
pub(crate) fn record_evaluation(record: &mut Record, summary: &Summary) {
    let share = |count: usize| count as f64 / summary.episodes.max(1) as f64;
    record
        .set(Metric::EvalSuccessRate, summary.success_rate)
        .set(Metric::EvalSuccessLow, summary.success_ci95[0])
        .set(Metric::EvalSuccessHigh, summary.success_ci95[1])
        .set(Metric::EvalTaskScore, summary.score)
        .set(Metric::EvalScoreLow, summary.score_ci95[0])
        .set(Metric::EvalScoreHigh, summary.score_ci95[1])
        .set(Metric::EvalEpisodeLen, summary.mean_turns)
        .set(Metric::EvalValidActionRate, 1.0 - summary.inadmissible_rate)
        .set(Metric::EvalThinkingRate, summary.thinking_rate)
        .set(Metric::EvalNeverBought, share(summary.failures.never_bought))
        .set(Metric::EvalWrongProduct, share(summary.failures.wrong_product))
        .set(Metric::EvalMissingOption, share(summary.failures.missing_option))
        .set(Metric::EvalOverPrice, share(summary.failures.over_price))
        .set(Metric::EvalTokens, summary.mean_sampled_tokens);
    if let Some(parts) = &summary.reward_parts {
        record
            .set(Metric::EvalRewardType, parts.product_type)
            .set(Metric::EvalRewardAttributes, parts.attributes)
            .set(Metric::EvalRewardOptions, parts.options)
            .set(Metric::EvalRewardPrice, parts.price);
    }
}

/// Records what held-out episodes read, if any reads the features of a product.
pub(crate) fn record_reading(record: &mut Record, episodes: &[Episode]) {
    let reading = Reading::of_all(episodes);
    if reading.reading == 0 {
        return;
    }
    let rates = [
        (Metric::EvalReads, reading.reading_rate()),
        (Metric::EvalRejectsFitting, reading.fitting.rejection_rate()),
        (Metric::EvalRejectsOthers, reading.not_fitting.rejection_rate()),
        (Metric::EvalActs, reading.acting_rate()),
        (Metric::EvalActsSuccess, reading.acting_success_rate()),
        (Metric::EvalOthersSuccess, reading.other_success_rate()),
    ];
    for (metric, rate) in rates {
        if let Some(rate) = rate {
            record.set(metric, rate);
        }
    }
}

/// Records the scores of completions at held-out steps.
pub(crate) fn record_next_action(record: &mut Record, scores: &NextActionScores, reward: f64) {
    record
        .set(Metric::EvalReward, reward)
        .set(Metric::EvalExactAction, scores.exact_soft.value)
        .set(Metric::EvalTypeAccuracy, scores.type_acc.value)
        .set(Metric::EvalMacroF1, scores.macro_f1.value)
        .set(Metric::EvalWeightedF1, scores.weighted_f1.value)
        .set(Metric::EvalInvalidRate, scores.invalid_rate.value);
}
