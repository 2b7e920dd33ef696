//! The reward of a public re-implementation, as it computes it (`christianchartier/shop-r1`).
//!
//! It is the hierarchical reward with other letters: nothing gates the rationale, texts are alike by blocks of characters,
//! and a factor for how hard the example is scales type and values. How it reads completions is told in [`reading`], what
//! it takes for certainty in [`evidence`].
//!
//! ```text
//! diff   = (.4 · type + .3 · min(1, ln(1 + words) / ln 301) + .3 · min(1, chars / 64)) / (.4 + .3 + .3)
//! factor = .85 + (1.15 − .85) · diff                                   — `difficulty(config, attempt)`
//! ```
//!
//! `type` is 0 for leaving, .5 for a click, 1 for a search; `words` are those of the prompt, at least 1; `chars` those of
//! what the gold action is about. Deviation: `NaN` and half characters in a completion are no JSON here.

pub mod evidence;
pub mod reading;


use serde::{Deserialize, Serialize};
use serde_json::Value;
use webshop_agent::next_action::NextAction;

use crate::next_action::breakdown::ShopR1Breakdown;
use crate::next_action::config::{RewardConfig, SimCmp, SimilarityKind};
use crate::next_action::reward::{Attempt, judge};
use crate::error::Result;

/// Words of a prompt from which on it is as hard as can be.
const HARD_WORDS: f64 = 300.0;
/// Characters of a value from which on it is.
const HARD_CHARS: f64 = 64.0;

/// The re-implementation's settings that decide about rewards, under its names and with its defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RepoConfig {
    /// Whether the form is asked for to the letter; else an object is looked for in any text.
    pub strict: bool,
    /// Whether other names for keys and types pass as form, where it is not strict.
    pub normalize_variants: bool,
    /// Whether names and texts are paid only under the right type.
    pub gate_subrewards_on_type: bool,
    /// The least likeness that is paid.
    pub sim_threshold: f64,
    /// For the form.
    pub w_format: f64,
    /// For certainty.
    pub w_rationale: f64,
    /// For the right type.
    pub w_type: f64,
    /// For any name in place of a click's.
    pub w_click_attr_presence: f64,
    /// For any name in place of a search's.
    pub w_type_submit_name_presence: f64,
    /// For any text in place of a search's.
    pub w_type_submit_text_presence: f64,
    /// For the right name of a search.
    pub w_type_submit_name_sim: f64,
    /// Whether hard examples count more.
    pub enable_dars: bool,
    /// The factor of the easiest.
    pub dars_min_scale: f64,
    /// The factor of the hardest.
    pub dars_max_scale: f64,
    /// For the right value.
    pub dars_factor: f64,
    /// How much of the difficulty is the type's.
    pub dars_weight_type: f64,
    /// How much is the length of the prompt's.
    pub dars_weight_context_len: f64,
    /// How much is the length of the value's.
    pub dars_weight_value_len: f64,
    /// Whether certainty is paid.
    pub enable_self_certainty: bool,
    /// Whether distributions over all ids are looked at.
    pub sc_exact_kl: bool,
    /// V, if not the length of a distribution.
    pub sc_vocab_size_hint: Option<u32>,
    /// The mean log-probability that is half certain, where nothing else is known.
    pub sc_calib_center: f64,
    /// How steeply certainty rises with it.
    pub sc_calib_scale: f64,
    /// The least certainty.
    pub sc_clip_min: f64,
    /// The largest.
    pub sc_clip_max: f64,
}

impl Default for RepoConfig {
    fn default() -> Self {
        Self {
            strict: false,
            normalize_variants: true,
            gate_subrewards_on_type: true,
            sim_threshold: 0.75,
            w_format: 0.5,
            w_rationale: 0.13,
            w_type: 0.3,
            w_click_attr_presence: 0.2,
            w_type_submit_name_presence: 0.1,
            w_type_submit_text_presence: 0.1,
            w_type_submit_name_sim: 0.1,
            enable_dars: true,
            dars_min_scale: 0.85,
            dars_max_scale: 1.15,
            dars_factor: 1000.0,
            dars_weight_type: 0.4,
            dars_weight_context_len: 0.3,
            dars_weight_value_len: 0.3,
            enable_self_certainty: true,
            sc_exact_kl: true,
            sc_vocab_size_hint: None,
            sc_calib_center: -2.5,
            sc_calib_scale: 1.0,
            sc_clip_min: 0.0,
            sc_clip_max: 1.0,
        }
    }
}

impl RepoConfig {
    /// Refuses a value outside its range.
    ///
    /// # Errors
    /// [`crate::error::EvaluationError::InvalidValue`], under the name the key has in [`RewardConfig`].
    pub fn validate(&self) -> Result<()> {
        self.rule().validate()
    }

    /// The certainty of a completion, from what servers hand out beside it (`extras`, as its rewards are given them).
    pub fn certainty(&self, extras: &Value) -> f64 {
        evidence::certainty(self, extras)
    }

    /// What an attempt is worth.
    pub(super) fn judge(&self, attempt: &Attempt<'_>) -> ShopR1Breakdown {
        let reading = reading::read(self, attempt.completion);
        judge(&self.rule(), difficulty(self, attempt), reading, attempt)
    }

    /// The same rule in the words of the hierarchical reward.
    fn rule(&self) -> RewardConfig {
        RewardConfig {
            gate_format: false,
            gate_type: self.gate_subrewards_on_type,
            w_format: self.w_format,
            w_type: self.w_type,
            w_click_name: self.w_click_attr_presence,
            w_tas_name: self.w_type_submit_name_presence,
            w_tas_text: self.w_type_submit_text_presence,
            w_tas_name_sim: self.w_type_submit_name_sim,
            dars: self.dars_factor,
            similarity: SimilarityKind::RepoCompat,
            click_similarity: SimilarityKind::RepoCompat,
            threshold: self.sim_threshold,
            sim_cmp: SimCmp::Ge,
            alpha: self.w_rationale,
            ..RewardConfig::default()
        }
    }
}

/// The factor of an example.
pub(super) fn difficulty(config: &RepoConfig, attempt: &Attempt<'_>) -> f64 {
    if !config.enable_dars {
        return 1.0;
    }
    let (of_type, value) = match attempt.gold {
        NextAction::Terminate {} => (0.0, ""),
        NextAction::Click { name } => (0.5, name.as_str()),
        NextAction::TypeAndSubmit { text, .. } => (1.0, text.as_str()),
    };
    let n_words = attempt.n_prompt_words.max(1) as f64;
    let of_context = (n_words.ln_1p() / HARD_WORDS.ln_1p()).min(1.0);
    let of_value = (value.trim().chars().count() as f64 / HARD_CHARS).min(1.0);
    let weights = [config.dars_weight_type, config.dars_weight_context_len, config.dars_weight_value_len];
    let sum: f64 = weights.iter().sum();
    let weighted: f64 = weights.iter().zip([of_type, of_context, of_value]).map(|(w, of)| w * of).sum();
    let difficulty = if sum > 0.0 { weighted / sum } else { weighted };
    config.dars_min_scale + (config.dars_max_scale - config.dars_min_scale) * difficulty
}
