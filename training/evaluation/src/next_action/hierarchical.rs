//! The hierarchical reward of Shop-R1 (arXiv 2507.17842, section 3.3 and table 1).
//!
//! ```text
//! gold type         format      type           presence                            value
//! terminate         w_format    w_type [same]
//! click             w_format    w_type [same]  w_click_name [name ≠ ∅]             dars · RL(name)
//! type_and_submit   w_format    w_type [same]  w_tas_name [name ≠ ∅]               w_tas_name_sim · RL(name)
//!                                              + w_tas_text [text ≠ ∅]             + dars · RL(text)
//!
//! reward = their sum + alpha · s(rationale)     — `ShopR1Breakdown::total`
//! ```
//!
//! RL is the ROUGE-L similarity of the predicted and the gold text, or 0 if it does not pass `threshold`; s
//! is the self-certainty of the rationale. With `gate_format`, a completion with an invalid format has reward
//! 0. With `gate_type`, presence and value terms need the right type. The maxima with the default weights are
//! .8, 1001 and 1001.1, plus alpha·s.
//!
//! The paper adds the KL to the reference policy to the reward; here it is a term of the loss. The paper does
//! not define the tokenization of RL, whether 3/4 passes .75, and the range of the sum in s; [`RewardConfig`]
//! has a key for each.

use webshop_agent::next_action::{NextAction, WrittenAction};

use crate::next_action::attempt::{Attempt, ParsedAttempt};
use crate::next_action::breakdown::{Part, ShopR1Breakdown};
use crate::next_action::config::RewardConfig;
use crate::next_action::similarity::Similarity;

/// The reward of a parsed attempt. `factor` multiplies the weights `w_type` and `dars`.
pub(super) fn score(
    rule: &RewardConfig,
    factor: f64,
    parsed: ParsedAttempt,
    attempt: &Attempt<'_>,
) -> ShopR1Breakdown {
    let ParsedAttempt { problem, action } = parsed;
    let is_valid = problem.is_none();
    let mut parts = ShopR1Breakdown::default();
    if is_valid || !rule.gate_format {
        parts.format = Part::all_or_nothing(is_valid, rule.w_format);
        parts.rationale = Part { weight: rule.alpha, share: attempt.certainty };
        if let Some(predicted) = &action {
            score_action(rule, factor, predicted, attempt.gold, &mut parts);
        }
    }
    ShopR1Breakdown { action, problem, ..parts }
}

fn score_action(
    rule: &RewardConfig,
    factor: f64,
    predicted: &WrittenAction,
    gold: &NextAction,
    parts: &mut ShopR1Breakdown,
) {
    let gold_type = gold.action_type();
    let class = rule.class_weights.of(gold_type);
    let is_same_type = predicted.action_type() == Some(gold_type);
    parts.action_type = Part::all_or_nothing(is_same_type, class * factor * rule.w_type);
    if rule.gate_type && !is_same_type {
        return;
    }
    let presence = |text: &str, weight| Part::all_or_nothing(!text.trim().is_empty(), class * weight);
    let value_weight = class * factor * rule.dars;
    match gold {
        NextAction::Terminate {} => (),
        NextAction::Click { name } => {
            parts.attr_name = presence(&predicted.name, rule.w_click_name);
            let similarity = rule.similarity_of(rule.click_similarity, &predicted.name, name);
            parts.sim_name = Some(similarity);
            parts.value_name = value_or_penalty(rule, similarity, value_weight, class);
        }
        NextAction::TypeAndSubmit { name, text } => {
            parts.attr_name = presence(&predicted.name, rule.w_tas_name);
            parts.attr_text = presence(&predicted.text, rule.w_tas_text);
            let name_similarity = rule.similarity_of(rule.similarity, &predicted.name, name);
            let text_similarity = rule.similarity_of(rule.similarity, &predicted.text, text);
            (parts.sim_name, parts.sim_text) = (Some(name_similarity), Some(text_similarity));
            parts.value_name = value(rule, name_similarity, class * rule.w_tas_name_sim);
            parts.value_text = value_or_penalty(rule, text_similarity, value_weight, class);
        }
    }
}

/// `weight` times the similarity if it passes the threshold, else 0.
fn value(rule: &RewardConfig, similarity: Similarity, weight: f64) -> Part {
    Part { weight, share: if rule.passes(similarity) { similarity.ratio() } else { 0.0 } }
}

/// Like [`value`], with the penalty `negative_wrong_value` below the threshold.
fn value_or_penalty(rule: &RewardConfig, similarity: Similarity, weight: f64, class: f64) -> Part {
    if rule.negative_wrong_value != 0.0 && !rule.passes(similarity) {
        return Part { weight: class * rule.negative_wrong_value, share: 1.0 };
    }
    value(rule, similarity, weight)
}
