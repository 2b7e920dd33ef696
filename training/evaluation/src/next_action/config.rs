//! Configuration of the hierarchical reward.
//!
//! [`RewardConfig::default`] is the reward this project trains with, [`RewardConfig::paper`] the published
//! one; they differ only in `exact_shortcut`. Keys that are missing in JSON or TOML keep their defaults;
//! unknown keys are errors.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use webshop_agent::next_action::{ActionType, FormatMode};
use webshop_lm::{Certainty, CertaintyKind};

use crate::error::{EvaluationError, Result};
use crate::next_action::similarity::{SimCmp, Similarity};

/// Weights and options of the hierarchical reward. The formula is in `hierarchical.rs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewardConfig {
    /// How strictly the format is checked.
    pub format_mode: FormatMode,
    /// Whether an invalid format makes the reward 0. If not, only the format term is 0.
    pub gate_format: bool,
    /// Whether presence and value terms need the right action type.
    pub gate_type: bool,
    /// Weight of a valid format.
    pub w_format: f64,
    /// Weight of the right action type.
    pub w_type: f64,
    /// Weight of a non-empty name, for gold clicks.
    pub w_click_name: f64,
    /// Weight of a non-empty name, for gold `type_and_submit`.
    pub w_tas_name: f64,
    /// Weight of a non-empty text, for gold `type_and_submit`.
    pub w_tas_text: f64,
    /// Weight of the name similarity, for gold `type_and_submit`.
    pub w_tas_name_sim: f64,
    /// Weight of the similarity of a click name or a `type_and_submit` text (difficulty-aware reward
    /// scaling). The paper sets 1000 because these values are hard to predict.
    pub dars: f64,
    /// Whether `dars` is constant or depends on the example.
    pub dars_kind: DarsKind,
    /// Similarity of texts and of the names of text fields.
    pub similarity: SimilarityKind,
    /// Similarity of click names.
    pub click_similarity: SimilarityKind,
    /// Whether equal texts without any of `[a-z0-9]` have similarity 1. ROUGE-L alone gives them 0.
    pub exact_shortcut: bool,
    /// Least similarity that is rewarded, in whole thousandths.
    pub threshold: f64,
    /// Whether a similarity equal to the threshold passes.
    pub sim_cmp: SimCmp,
    /// Reward of a click name or a `type_and_submit` text below the threshold; 0 or negative, not scaled by
    /// `dars`.
    pub negative_wrong_value: f64,
    /// Factors by gold action type on the type, presence and value terms.
    pub class_weights: ClassWeights,
    /// Weight of the self-certainty of the rationale.
    pub alpha: f64,
    /// Measure of self-certainty.
    pub sc_kind: CertaintyKind,
    /// Number of ids in self-certainty of kind `top_k`.
    pub top_k: usize,
}

/// Scaling of the value terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DarsKind {
    /// `dars` for every example.
    #[default]
    Constant,
    /// `dars` times the re-implementation's difficulty factor, .85 to 1.15, which also multiplies `w_type`.
    RepoCompat,
}

/// Similarity measure of two texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SimilarityKind {
    /// ROUGE-L F1 of words: `Similarity::rouge_l`.
    #[default]
    RougeL,
    /// Equality: `Similarity::exact`.
    Exact,
    /// Matching blocks of characters: `Similarity::character_blocks`.
    RepoCompat,
}

/// A factor for each gold action type.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClassWeights {
    /// Factor of `click`.
    pub click: f64,
    /// Factor of `type_and_submit`.
    pub type_and_submit: f64,
    /// Factor of `terminate`.
    pub terminate: f64,
}

impl Default for ClassWeights {
    fn default() -> Self {
        Self { click: 1.0, type_and_submit: 1.0, terminate: 1.0 }
    }
}

impl ClassWeights {
    /// The factor of an action type.
    pub fn of(&self, action_type: ActionType) -> f64 {
        match action_type {
            ActionType::Click => self.click,
            ActionType::TypeAndSubmit => self.type_and_submit,
            ActionType::Terminate => self.terminate,
        }
    }
}

impl Default for RewardConfig {
    fn default() -> Self {
        Self {
            format_mode: FormatMode::Json,
            gate_format: true,
            gate_type: true,
            w_format: 0.5,
            w_type: 0.3,
            w_click_name: 0.2,
            w_tas_name: 0.1,
            w_tas_text: 0.1,
            w_tas_name_sim: 0.1,
            dars: 1000.0,
            dars_kind: DarsKind::Constant,
            similarity: SimilarityKind::RougeL,
            click_similarity: SimilarityKind::RougeL,
            exact_shortcut: true,
            threshold: 0.75,
            sim_cmp: SimCmp::Gt,
            negative_wrong_value: 0.0,
            class_weights: ClassWeights::default(),
            alpha: 0.005,
            sc_kind: CertaintyKind::KlPU,
            top_k: 5,
        }
    }
}

impl RewardConfig {
    /// The published reward: texts without `[a-z0-9]` have similarity 0 to every text.
    pub fn paper() -> Self {
        Self { exact_shortcut: false, ..Self::default() }
    }

