//! A goal in the original's JSON format.
//!
//! A [`GoalRecord`] has the original's names for the fields of a [`Goal`], prices in dollars, and no
//! position in a catalog. Its [`RecordedOptions`] distinguish the original's forms: a synthetic goal
//! maps names to values, a human one lists values.
//!
//! Rewards are computed for a [`Goal`], into which a record is converted first.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::catalog::Catalog;
use crate::catalog::price::Cents;
use crate::catalog::product::ProductIdx;
use crate::error::DataError;
use crate::goal::{Goal, GoalId, GoalStyle, WantedOption};

/// The original's value for no limit: a whole number, unlike all others.
const NO_LIMIT: u64 = 1_000_000;

/// One goal, as the original writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoalRecord {
    /// The product it was made from.
    pub asin: String,
    /// That product's department.
    #[serde(default)]
    pub category: String,
    /// That product's query.
    pub query: String,
    /// That product's title.
    pub name: String,
    /// That product's category path.
    pub product_category: String,
    /// The instruction.
    #[serde(default)]
    pub instruction_text: String,
    /// Required attributes.
    pub attributes: Vec<String>,
    /// The price limit in dollars.
    pub price_upper: Number,
    /// Required options.
    pub goal_options: RecordedOptions,
    /// Weight in random draws; 1 if absent.
    #[serde(default = "one")]
    pub weight: Number,
}

/// The required options of a goal, in the three forms of the original.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "options are a map of texts, a list of texts, or a list of pairs")]
pub enum RecordedOptions {
    /// By name, of a synthetic goal.
    Named(IndexMap<String, String>),
    /// Without their names, of a human goal.
    Values(Vec<String>),
    /// Pairs of name and value, into which the original converts the map before it computes a reward.
    Pairs(Vec<(String, String)>),
}

fn one() -> Number {
    1.into()
}

impl GoalRecord {
    /// The goal, with id 0 until a [`crate::GoalSet`] numbers it.
    ///
    /// # Errors
    /// [`DataError::UnknownProduct`], if `catalog` does not sell the product it was made from.
    pub fn to_goal(&self, catalog: &Catalog) -> Result<Goal, DataError> {
        let unknown = || DataError::UnknownProduct { asin: self.asin.clone() };
        Ok(self.to_goal_for(catalog.find(&self.asin).ok_or_else(unknown)?, catalog))
    }

    /// The goal for `product` of `catalog`; the product does not affect rewards.
    pub fn to_goal_for(&self, product: ProductIdx, catalog: &Catalog) -> Goal {
        let limit = self.price_upper.as_f64().unwrap_or(f64::INFINITY);
        Goal {
            id: GoalId(0),
            product,
            asin: catalog.get(product).id.clone(),
            department: self.category.as_str().into(),
            query: self.query.as_str().into(),
            title: self.name.as_str().into(),
            product_category: self.product_category.as_str().into(),
            instruction: self.instruction_text.as_str().into(),
            attributes: self.attributes.iter().map(|attribute| attribute.as_str().into()).collect(),
            options: self.goal_options.wanted(),
            price_limit: Some(Cents::at_most(limit)),
            weight: self.weight.as_f64().unwrap_or(1.0),
            style: match self.goal_options {
                RecordedOptions::Values(_) => GoalStyle::Human,
                RecordedOptions::Named(_) | RecordedOptions::Pairs(_) => GoalStyle::Synthetic,
            },
        }
    }
}

impl RecordedOptions {
    /// The required options, in the same order.
    pub fn wanted(&self) -> Box<[WantedOption]> {
        let named = |(name, value): (&String, &String)| WantedOption {
            name: Some(name.as_str().into()),
            value: value.as_str().into(),
        };
        match self {
            Self::Named(options) => options.iter().map(named).collect(),
            Self::Pairs(options) => options.iter().map(|(name, value)| named((name, value))).collect(),
            Self::Values(values) => {
                values.iter().map(|value| WantedOption { name: None, value: value.as_str().into() }).collect()
            }
        }
    }
}

impl From<&Goal> for GoalRecord {
    fn from(goal: &Goal) -> Self {
        let options = goal.options.iter().map(|option| (option.name.as_deref(), option.value.to_string()));
        let goal_options = match goal.style {
            GoalStyle::Human => RecordedOptions::Values(options.map(|(_, value)| value).collect()),
            GoalStyle::Synthetic => RecordedOptions::Named(
                options.map(|(name, value)| (name.unwrap_or_default().to_owned(), value)).collect(),
            ),
        };
        let limit = goal.price_limit.map_or(NO_LIMIT as f64, Cents::dollars);
        let is_limited = limit != NO_LIMIT as f64;
        let weight = Some(goal.weight).filter(|_| goal.style == GoalStyle::Synthetic);
        Self {
            asin: goal.asin.to_string(),
            category: goal.department.to_string(),
            query: goal.query.to_string(),
            name: goal.title.to_string(),
            product_category: goal.product_category.to_string(),
            instruction_text: goal.instruction.to_string(),
            attributes: goal.attributes.iter().map(ToString::to_string).collect(),
            price_upper: Number::from_f64(limit).filter(|_| is_limited).unwrap_or(NO_LIMIT.into()),
            goal_options,
            weight: weight.and_then(Number::from_f64).unwrap_or_else(one),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EmbeddedCatalog, GoalKind, GoalSet, RawData, Seed};

    #[test]
    fn a_goal_survives_its_record() {
        let data = RawData::embedded(EmbeddedCatalog::Hundred);
        let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).unwrap();
        for goal in goals.goals() {
            let json = serde_json::to_string(&GoalRecord::from(goal)).unwrap();
            let record: GoalRecord = serde_json::from_str(&json).unwrap();
            let read = record.to_goal(&catalog).unwrap();
            let limit = goal.price_limit.or(Some(Cents(100_000_000)));
            assert_eq!(read, Goal { id: GoalId(0), price_limit: limit, ..goal.clone() });
        }
    }

    #[test]
    fn options_are_read_in_all_three_forms() {
        let read = |json: &str| serde_json::from_str::<RecordedOptions>(json).unwrap().wanted();
        let red = |name: Option<&str>| -> Box<[_]> {
            [WantedOption { name: name.map(Into::into), value: "red".into() }].into()
        };
        assert_eq!(read(r#"["red"]"#), red(None));
        assert_eq!(read(r#"{"color": "red"}"#), red(Some("color")));
        assert_eq!(read(r#"[["color", "red"]]"#), red(Some("color")));
    }

    #[test]
    fn a_goal_of_another_catalog_is_refused() {
        let data = RawData::embedded(EmbeddedCatalog::Hundred);
        let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).unwrap();
        let stranger = GoalRecord { asin: "B0NOWHERE0".into(), ..GoalRecord::from(&goals.goals()[0]) };
        let message = stranger.to_goal(&catalog).unwrap_err().to_string();
        assert_eq!(message, "the goal's product `B0NOWHERE0` is not in the catalog");
    }
}
