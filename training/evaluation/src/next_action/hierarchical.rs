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
//! RL is the likeness of what was written and what is gold, 0 unless it passes `threshold`; s is the certainty of the
//! rationale. A completion of another form is worth 0, and names and texts are paid under the right type only, unless
//! `gate_format` and `gate_type` are off. With the default numbers the most is .8, 1001 and 1001.1, and alpha·s more.
//!
//! The KL to the reference, which the paper writes beside the reward, is a term of the loss. The paper leaves open how
//! RL is cut into words, whether 3/4 passes .75, and what s sums over; [`RewardConfig`] names each choice.

use webshop_agent::next_action::{Answer, FormatError, NextAction, WrittenAction};
use webshop_lm::generation::self_certainty::{Certainty, CertaintyKind};

use crate::next_action::breakdown::{Part, ShopR1Breakdown};
use crate::next_action::config::{DarsKind, RewardConfig};
use crate::next_action::repo_compat;
use crate::next_action::repo_compat::RepoConfig;
use crate::next_action::similarity::Similarity;

/// A completion and what it is measured by.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// All that the model wrote.
    pub completion: &'a str,
    /// What the customer did.
    pub gold: &'a NextAction,
    /// s: how sure the model was of its rationale, the mean of [`Certainty`] over the tokens that wrote it; 0 for
    /// none. Finite.
    pub certainty: f64,
    /// Words of the prompt's user messages; only the re-implementation's factor asks for them.
    pub n_prompt_words: usize,
}

/// A rule for what an attempt is worth.
#[derive(Clone, Debug, PartialEq)]
pub enum ShopR1Reward {
    /// The paper's.
    Hierarchical(RewardConfig),
    /// A public re-implementation's, to compare with numbers that were made by it.
    RepoCompat(RepoConfig),
}

impl ShopR1Reward {
    /// What to measure of each token that wrote the rationale, when it is drawn.
    pub fn certainty(&self) -> Certainty {
        match self {
            Self::Hierarchical(rule) => rule.certainty(),
            Self::RepoCompat(_) => {
                Certainty { kind: CertaintyKind::Normalized, ..RewardConfig::default().certainty() }
            }
        }
    }

    /// What the attempt is worth, and why.
    pub fn of(&self, attempt: &Attempt<'_>) -> ShopR1Breakdown {
        match self {
            Self::Hierarchical(rule) => {
                let factor = match rule.dars_kind {
                    DarsKind::Constant => 1.0,
                    DarsKind::RepoCompat => repo_compat::difficulty(&RepoConfig::default(), attempt),
                };
                judge(rule, factor, Reading::new(attempt.completion, rule), attempt)
            }
            Self::RepoCompat(config) => config.judge(attempt),
        }
    }
}

/// What could be read of a completion.
pub(super) struct Reading {
    /// What is wrong with its form.
    pub problem: Option<FormatError>,
    /// Its action, if it has one all the same.
    pub action: Option<WrittenAction>,
}

impl Reading {
    fn new(completion: &str, rule: &RewardConfig) -> Self {
        match Answer::read(completion, rule.format_mode) {
            Ok(answer) => Self { problem: None, action: Some(answer.action) },
            Err(problem) => Self { problem: Some(problem), action: None },
        }
    }
}

/// The formula; `factor` scales what the type and the values that `dars` is for are worth.
pub(super) fn judge(
    rule: &RewardConfig,
    factor: f64,
    reading: Reading,
    attempt: &Attempt<'_>,
) -> ShopR1Breakdown {
    let Reading { problem, action } = reading;
    let is_formed = problem.is_none();
    let mut parts = ShopR1Breakdown::default();
    if is_formed || !rule.gate_format {
        parts.format = Part::if_so(is_formed, rule.w_format);
        parts.rationale = Part { weight: rule.alpha, share: attempt.certainty };
        if let Some(written) = &action {
            judge_action(rule, factor, written, attempt.gold, &mut parts);
        }
    }
    ShopR1Breakdown { action, problem, ..parts }
}

fn judge_action(
    rule: &RewardConfig,
    factor: f64,
    written: &WrittenAction,
    gold: &NextAction,
    parts: &mut ShopR1Breakdown,
) {
    let gold_type = gold.action_type();
    let class = rule.class_weights.of(gold_type);
    let is_same_type = written.action_type() == Some(gold_type);
    parts.action_type = Part::if_so(is_same_type, class * factor * rule.w_type);
    if rule.gate_type && !is_same_type {
        return;
    }
    let is_there = |text: &str, weight| Part::if_so(!text.trim().is_empty(), class * weight);
    let hard = class * factor * rule.dars;
    match gold {
        NextAction::Terminate {} => (),
        NextAction::Click { name } => {
            parts.attr_name = is_there(&written.name, rule.w_click_name);
            let alike = rule.alike(rule.click_similarity, &written.name, name);
            parts.sim_name = Some(alike);
            parts.value_name = right_or_wrong(rule, alike, hard, class);
        }
        NextAction::TypeAndSubmit { name, text } => {
            parts.attr_name = is_there(&written.name, rule.w_tas_name);
            parts.attr_text = is_there(&written.text, rule.w_tas_text);
            let alike = |written: &str, gold: &str| rule.alike(rule.similarity, written, gold);
            let (names, texts) = (alike(&written.name, name), alike(&written.text, text));
            (parts.sim_name, parts.sim_text) = (Some(names), Some(texts));
            parts.value_name = paid(rule, names, class * rule.w_tas_name_sim);
            parts.value_text = right_or_wrong(rule, texts, hard, class);
        }
    }
}

/// `weight` times the likeness, if it passes.
fn paid(rule: &RewardConfig, alike: Similarity, weight: f64) -> Part {
    Part { weight, share: if rule.is_paid(alike) { alike.ratio() } else { 0.0 } }
}

/// As [`paid`], of the value that the action is about: where it does not pass, it may cost something.
fn right_or_wrong(rule: &RewardConfig, alike: Similarity, weight: f64, class: f64) -> Part {
    if rule.negative_wrong_value != 0.0 && !rule.is_paid(alike) {
        return Part { weight: class * rule.negative_wrong_value, share: 1.0 };
    }
    paid(rule, alike, weight)
}