    /// This configuration with some keys changed.
    ///
    /// # Errors
    /// [`EvaluationError::UnknownKey`] or [`EvaluationError::InvalidValue`], which name the key.
    ///
    /// ```
    /// use webshop_evaluation::next_action::RewardConfig;
    /// let changes = serde_json::json!({ "sim_cmp": "ge", "dars": 1 });
    /// let config = RewardConfig::paper().with(changes.as_object().unwrap()).unwrap();
    /// assert_eq!(config.dars, 1.0);
    /// ```
    pub fn with(&self, changes: &Map<String, Value>) -> Result<Self> {
        let Value::Object(mut keys) = serde_json::to_value(self).expect("numbers and names are JSON") else {
            unreachable!("a struct is an object");
        };
        let mut changed = self.clone();
        for (key, value) in changes {
            let Some(slot) = keys.get_mut(key) else {
                let known: Vec<&str> = keys.keys().map(String::as_str).collect();
                let hint = format!("; there are {}", known.join(", "));
                return Err(EvaluationError::UnknownKey { key: key.clone(), hint });
            };
            match (slot.as_object_mut(), value) {
                // Of the weights of classes those that are named.
                (Some(of_slot), Value::Object(named)) => of_slot.extend(named.clone()),
                _ => *slot = value.clone(),
            }
            changed = serde_json::from_value(Value::Object(keys.clone()))
                .map_err(|error| invalid(key, format!("was refused: {error}")))?;
        }
        changed.validate()?;
        Ok(changed)
    }

    /// Returns an error for the first key whose value is out of range.
    ///
    /// # Errors
    /// [`EvaluationError::InvalidValue`], which names the key.
    pub fn validate(&self) -> Result<()> {
        let weights = &self.class_weights;
        for (key, value) in [
            ("w_format", self.w_format),
            ("w_type", self.w_type),
            ("w_click_name", self.w_click_name),
            ("w_tas_name", self.w_tas_name),
            ("w_tas_text", self.w_tas_text),
            ("w_tas_name_sim", self.w_tas_name_sim),
            ("dars", self.dars),
            ("class_weights.click", weights.click),
            ("class_weights.type_and_submit", weights.type_and_submit),
            ("class_weights.terminate", weights.terminate),
            ("alpha", self.alpha),
        ] {
            require(value.is_finite() && value >= 0.0, key, value, "0 or more")?;
        }
        let thousandths = 1000.0 * self.threshold;
        let is_whole = (thousandths - thousandths.round()).abs() < 1e-9;
        let in_range = (0.0..=1.0).contains(&self.threshold);
        require(is_whole && in_range, "threshold", self.threshold, "whole thousandths from 0 to 1")?;
        let wrong = self.negative_wrong_value;
        require(wrong.is_finite() && wrong <= 0.0, "negative_wrong_value", wrong, "0 or less")?;
        require(self.top_k > 0, "top_k", self.top_k, "1 or more")
    }

    /// The measure of self-certainty of a token.
    pub fn certainty(&self) -> Certainty {
        Certainty { kind: self.sc_kind, top_k: self.top_k }
    }

    /// Similarity of a predicted and a gold text by this measure.
    pub(super) fn similarity_of(&self, kind: SimilarityKind, predicted: &str, gold: &str) -> Similarity {
        match kind {
            SimilarityKind::RougeL if self.exact_shortcut => Similarity::rouge_l_or_exact(predicted, gold),
            SimilarityKind::RougeL => Similarity::rouge_l(predicted, gold),
            SimilarityKind::Exact => Similarity::exact(predicted, gold),
            SimilarityKind::RepoCompat => Similarity::character_blocks(predicted, gold),
        }
    }

    /// Whether this similarity passes the threshold.
    pub(super) fn passes(&self, similarity: Similarity) -> bool {
        similarity.passes((1000.0 * self.threshold).round() as u64, self.sim_cmp)
    }
}

fn require(holds: bool, key: &str, value: impl ToString, range: &str) -> Result<()> {
    if holds {
        return Ok(());
    }
    Err(invalid(key, format!("must be {range}, not {}", value.to_string())))
}

fn invalid(key: &str, problem: String) -> EvaluationError {
    EvaluationError::InvalidValue { key: key.into(), problem }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(changes: Value) -> Result<RewardConfig> {
        RewardConfig::default().with(changes.as_object().expect("an object"))
    }

    #[test]
    fn paper_differs_from_default_in_one_key() {
        assert_eq!(changed(json!({ "exact_shortcut": false })).unwrap(), RewardConfig::paper());
        assert_eq!(changed(json!({})).unwrap(), RewardConfig::default());
        assert_eq!(serde_json::from_str::<RewardConfig>("{}").unwrap(), RewardConfig::default());
    }

    #[test]
    fn errors_name_the_key() {
        let check = |changes: Value, expected: &str| {
            let error = changed(changes).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        };
        check(json!({ "dar": 1 }), "unknown configuration key `dar`; there are format_mode, gate_format, ");
        check(
            json!({ "alpha": 1, "sim_cmp": "eq" }),
            "configuration key `sim_cmp` was refused: unknown variant `eq`",
        );
        check(json!({ "dars": "much" }), "configuration key `dars` was refused: invalid type");
        check(
            json!({ "class_weights": { "scroll": 1 } }),
            "configuration key `class_weights` was refused: unknown field",
        );
        check(
            json!({ "threshold": 0.7505 }),
            "configuration key `threshold` must be whole thousandths from 0 to 1, not 0.7505",
        );
        check(json!({ "w_type": -1 }), "configuration key `w_type` must be 0 or more, not -1");
        check(
            json!({ "negative_wrong_value": 1 }),
            "configuration key `negative_wrong_value` must be 0 or less, not 1",
        );
        check(json!({ "top_k": 0 }), "configuration key `top_k` must be 1 or more, not 0");
    }
}
