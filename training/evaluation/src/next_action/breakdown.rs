//! The parts of a reward.

use std::fmt;

use serde::{Serialize, Serializer};
use webshop_agent::next_action::{FormatError, WrittenAction};

use crate::next_action::similarity::Similarity;

/// A summand of a reward: a weight and the earned share of it. It serializes as their product.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    /// The weight; 0 if the gold action has no such part or a gate removed it.
    pub weight: f64,
    /// The earned share, 0 to 1; for the rationale the self-certainty, which may exceed 1.
    pub share: f64,
}

impl Part {
    /// A part whose share is 1 or 0.
    pub(super) fn all_or_nothing(holds: bool, weight: f64) -> Self {
        Self { weight, share: if holds { 1.0 } else { 0.0 } }
    }

    /// The summand: weight times share.
    pub fn value(self) -> f64 {
        self.weight * self.share
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value())
    }
}

/// The reward of an attempt, part by part. Its `Display` prints the formula with the numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ShopR1Breakdown {
    /// For a valid format.
    pub format: Part,
    /// For the right action type.
    #[serde(rename = "type")]
    pub action_type: Part,
    /// For a name that is not empty.
    pub attr_name: Part,
    /// For a text that is not empty.
    pub attr_text: Part,
    /// For the similarity of the names.
    pub value_name: Part,
    /// For the similarity of the texts.
    pub value_text: Part,
    /// For the self-certainty of the rationale.
    pub rationale: Part,
    /// Similarity of the names, if it was computed.
    #[serde(skip)]
    pub sim_name: Option<Similarity>,
    /// Similarity of the texts, if it was computed.
    #[serde(skip)]
    pub sim_text: Option<Similarity>,
    /// The scored action; `None` if none could be parsed.
    #[serde(skip)]
    pub action: Option<WrittenAction>,
    /// Why the format is invalid; `None` for a valid one.
    #[serde(skip)]
    pub problem: Option<FormatError>,
}

impl ShopR1Breakdown {
    /// The parts in the order of summation: small ones first, so that rounding beside 1000 loses least.
    pub fn parts(&self) -> [Part; 7] {
        let Self { format, action_type, attr_name, attr_text, value_name, value_text, rationale, .. } = *self;
        [format, action_type, attr_name, attr_text, rationale, value_name, value_text]
    }

    /// The reward.
    pub fn total(&self) -> f64 {
        self.parts().into_iter().map(Part::value).sum()
    }
}

impl fmt::Display for ShopR1Breakdown {
    /// The total, every part with a weight, similarities below the threshold, and the error of the format.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.format, "format", None),
            (self.action_type, "type", None),
            (self.attr_name, "name", None),
            (self.attr_text, "text", None),
            (self.value_name, "same name", self.sim_name),
            (self.value_text, "same text", self.sim_text),
            (self.rationale, "certainty", None),
        ];
        // Without recorded self-certainty the rationale part is 0 and left out.
        let is_shown = |part: Part, name| part.weight != 0.0 && (name != "certainty" || part.share != 0.0);
        let mut summands = Vec::new();
        let mut below_threshold = Vec::new();
        for (part, name, similarity) in parts.into_iter().filter(|(part, name, _)| is_shown(*part, *name)) {
            let share = match similarity.filter(|similarity| similarity.matched > 0) {
                Some(similarity) if part.share == similarity.ratio() => similarity.to_string(),
                Some(similarity) => {
                    below_threshold.push(format!("{name} {similarity}"));
                    short(part.share)
                }
                None => short(part.share),
            };
            summands.push(format!("{} × {share} {name}", short(part.weight)));
        }
        let sum = if summands.is_empty() { "nothing".into() } else { summands.join(" + ") };
        write!(f, "{} = {sum}", short(self.total()))?;
        if !below_threshold.is_empty() {
            write!(f, "; below the threshold: {}", below_threshold.join(", "))?;
        }
        match &self.problem {
            Some(problem) => write!(f, "; {problem}"),
            None => Ok(()),
        }
    }
}

/// At most four decimals, without trailing zeros.
fn short(value: f64) -> String {
    let digits = format!("{value:.4}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    if digits == "-0" { "0".into() } else { digits.into() }
}
