//! Differences between the repaired shop and the original, and how many goals each affects.
//!
//! A [`DeviationReport`] holds a [`Deviation`] for each difference that an agent can observe, counted over
//! the goals of one catalog by trying it: the same goal in both shops, and in the original's own list of
//! goals. A [`NounChoice`] is added, because the choice of nouns affects rewards and is not part of the
//! original's rules.
//!
//! Differences for data that the original cannot load are not counted, because no goals are made of it.

mod noun_choice;

pub use noun_choice::{NounChoice, NounReference};

use crate::action::Action;
use crate::original::compat::Compat;
use crate::session::Session;
use crate::shop::{EnvError, Shop, ShopConfig};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use webshop_products::{Goal, GoalStyle, OriginalWorld, Product, ProductIdx};

/// One difference between the shops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deviation {
    /// A short name.
    pub name: &'static str,
    /// The behavior here, and that of the original.
    pub difference: &'static str,
    /// The number of goals affected.
    pub n_goals: usize,
}

/// All differences, counted over one catalog.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviationReport {
    /// The number of goals.
    pub n_goals: usize,
    /// The differences, those that affect rewards first.
    pub deviations: Vec<Deviation>,
    /// The effect of the choice of nouns.
    pub nouns: NounChoice,
}

/// Whether a difference affects a goal.
type Affects = fn(&Both<'_>, &Goal) -> bool;

const DEVIATIONS: [(&str, &str, Affects); 12] = [
    (
        "reachable reward",
        "a purchase that meets every requirement has reward 1; in the original, options compared as printed pairs and values that no action selects reduce it",
        |both, goal| {
            both.repaired.best_purchase(goal).breakdown.is_success()
                && !both.original.best_purchase(goal).breakdown.is_success()
        },
    ),
    (
        "required options",
        "an option is met by its value; in the original, by the printed pair of name and value, so by other values or none",
        |both, goal| both.accepts_other_values(goal),
    ),
    (
        "price limits",
        "the limit follows from the seed; in the original, each start of the program draws another",
        |_, goal| goal.instruction.contains(", and price lower than "),
    ),
    (
        "charged prices",
        "the price charged for a range follows from the seed, in whole cents; in the original, each start draws another float",
        |both, goal| both.product(goal).price.low < both.product(goal).price.high,
    ),
    (
        "drawing by weight",
        "a goal is selected by number; in the original, it is drawn with the weight of the goal before it, and the first never",
        |both, goal| both.other_weights.contains(&goal_key(goal)),
    ),
    (
        "kinds of goals",
        "human and synthetic goals are in one set; in the original, a run has one kind, by default the synthetic",
        |_, goal| goal.style == GoalStyle::Human,
    ),
    (
        "numbers of goals",
        "goals are numbered in catalog order; in the original, they are shuffled first",
        |both, goal| {
            let there = both.world.goals.goals().get(goal.id.0 as usize);
            there.is_none_or(|there| goal_key(there) != goal_key(goal))
        },
    ),
    (
        "brackets",
        "the verb of an action ends at the first `[`; in the original, at the last, so some texts can be neither typed nor clicked",
        |_, goal| {
            let search = format!("search[{}]", goal.instruction);
            let clicks = goal.options.iter().map(|option| format!("click[{}]", option.value));
            clicks
                .chain([search])
                .any(|text| Action::parse(&text, Compat::Repaired) != Action::parse(&text, Compat::Original))
        },
    ),
    (
        "shared values",
        "a value of two groups can be selected in both, click by click; in the original, in the last group only",
        |both, goal| has_shared_value(both.product(goal)),
    ),
    (
        "marks of selections",
        "the page marks selected values; in the original, values in quotes in the URL, and none beyond ASCII",
        |both, goal| both.other_marks[goal.product.as_usize()],
    ),
    (
        "going back",
        "`< prev` leads to the previous page; in the original, elsewhere if the query names a page of the site",
        |_, goal| ["search_results", "item_page"].iter().any(|page| goal.instruction.contains(page)),
    ),
    (
        "after the purchase",
        "every action is a no-op; in the original, searching and buying again is possible",
        |_, _| true,
    ),
];

impl DeviationReport {
    /// Tries the goals of `repaired` in both shops. `world` is the original's loading of the same catalog
    /// with synthetic goals; `nouns` is the reference for the choice of nouns.
    ///
    /// # Errors
    /// As [`Shop::new`], since the original's shop is opened beside ours.
    pub fn new(repaired: &Shop, world: &OriginalWorld, nouns: &NounReference) -> Result<Self, EnvError> {
        let both = Both::open(repaired, world)?;
        let goals = repaired.goals().goals();
        let count = |(name, difference, affects): (&'static str, &'static str, Affects)| {
            let n_goals = goals.iter().filter(|goal| affects(&both, goal)).count();
            Deviation { name, difference, n_goals }
        };
        Ok(Self {
            n_goals: goals.len(),
            deviations: DEVIATIONS.map(count).into(),
            nouns: NounChoice::new(repaired.catalog().products(), nouns),
        })
    }
}

impl fmt::Display for DeviationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "goals {}, of which are affected by", self.n_goals)?;
        for Deviation { name, difference, n_goals } in &self.deviations {
            writeln!(f, "{n_goals:>7}  {name}: {difference}")?;
        }
        write!(f, "{}", self.nouns)
    }
}

