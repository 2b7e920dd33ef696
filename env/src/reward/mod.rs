//! The reward of a purchase: type × (attributes + options + price) / number of requirements.
//!
//! The rule is the original WebShop's (Yao et al. 2022, arXiv 2207.01206, section 3 and its code):
//!
//! ```text
//! r = r_type · (|attributes met| + |options met| + [price ≤ limit]) / (|attributes| + |options| + 1)
//! ```
//!
//! [`RewardBreakdown`] holds the counts of one purchase; only [`RewardBreakdown::total`] divides them, and
//! `Display` prints the formula with its numbers. A [`RewardExplanation`] also lists which requirements were
//! met. [`ProductFacts`] and [`GoalFacts`] are the values to compare, prepared once per product and goal.
//!
//! Deviation from the original, under [`Compat::Repaired`]: required and selected options are compared by
//! value, colors by family on both sides, so that a value always meets the option that requires it. In two cases the
//! goal's own product still earns less than 1, as in the original: a required attribute without a word, such as `é`, is
//! met only if one of the product's texts contains it; and r_type counts the repeated nouns of the goal's title, so that
//! a title of which fewer than a tenth of the nouns are different does not match itself.

pub(crate) mod best_purchase;
pub(crate) mod color;
mod explanation;
pub(crate) mod fuzzy;
pub(crate) mod nouns;
pub(crate) mod original_fields;

pub use explanation::RewardExplanation;

use crate::original::compat::Compat;
use crate::reward::color::{COLORS, normalize_color};
use crate::reward::fuzzy::Phrase;
use crate::reward::nouns::NounTable;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use webshop_products::{Cents, Goal, Product, Selection, WantedOption};
use webshop_pycompat::{UnicodeAge, repr_string, strip};

/// Counts of the requirements that one purchase meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RewardBreakdown {
    /// Whether the product has the same query as the goal's product.
    pub query_match: bool,
    /// Whether the two share at least two steps of the category path.
    pub category_match: bool,
    /// Distinct nouns that the two titles share.
    pub shared_nouns: u32,
    /// Nouns of the goal's title, repeats counted.
    pub goal_nouns: u32,
    /// Required attributes that the product has.
    pub attribute_matches: u32,
    /// Required attributes.
    pub n_attributes: u32,
    /// Required options among those selected.
    pub option_matches: u32,
    /// Required options.
    pub n_options: u32,
    /// Whether the product costs no more than the limit; true if there is none.
    pub price_ok: bool,
}

impl RewardBreakdown {
    /// The factor for the kind of product: 1, 0.5, 0.1 or 0.
    ///
    /// 1 requires the same query, the same category or more than a fifth of the title's nouns. With less than
    /// a tenth of the nouns it is 0.1, without any 0, whatever else agrees.
    pub fn r_type(&self) -> f64 {
        let (shared, all) = (self.shared_nouns, self.goal_nouns);
        // A title without nouns counts as sharing exactly a fifth.
        if all > 0 && shared == 0 {
            0.0
        } else if all > 0 && 10 * shared < all {
            0.1
        } else if self.query_match || self.category_match || 5 * shared > all {
            1.0
        } else {
            0.5
        }
    }

    /// The share of the goal's nouns that the product's title holds; 0.2 if it has none.
    pub fn title_score(&self) -> f64 {
        match self.goal_nouns {
            0 => 0.2,
            all => f64::from(self.shared_nouns) / f64::from(all),
        }
    }

    /// The number of requirements: attributes, options, and the price.
    pub fn n_required(&self) -> u32 {
        self.n_attributes + self.n_options + 1
    }

    /// The number of requirements met.
    pub fn n_met(&self) -> u32 {
        self.attribute_matches + self.option_matches + u32::from(self.price_ok)
    }

    /// The reward, 0 to 1.
    pub fn total(&self) -> f64 {
        f64::from(self.n_met()) / f64::from(self.n_required()) * self.r_type()
    }

