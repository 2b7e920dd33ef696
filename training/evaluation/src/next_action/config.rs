//! The hierarchical reward's numbers and choices.
//!
//! [`RewardConfig::default`] is what this project trains with, [`RewardConfig::paper`] the published reward; they differ in
//! `exact_shortcut` alone. Keys that JSON or TOML do not state keep their defaults, and unknown ones are errors.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use webshop_agent::next_action::{ActionType, FormatMode};
use webshop_lm::generation::self_certainty::{Certainty, CertaintyKind};

use crate::next_action::similarity::Similarity;
use crate::error::{EvaluationError, Result};

/// How a completion is judged. The formula that these are the letters of stands at the head of `reward.rs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewardConfig {
    /// How much form a completion needs.
    pub format_mode: FormatMode,
    /// Whether a completion of another form is worth 0, its rationale included. Without, the rationale is paid all the same.
    pub gate_format: bool,
    /// Whether names and texts are paid only under the right type.
    pub gate_type: bool,
    /// For the form.
    pub w_format: f64,
    /// For the right type.
    pub w_type: f64,
    /// For any name in place of a click's.
    pub w_click_name: f64,
    /// For any name in place of a `type_and_submit`'s.
    pub w_tas_name: f64,
    /// For any text in place of a `type_and_submit`'s.
    pub w_tas_text: f64,
    /// For the right name of a `type_and_submit`.
    pub w_tas_name_sim: f64,
    /// For the right name of a click and the right text of a `type_and_submit`: 1000 because they are that hard to hit.
    pub dars: f64,
    /// Whether `dars` is the same for every example.
    pub dars_kind: DarsKind,
    /// How texts, and the names of fields, are compared.
    pub similarity: SimilarityKind,
    /// How the names of clicks are compared.
    pub click_similarity: SimilarityKind,
    /// Whether equal texts without any of `[a-z0-9]` are wholly alike to ROUGE-L, to which they are else nothing.
    pub exact_shortcut: bool,
    /// What a similarity must pass to be paid, in whole thousandths.
    pub threshold: f64,
    /// What passing means.
    pub sim_cmp: SimCmp,
    /// Added, unscaled, where the name of a click or the text of a `type_and_submit` does not pass.
    pub negative_wrong_value: f64,
    /// Factors by the type of the gold action, on all that depends on it: type, presence and values.
    pub class_weights: ClassWeights,
    /// For the certainty of the rationale.
    pub alpha: f64,
    /// What certainty is.
    pub sc_kind: CertaintyKind,
    /// How many ids certainty of kind `top_k` looks at.
    pub top_k: usize,
}

/// Whether right values are worth more in harder examples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DarsKind {
    /// The same in all.
    #[default]
    Constant,
    /// Times the re-implementation's factor of .85 to 1.15, which the type has too.
    RepoCompat,
}

/// How two texts are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SimilarityKind {
    /// By the order of their words: [`Similarity::rouge_l`].
    #[default]
    RougeL,
    /// The same or not: [`Similarity::same`].
    Exact,
    /// By blocks of characters: [`Similarity::character_blocks`].
    RepoCompat,
}

/// What passing a threshold means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SimCmp {
    /// To be more.
    #[default]
    Gt,
    /// To be no less.
    Ge,
}

/// A factor for each type of gold action.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClassWeights {
    /// Of clicks.
    pub click: f64,
    /// Of searches.
    pub type_and_submit: f64,
    /// Of leaving.
    pub terminate: f64,
}

impl Default for ClassWeights {
    fn default() -> Self {
        Self { click: 1.0, type_and_submit: 1.0, terminate: 1.0 }
    }
}

impl ClassWeights {
    /// The factor of a type.
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
    /// The published reward, to the letter: texts without `[a-z0-9]` are like nothing.
    pub fn paper() -> Self {
        Self { exact_shortcut: false, ..Self::default() }
    }

    /// This configuration with some keys changed.
    ///
    /// # Errors
    /// [`EvaluationError::UnknownKey`] or [`EvaluationError::InvalidValue`], which name the key.
    ///
    /// ```
    /// use crate::next_action::RewardConfig;
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
            *slot = value.clone();
            changed = serde_json::from_value(Value::Object(keys.clone()))
                .map_err(|error| invalid(key, format!("was refused: {error}")))?;
        }
        changed.validate()?;
        Ok(changed)
    }

    /// Refuses the first value outside its range, in the order of the keys.
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

    /// How sure a model is of a token, under this configuration.
    pub fn certainty(&self) -> Certainty {
        Certainty { kind: self.sc_kind, top_k: self.top_k }
    }

    /// How alike `written` is to what is `gold`.
    pub(super) fn alike(&self, kind: SimilarityKind, written: &str, gold: &str) -> Similarity {
        match kind {
            SimilarityKind::RougeL if self.exact_shortcut => Similarity::rouge_l_or_same(written, gold),
            SimilarityKind::RougeL => Similarity::rouge_l(written, gold),
            SimilarityKind::Exact => Similarity::same(written, gold),
            SimilarityKind::RepoCompat => Similarity::character_blocks(written, gold),
        }
    }

    /// Whether this likeness is paid.
    pub(super) fn is_paid(&self, similarity: Similarity) -> bool {
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
    fn the_paper_differs_in_one_key() {
        assert_eq!(changed(json!({ "exact_shortcut": false })).unwrap(), RewardConfig::paper());
        assert_eq!(changed(json!({})).unwrap(), RewardConfig::default());
        assert_eq!(serde_json::from_str::<RewardConfig>("{}").unwrap(), RewardConfig::default());
    }

    #[test]
    fn a_key_that_cannot_be_is_named() {
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
