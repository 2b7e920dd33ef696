//! The reward of one purchase, requirement by requirement.

use super::{Choice, GoalFacts, ProductFacts, RewardBreakdown, breakdown};
use std::fmt;
use webshop_products::{Cents, Goal, Product, Selection};

/// The requirements of a goal, and whether a purchase meets them.
///
/// `Display` prints the formula with its numbers and a line for each requirement.
#[derive(Clone, Debug, PartialEq)]
pub struct RewardExplanation {
    /// The counts.
    pub breakdown: RewardBreakdown,
    /// Required attributes in the goal's order, and whether the product has them.
    pub attributes: Vec<(String, bool)>,
    /// Required options in the goal's order, `name: value` or the value alone, each with the selected value
    /// that meets it, if any.
    pub options: Vec<(String, Option<String>)>,
    /// The price charged.
    pub paid: Cents,
    /// The price limit.
    pub limit: Option<Cents>,
}

impl RewardExplanation {
    pub(crate) fn new(
        (goal, wanted): (&Goal, &GoalFacts),
        (product, bought): (&Product, &ProductFacts),
        selection: &Selection,
    ) -> Self {
        let chosen: Vec<Choice<'_>> = selection.values().map(Choice::new).collect();
        let attributes = goal.attributes.iter().zip(&wanted.attributes);
        let options = goal.options.iter().zip(&wanted.options);
        RewardExplanation {
            breakdown: breakdown(wanted, bought, selection),
            attributes: attributes
                .map(|(text, attribute)| (text.to_string(), bought.has_attribute(attribute)))
                .collect(),
            options: options
                .map(|(option, required)| {
                    let met_by = chosen.iter().find(|choice| required.is_met_by(choice));
                    let name = option.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
                    (name + &option.value, met_by.map(|choice| choice.text.to_owned()))
                })
                .collect(),
            paid: product.price.paid,
            limit: goal.price_limit,
        }
    }
}

impl fmt::Display for RewardExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.breakdown;
        let same = |is_same| if is_same { "same" } else { "another" };
        let mark = |is_met| if is_met { 1 } else { 0 };
        writeln!(f, "{counts}")?;
        writeln!(
            f,
            "  {} type: {} query, {} category, {} of {} nouns shared",
            counts.r_type(),
            same(counts.query_match),
            same(counts.category_match),
            counts.shared_nouns,
            counts.goal_nouns
        )?;
        for (attribute, is_met) in &self.attributes {
            writeln!(f, "  {} attribute {attribute}", mark(*is_met))?;
        }
        for (option, met_by) in &self.options {
            let how = met_by.as_ref().map(|value| format!(", met by {value}")).unwrap_or_default();
            writeln!(f, "  {} option {option}{how}", mark(met_by.is_some()))?;
        }
        match self.limit {
            Some(limit) => {
                writeln!(f, "  {} price {} within {limit}", mark(counts.price_ok), self.paid)
            }
            None => writeln!(f, "  {} price {}, no limit", mark(counts.price_ok), self.paid),
        }
    }
}