    /// Whether the reward is exactly 1.
    pub fn is_success(&self) -> bool {
        self.n_met() == self.n_required() && self.r_type() == 1.0
    }
}

impl fmt::Display for RewardBreakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.4} = {} type × ({}/{} attributes + {}/{} options + {}/1 price) / {}",
            self.total(),
            self.r_type(),
            self.attribute_matches,
            self.n_attributes,
            self.option_matches,
            self.n_options,
            u32::from(self.price_ok),
            self.n_required()
        )
    }
}

/// The values of a product that rewards compare.
#[derive(Clone, Debug)]
pub(crate) struct ProductFacts {
    query: Arc<str>,
    steps: BTreeSet<String>,
    nouns: BTreeSet<String>,
    attributes: Vec<Phrase>,
    /// Title, bullets and description, lower case, each searched by itself.
    texts: [String; 3],
    paid: Cents,
}

impl ProductFacts {
    pub(crate) fn new(product: &Product, nouns: &NounTable) -> Self {
        ProductFacts {
            query: product.query.clone(),
            steps: category_steps(&product.product_category),
            nouns: nouns.nouns(&product.title).into_iter().collect(),
            attributes: product.attributes.iter().map(|a| Phrase::new(a)).collect(),
            texts: [
                product.title.to_lowercase(),
                product.bullets.join(" ").to_lowercase(),
                product.description.to_lowercase(),
            ],
            paid: product.price.paid,
        }
    }

    /// Whether the product has a required attribute: fuzzily among its attributes, or literally in a text.
    fn has_attribute(&self, wanted: &(Arc<str>, Phrase)) -> bool {
        let (text, phrase) = wanted;
        self.attributes.iter().any(|own| own.matches(phrase))
            || self.texts.iter().any(|own| own.contains(&**text))
    }
}

/// The values of a goal that rewards compare.
#[derive(Clone, Debug)]
pub(crate) struct GoalFacts {
    query: Arc<str>,
    steps: BTreeSet<String>,
    nouns: Vec<String>,
    attributes: Vec<(Arc<str>, Phrase)>,
    options: Vec<RequiredOption>,
    price_limit: Option<Cents>,
}

impl GoalFacts {
    pub(crate) fn new(goal: &Goal, nouns: &NounTable, compat: Compat) -> Self {
        GoalFacts {
            query: goal.query.clone(),
            steps: category_steps(&goal.product_category),
            nouns: nouns.nouns(&goal.title),
            attributes: goal.attributes.iter().map(|text| (text.clone(), Phrase::new(text))).collect(),
            options: goal.options.iter().map(|wanted| RequiredOption::new(wanted, compat)).collect(),
            price_limit: goal.price_limit,
        }
    }

    /// Whether selecting a value meets the required option number `option`.
    pub(crate) fn option_met_by(&self, option: usize, value: &str) -> bool {
        self.options[option].is_met_by(&Choice::new(value))
    }
}

/// A required option as it is compared.
#[derive(Clone, Debug)]
struct RequiredOption {
    phrase: Phrase,
    /// The value itself, which always meets the requirement; a value without a word, such as `{}`, has no
    /// phrase.
    exact: Option<Arc<str>>,
}

/// A selected value as it is compared.
struct Choice<'a> {
    text: &'a str,
    phrase: Phrase,
}

impl RequiredOption {
    /// The original compares a named option as the printed pair of name and value, unless one of the two is a
    /// color, which then replaces the pair.
    fn new(wanted: &WantedOption, compat: Compat) -> Self {
        let value = &wanted.value;
        let text = match (&wanted.name, compat) {
            (Some(name), Compat::Original) => {
                let mut colors = COLORS.into_iter();
                match colors.find(|color| **color == **name || **color == **value) {
                    Some(color) => color.to_owned(),
                    None => {
                        let repr = |text| repr_string(text, UnicodeAge::V12_1);
                        format!("({}, {})", repr(name), repr(value))
                    }
                }
            }
            _ => normalize_color(value).to_owned(),
        };
        RequiredOption {
            phrase: Phrase::new(&text),
            exact: (compat == Compat::Repaired).then(|| value.clone()),
        }
    }

