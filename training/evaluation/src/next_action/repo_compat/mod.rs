//! The reward of a public re-implementation (`christianchartier/shop-r1`), for comparison with its numbers.
//!
//! It is the hierarchical reward with other weights and without a format gate. Similarity is by blocks of
//! characters, and a difficulty factor multiplies the type and value terms. [`parse`] describes how it parses
//! completions, [`evidence`] how it computes self-certainty.
//!
//! ```text
//! diff   = (.4 · type + .3 · min(1, ln(1 + words) / ln 301) + .3 · min(1, chars / 64)) / (.4 + .3 + .3)
//! factor = .85 + (1.15 − .85) · diff                                   — `difficulty_factor(config, attempt)`
//! ```
//!
//! `type` is 0 for `terminate`, .5 for `click`, 1 for `type_and_submit`; `words` is the number of words in
//! the prompt, at least 1; `chars` is the number of characters of the gold click name or text. Deviation:
//! `NaN` and unpaired surrogates in a completion are invalid JSON here.

mod config;
mod evidence;
mod parse;

use serde_json::Value;
use webshop_agent::next_action::NextAction;

use crate::next_action::attempt::Attempt;
use crate::next_action::breakdown::ShopR1Breakdown;
use crate::next_action::hierarchical;
pub use crate::next_action::repo_compat::config::RepoConfig;

/// Words of a prompt at which its difficulty is 1.
const MAX_PROMPT_WORDS: f64 = 300.0;
/// Characters of a value at which its difficulty is 1.
const MAX_VALUE_CHARS: f64 = 64.0;

impl RepoConfig {
    /// Self-certainty of a completion, 0 to 1, from `extras`: the values that a trainer passes to reward
    /// functions beside the completion, with the server's reply.
    pub fn certainty(&self, extras: &Value) -> f64 {
        evidence::certainty(self, extras)
    }
}

/// The reward of an attempt.
pub(super) fn score(config: &RepoConfig, attempt: &Attempt<'_>) -> ShopR1Breakdown {
    let parsed = parse::parse(config, attempt.completion);
    hierarchical::score(&config.rule(), difficulty_factor(config, attempt), parsed, attempt)
}

/// The factor on the type and value terms.
pub(super) fn difficulty_factor(config: &RepoConfig, attempt: &Attempt<'_>) -> f64 {
    if !config.enable_dars {
        return 1.0;
    }
    let (of_type, value) = match attempt.gold {
        NextAction::Terminate {} => (0.0, ""),
        NextAction::Click { name } => (0.5, name.as_str()),
        NextAction::TypeAndSubmit { text, .. } => (1.0, text.as_str()),
    };
    let n_words = attempt.n_prompt_words.max(1) as f64;
    let of_prompt = (libm::log1p(n_words) / libm::log1p(MAX_PROMPT_WORDS)).min(1.0);
    let of_value = (value.trim().chars().count() as f64 / MAX_VALUE_CHARS).min(1.0);
    let weights = [config.dars_weight_type, config.dars_weight_context_len, config.dars_weight_value_len];
    let sum: f64 = weights.iter().sum();
    let weighted: f64 = weights.iter().zip([of_type, of_prompt, of_value]).map(|(w, of)| w * of).sum();
    let difficulty = if sum > 0.0 { weighted / sum } else { weighted };
    config.dars_min_scale + (config.dars_max_scale - config.dars_min_scale) * difficulty
}
