//! Configuration of the re-implementation's reward.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::next_action::config::{RewardConfig, SimilarityKind};
use crate::next_action::similarity::SimCmp;

/// The re-implementation's settings that affect the reward, with its names and defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RepoConfig {
    /// Whether the format is checked strictly; else the JSON object is searched in any text.
    pub strict: bool,
    /// Whether alternative names of keys and types are a valid format; without effect if strict.
    pub normalize_variants: bool,
    /// Whether presence and value terms need the right action type.
    pub gate_subrewards_on_type: bool,
    /// Least similarity that is rewarded.
    pub sim_threshold: f64,
    /// Weight of a valid format.
    pub w_format: f64,
    /// Weight of self-certainty.
    pub w_rationale: f64,
    /// Weight of the right action type.
    pub w_type: f64,
    /// Weight of a non-empty name, for gold clicks.
    pub w_click_attr_presence: f64,
    /// Weight of a non-empty name, for gold `type_and_submit`.
    pub w_type_submit_name_presence: f64,
    /// Weight of a non-empty text, for gold `type_and_submit`.
    pub w_type_submit_text_presence: f64,
    /// Weight of the name similarity, for gold `type_and_submit`.
    pub w_type_submit_name_sim: f64,
    /// Whether the difficulty factor is applied.
    pub enable_dars: bool,
    /// Factor of the easiest examples.
    pub dars_min_scale: f64,
    /// Factor of the hardest examples.
    pub dars_max_scale: f64,
    /// Weight of the value similarity.
    pub dars_factor: f64,
    /// Weight of the action type in the difficulty.
    pub dars_weight_type: f64,
    /// Weight of the prompt length in the difficulty.
    pub dars_weight_context_len: f64,
    /// Weight of the value length in the difficulty.
    pub dars_weight_value_len: f64,
    /// Whether self-certainty is rewarded.
    pub enable_self_certainty: bool,
    /// Whether distributions over the whole vocabulary are used.
    pub sc_exact_kl: bool,
    /// Vocabulary size V; `None` uses the length of the distribution.
    pub sc_vocab_size_hint: Option<u32>,
    /// Mean log-probability with self-certainty 0.5, for replies with log-probabilities only.
    pub sc_calib_center: f64,
    /// Slope of self-certainty in the mean log-probability.
    pub sc_calib_scale: f64,
    /// Lower bound of self-certainty.
    pub sc_clip_min: f64,
    /// Upper bound of self-certainty.
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
    /// Checks the range of every value that [`RewardConfig`] has, too. Those of the other keys are taken as they are, as in the
    /// repository.
    ///
    /// # Errors
    /// [`crate::EvaluationError::InvalidValue`], with the name that the key has in [`RewardConfig`].
    pub fn validate(&self) -> Result<()> {
        self.rule().validate()
    }

    /// The equivalent configuration of the hierarchical reward.
    pub(super) fn rule(&self) -> RewardConfig {
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
