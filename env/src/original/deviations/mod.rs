//! In what the repaired shop differs from the original, and how many goals each difference touches.
//!
//! A [`DeviationReport`] holds a [`Deviation`] for each difference a customer can meet, counted over the goals of one
//! catalog by trying it: the same goal is put before both shops, and before the original's own list of goals. Beside
//! them stands a [`NounChoice`], because what a noun is decides rewards and no part of the original's rules says it.
//!
//! What the two do with data that the original cannot load is not counted here, as no goal is made of it.

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
    /// What holds here, and what holds there.
    pub difference: &'static str,
    /// How many goals can notice.
    pub n_goals: usize,
}

/// All differences, counted over one catalog.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviationReport {
    /// How many goals there are.
    pub n_goals: usize,
    /// The differences, those that touch rewards first.
    pub deviations: Vec<Deviation>,
    /// How much hangs on the choice of nouns.
    pub nouns: NounChoice,
}

/// Whether a goal can notice a difference.
type Notices = fn(&Both<'_>, &Goal) -> bool;

const DEVIATIONS: [(&str, &str, Notices); 12] = [
    (
        "reachable reward",
        "whoever buys what is wished is paid 1; there, wishes compared as printed pairs keep it below",
        |both, goal| {
            both.repaired.best_purchase(goal).breakdown.is_success()
                && !both.original.best_purchase(goal).breakdown.is_success()
        },
    ),
    (
        "wished options",
        "an option is met by its value; there, by the printed pair of name and value, so that other values do, or none",
        |both, goal| both.judges_a_value_otherwise(goal),
    ),
    (
        "price limits",
        "the limit follows from the seed; there, each start of the program draws another",
        |_, goal| goal.instruction.contains(", and price lower than "),
    ),
    (
        "charged prices",
        "what a range costs follows from the seed, in whole cents; there, each start draws another fraction",
        |both, goal| both.product(goal).price.low < both.product(goal).price.high,
    ),
    (
        "drawing by weight",
        "a goal is taken by number; there, drawn with the weight of the goal before it, and the first one never",
        |both, goal| both.weighs_otherwise.contains(&wish(goal)),
    ),
    (
        "kinds of goals",
        "human and synthetic goals stand together; there, a run has one kind, by default the synthetic",
        |_, goal| goal.style == GoalStyle::Human,
    ),
    (
        "numbers of goals",
        "goals are numbered in catalog order; there, they are shuffled first",
        |both, goal| {
            let there = both.world.goals.goals().get(goal.id.0 as usize);
            there.is_none_or(|there| wish(there) != wish(goal))
        },
    ),
    (
        "brackets",
        "an action ends its verb at the first `[`; there, at the last, so that some wishes can neither be typed nor clicked",
        |_, goal| {
            let search = format!("search[{}]", goal.instruction);
            let clicks = goal.options.iter().map(|option| format!("click[{}]", option.value));
            clicks
                .chain([search])
                .any(|said| Action::parse(&said, Compat::Repaired) != Action::parse(&said, Compat::Original))
        },
    ),
    (
        "shared values",
        "a value of two groups can be chosen in both, click by click; there, in the last group only",
        |both, goal| has_shared_value(both.product(goal)),
    ),
    (
        "marks of choices",
        "the page marks what is chosen; there, whatever stands in quotes in the address, and nothing beyond ASCII",
        |both, goal| both.marks_otherwise[goal.product.as_usize()],
    ),
    (
        "going back",
        "`< prev` leads where one came from; there, a query that names a page of the site misleads it",
        |_, goal| ["search_results", "item_page"].iter().any(|page| goal.instruction.contains(page)),
    ),
    ("after the purchase", "nothing happens any more; there, one can search and buy again", |_, _| true),
];

impl DeviationReport {
    /// Tries the goals of `repaired` in both shops. `world` is the original's own loading of the same catalog with
    /// synthetic goals; `nouns` is what our choice of nouns is held against.
    ///
    /// # Errors
    /// As [`Shop::new`], since the original's shop is opened beside ours.
    pub fn new(repaired: &Shop, world: &OriginalWorld, nouns: &NounReference) -> Result<Self, EnvError> {
        let both = Both::open(repaired, world)?;
        let goals = repaired.goals().goals();
        let count = |(name, difference, notices): (&'static str, &'static str, Notices)| {
            let n_goals = goals.iter().filter(|goal| notices(&both, goal)).count();
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
        writeln!(f, "goals {}, of which are touched by", self.n_goals)?;
        for Deviation { name, difference, n_goals } in &self.deviations {
            writeln!(f, "{n_goals:>7}  {name}: {difference}")?;
        }
        write!(f, "{}", self.nouns)
    }
}

/// The two shops over the same products and goals, and what was found out about them.
struct Both<'a> {
    repaired: &'a Shop,
    original: Shop,
    world: &'a OriginalWorld,
    /// Of each product, whether its page shows a single choice otherwise.
    marks_otherwise: Vec<bool>,
    /// Wishes that the original draws more or less often than their weight says.
    weighs_otherwise: BTreeSet<Wish<'a>>,
}

/// What makes a goal the same in both lists, where limits, numbers and positions differ.
type Wish<'a> = (&'a str, bool, Vec<(Option<&'a str>, &'a str)>);

fn wish(goal: &Goal) -> Wish<'_> {
    let options = goal.options.iter().map(|option| (option.name.as_deref(), &*option.value));
    (goal.asin.as_str(), goal.style == GoalStyle::Human, options.collect())
}

impl<'a> Both<'a> {
    fn open(repaired: &'a Shop, world: &'a OriginalWorld) -> Result<Self, EnvError> {
        let config = ShopConfig { compat: Compat::Original, ..repaired.config().clone() };
        let original = Shop::with_config(repaired.catalog().clone(), repaired.goals().clone(), config)?;
        let n_products = repaired.catalog().len() as u32;
        let marks_otherwise =
            (0..n_products).map(|at| marks_otherwise(repaired, &original, ProductIdx(at))).collect();
        let drawn = world.goals.goals();
        let last = drawn.len().saturating_sub(1);
        let weighs_otherwise = drawn
            .iter()
            .enumerate()
            .filter(|&(at, goal)| at == 0 || at == last || drawn[at - 1].weight != goal.weight)
            .map(|(_, goal)| wish(goal))
            .collect();
        Ok(Self { repaired, original, world, marks_otherwise, weighs_otherwise })
    }

    fn product(&self, goal: &Goal) -> &Product {
        self.repaired.catalog().get(goal.product)
    }

    /// Whether some value that the goal's product offers meets a wish in one shop and not in the other.
    fn judges_a_value_otherwise(&self, goal: &Goal) -> bool {
        let [ours, theirs] = [self.repaired, &self.original].map(|shop| shop.goal_facts(goal.id));
        let mut values = self.product(goal).options.iter().flat_map(|group| &group.values);
        values.any(|value| {
            (0..goal.options.len())
                .any(|wish| ours.option_met_by(wish, &value.text) != theirs.option_met_by(wish, &value.text))
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

/// Chooses each value alone on a fresh page of the product, in both shops, and compares what is marked.
fn marks_otherwise(repaired: &Shop, original: &Shop, product: ProductIdx) -> bool {
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