/// The two shops over the same products and goals, with precomputed differences.
struct Both<'a> {
    repaired: &'a Shop,
    original: Shop,
    world: &'a OriginalWorld,
    /// For each product, whether its page marks a single selected value differently.
    other_marks: Vec<bool>,
    /// Goals that the original draws more or less often than by their weight.
    other_weights: BTreeSet<GoalKey<'a>>,
}

/// Identifies a goal in both lists, in which limits, numbers and positions differ.
type GoalKey<'a> = (&'a str, bool, Vec<(Option<&'a str>, &'a str)>);

fn goal_key(goal: &Goal) -> GoalKey<'_> {
    let options = goal.options.iter().map(|option| (option.name.as_deref(), &*option.value));
    (goal.asin.as_str(), goal.style == GoalStyle::Human, options.collect())
}

impl<'a> Both<'a> {
    fn open(repaired: &'a Shop, world: &'a OriginalWorld) -> Result<Self, EnvError> {
        let config = ShopConfig { compat: Compat::Original, ..repaired.config().clone() };
        let original = Shop::with_config(repaired.catalog().clone(), repaired.goals().clone(), config)?;
        let n_products = repaired.catalog().len() as u32;
        let other_marks =
            (0..n_products).map(|at| other_marks(repaired, &original, ProductIdx(at))).collect();
        let drawn = world.goals.goals();
        let last = drawn.len().saturating_sub(1);
        let other_weights = drawn
            .iter()
            .enumerate()
            .filter(|&(at, goal)| at == 0 || at == last || drawn[at - 1].weight != goal.weight)
            .map(|(_, goal)| goal_key(goal))
            .collect();
        Ok(Self { repaired, original, world, other_marks, other_weights })
    }

    fn product(&self, goal: &Goal) -> &Product {
        self.repaired.catalog().get(goal.product)
    }

    /// Whether some value of the goal's product meets a required option in one shop and not in the other.
    fn accepts_other_values(&self, goal: &Goal) -> bool {
        let [ours, theirs] = [self.repaired, &self.original].map(|shop| shop.goal_facts(goal.id));
        let mut values = self.product(goal).options.iter().flat_map(|group| &group.values);
        values.any(|value| {
            (0..goal.options.len()).any(|option| {
                ours.option_met_by(option, &value.text) != theirs.option_met_by(option, &value.text)
            })
        })
    }
}

fn has_shared_value(product: &Product) -> bool {
    let groups = product.options.iter().enumerate();
    groups.clone().any(|(at, group)| {
        let others = groups.clone().filter(|&(other, _)| other != at).flat_map(|(_, other)| &other.values);
        others.into_iter().any(|other| group.values.iter().any(|value| value.text == other.text))
    })
}

/// Selects each value alone on a fresh page of the product in both shops and compares the marks.
fn other_marks(repaired: &Shop, original: &Shop, product: ProductIdx) -> bool {
    let groups = &repaired.catalog().get(product).options;
    groups.iter().flat_map(|group| &group.values).any(|value| {
        let [ours, theirs] = [repaired, original].map(|shop| {
            let mut session = Session::before(product);
            session.act(shop, &Action::Click(value.text.to_string()));
            session.page(shop).text_rich()
        });
        ours != theirs
    })
}

#[cfg(test)]
mod tests;