    fn is_met_by(&self, choice: &Choice<'_>) -> bool {
        self.exact.as_deref() == Some(choice.text) || choice.phrase.matches(&self.phrase)
    }
}

impl<'a> Choice<'a> {
    fn new(text: &'a str) -> Self {
        Choice { text, phrase: Phrase::new(normalize_color(text)) }
    }
}

/// The counts for buying a product with these options.
pub(crate) fn breakdown(goal: &GoalFacts, product: &ProductFacts, chosen: &Selection) -> RewardBreakdown {
    let chosen: Vec<Choice<'_>> = chosen.values().map(Choice::new).collect();
    let goal_nouns: BTreeSet<&String> = goal.nouns.iter().collect();
    let is_met = |option: &&RequiredOption| chosen.iter().any(|choice| option.is_met_by(choice));
    RewardBreakdown {
        query_match: goal.query == product.query,
        category_match: goal.steps.intersection(&product.steps).count() >= 2,
        shared_nouns: count(goal_nouns.iter().filter(|noun| product.nouns.contains(**noun))),
        goal_nouns: goal.nouns.len() as u32,
        attribute_matches: count(goal.attributes.iter().filter(|wanted| product.has_attribute(wanted))),
        n_attributes: goal.attributes.len() as u32,
        option_matches: count(goal.options.iter().filter(is_met)),
        n_options: goal.options.len() as u32,
        price_ok: goal.price_limit.is_none_or(|limit| product.paid <= limit),
    }
}

fn count(items: impl Iterator) -> u32 {
    items.count() as u32
}

/// The steps of a category path.
pub(crate) fn category_steps(path: &str) -> BTreeSet<String> {
    path.split('›').map(|step| strip(step).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERFECT: RewardBreakdown = RewardBreakdown {
        query_match: true,
        category_match: true,
        shared_nouns: 4,
        goal_nouns: 4,
        attribute_matches: 2,
        n_attributes: 2,
        option_matches: 1,
        n_options: 1,
        price_ok: true,
    };

    #[test]
    fn a_perfect_purchase_is_worth_one() {
        assert!(PERFECT.is_success());
        assert_eq!(PERFECT.total(), 1.0);
    }

    #[test]
    fn the_sum_is_printed_with_its_numbers() {
        let purchase = RewardBreakdown {
            option_matches: 0,
            query_match: false,
            category_match: false,
            shared_nouns: 1,
            goal_nouns: 5,
            ..PERFECT
        };
        // Three of four requirements met, half for the type: .75 · .5 = .375.
        assert_eq!(
            purchase.to_string(),
            "0.3750 = 0.5 type × (2/2 attributes + 0/1 options + 1/1 price) / 4"
        );
    }

    #[test]
    fn shared_nouns_decide_the_type_at_its_limits() {
        let r_type = |query_match, shared_nouns, goal_nouns| {
            let purchase =
                RewardBreakdown { query_match, category_match: false, shared_nouns, goal_nouns, ..PERFECT };
            purchase.r_type()
        };
        assert_eq!(r_type(false, 1, 5), 0.5, "exactly a fifth is not enough");
        assert_eq!(r_type(false, 2, 9), 1.0);
        assert_eq!(r_type(true, 1, 10), 1.0, "exactly a tenth is enough");
        assert_eq!(r_type(true, 1, 11), 0.1, "few shared nouns override the query");
        assert_eq!(r_type(true, 0, 3), 0.0);
        assert_eq!(r_type(true, 0, 0), 1.0);
        assert_eq!(r_type(false, 0, 0), 0.5);
    }
}
