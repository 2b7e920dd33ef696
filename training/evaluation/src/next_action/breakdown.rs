//! What a reward is made of.

use std::fmt;

use serde::{Serialize, Serializer};
use webshop_agent::next_action::{FormatError, WrittenAction};

use crate::next_action::similarity::Similarity;

/// A summand of a reward: a weight and how much of it was earned. It serializes as their product.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    /// What the whole of it is worth; 0 where the gold action has no such part, or where it was gated off.
    pub weight: f64,
    /// The share that was earned; a certainty may be more than 1.
    pub share: f64,
}

impl Part {
    /// All of `weight` or nothing.
    pub(super) fn if_so(holds: bool, weight: f64) -> Self {
        Self { weight, share: if holds { 1.0 } else { 0.0 } }
    }

    /// What it adds to the reward.
    pub fn value(self) -> f64 {
        self.weight * self.share
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value())
    }
}

/// What an attempt earned, part by part. Printed, it is the formula with its numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ShopR1Breakdown {
    /// For the form.
    pub format: Part,
    /// For the right type.
    #[serde(rename = "type")]
    pub action_type: Part,
    /// For there being a name.
    pub attr_name: Part,
    /// For there being a text.
    pub attr_text: Part,
    /// For the right name.
    pub value_name: Part,
    /// For the right text.
    pub value_text: Part,
    /// For the certainty of the rationale.
    pub rationale: Part,
    /// How alike the names are, where that was asked.
    #[serde(skip)]
    pub sim_name: Option<Similarity>,
    /// How alike the texts are, where that was asked.
    #[serde(skip)]
    pub sim_text: Option<Similarity>,
    /// What was judged; `None` if nothing could be read.
    #[serde(skip)]
    pub action: Option<WrittenAction>,
    /// What is wrong with the form, if anything is.
    #[serde(skip)]
    pub problem: Option<FormatError>,
}

impl ShopR1Breakdown {
    /// The parts in the order in which they are summed: small ones first, so that none is lost beside 1000.
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
    /// The total and every part with a weight; behind them, a likeness that was not paid and what is wrong with the form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            (self.format, "format", None),
            (self.action_type, "type", None),
            (self.attr_name, "name", None),
            (self.attr_text, "text", None),
            (self.value_name, "same name", self.sim_name),
            (self.value_text, "same text", self.sim_text),
            (self.rationale, "certainty", None),
        ];
        // A model that was not asked how sure it is adds nothing to read.
        let is_shown = |part: Part, name| part.weight != 0.0 && (name != "certainty" || part.share != 0.0);
        let mut summands = Vec::new();
        let mut unpaid = Vec::new();
        for (part, name, similarity) in named.into_iter().filter(|(part, name, _)| is_shown(*part, *name)) {
            let partly = similarity.filter(|similarity| similarity.matched > 0);
            let share = match partly {
                Some(partly) if part.share == partly.ratio() => partly.to_string(),
                Some(partly) => {
                    unpaid.push(format!("{name} {partly}"));
                    short(part.share)
                }
                None => short(part.share),
            };
            summands.push(format!("{} × {share} {name}", short(part.weight)));
        }
        let sum = if summands.is_empty() { "nothing".into() } else { summands.join(" + ") };
        write!(f, "{} = {sum}", short(self.total()))?;
        if !unpaid.is_empty() {
            write!(f, "; too little: {}", unpaid.join(", "))?;
        }
        match &self.problem {
            Some(problem) => write!(f, "; {problem}"),
            None => Ok(()),
        }
    }
}

/// With four digits behind the point, less the zeros.
fn short(value: f64) -> String {
    let digits = format!("{value:.4}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    if digits == "-0" { "0".into() } else { digits.into() }
}
