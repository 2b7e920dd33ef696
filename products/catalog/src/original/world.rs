//! The original WebShop as it stands when it opens: every number that it drew.
//!
//! The original draws everything from one generator, in this order: what ranges cost, as the products
//! are loaded; a price limit for each instruction; then, seeded anew with 233, the order of the goals.
//! An [`OriginalWorld`] is catalog and goals after these draws, with the generator as they left it; whoever
//! goes on to draw from it draws what the original would: names, and goals by [`GoalDraw`].
//!
//! The original seeds nothing before the goals are shuffled, so that its prices and limits change from
//! start to start. Here a seed is named first; 0 is that of the recordings the tests compare with. The
//! original loads human goals or synthetic ones, never both, and so does this.

use crate::catalog::Catalog;
use crate::error::DataError;
use crate::goal::{Goal, GoalId, GoalKind, GoalSet, GoalStyle, goals};
use crate::original::goal_record::GoalRecord;
use crate::goal::price_limit::PriceLimit;
use crate::catalog::price::Cents;
use webshop_pycompat::PythonRandom;
use crate::raw::RawData;

/// The seed under which the original shuffles its goals.
pub(crate) const SHUFFLE_SEED: u64 = 233;

/// Catalog, goals and generator of the original after loading.
#[derive(Clone, Debug)]
pub struct OriginalWorld {
    /// What is sold.
    pub catalog: Catalog,
    /// What is wanted, in the original's order: a goal's id is the integer by which it is asked for.
    pub goals: GoalSet,
    /// What each product costs, in dollars, in catalog order: of a range any float, which [`Cents`]
    /// cannot hold.
    pub prices: Vec<f64>,
    /// The generator, ready for the first reset.
    pub random: PythonRandom,
}

impl OriginalWorld {
    /// Loads `data` with goals of one style, all draws following from `seed`.
    pub fn load(data: &RawData, style: GoalStyle, seed: u64) -> Result<Self, DataError> {
        let mut random = PythonRandom::new(seed);
        let (catalog, prices) = load_catalog(data, &mut random)?;
        let kind = match style {
            GoalStyle::Human => GoalKind::Human,
            GoalStyle::Synthetic => GoalKind::Synthetic,
        };
        let mut goals = goals(data, &catalog, kind, |at, _| {
            PriceLimit::draw_in_original(prices[at.as_usize()], &mut random)
        })?;
        let random = shuffle(&mut goals);
        Ok(Self { goals: GoalSet::numbered(&catalog, goals), catalog, prices, random })
    }

    /// Puts goals behind those that are there, in their order. Nothing is drawn for them.
    pub fn append(&mut self, goals: &[GoalRecord]) -> Result<(), DataError> {
        let mut all = self.goals.goals().to_vec();
        for goal in goals {
            all.push(goal.to_goal(&self.catalog)?);
        }
        self.goals = GoalSet::numbered(&self.catalog, all);
        Ok(())
    }

    /// Loads `data` with goals that were made before, in their order; only prices follow from `seed`.
    pub fn with_goals(data: &RawData, goals: &[GoalRecord], seed: u64) -> Result<Self, DataError> {
        let (catalog, prices) = load_catalog(data, &mut PythonRandom::new(seed))?;
        let goals: Vec<Goal> = goals.iter().map(|goal| goal.to_goal(&catalog)).collect::<Result<_, _>>()?;
        // These goals are shuffled already; the generator is to stand as if it had been done just now.
        let random = shuffle(&mut vec![(); goals.len()]);
        Ok(Self { goals: GoalSet::numbered(&catalog, goals), catalog, prices, random })
    }
}

fn load_catalog(data: &RawData, random: &mut PythonRandom) -> Result<(Catalog, Vec<f64>), DataError> {
    let mut prices = Vec::new();
    let catalog = Catalog::charged(data, |pricing, _| {
        let dollars = pricing.dollars_in_original(random);
        prices.push(dollars);
        pricing.charged_at(Cents::at_least(dollars))
    })?;
    Ok((catalog, prices))
}

/// Shuffles as the original does, and returns the generator after it.
fn shuffle<T>(list: &mut [T]) -> PythonRandom {
    let mut random = PythonRandom::new(SHUFFLE_SEED);
    random.shuffle(list);
    random
}

/// The original's way to draw a goal by weight, with its mistake: a goal has the weight of the one before it.
///
/// The first goal is never drawn, and the last has its own weight too.
#[derive(Clone, Debug)]
pub struct GoalDraw {
    /// 0, then the sums of the weights of the first goal, the first two, and so on.
    cumulative: Vec<f64>,
}

impl GoalDraw {
    /// Among goals of these weights, none of them negative.
    ///
    /// ```
    /// use webshop_products::{GoalDraw, GoalId, PythonRandom};
    ///
    /// let draw = GoalDraw::new([1.0, 1.0]);
    /// let mut random = PythonRandom::new(0);
    /// assert!((0..9).all(|_| draw.goal(&mut random) == Some(GoalId(1))));
    /// ```
    pub fn new(weights: impl IntoIterator<Item = f64>) -> Self {
        let mut cumulative = vec![0.0];
        let mut sum = 0.0;
        for weight in weights {
            sum += weight;
            cumulative.push(sum);
        }
        Self { cumulative }
    }

    /// The next goal; none if there are no goals to draw from.
    pub fn goal(&self, random: &mut PythonRandom) -> Option<GoalId> {
        let last_goal = self.cumulative.len().checked_sub(2)?;
        let position = random.uniform(0.0, *self.cumulative.last()?);
        let bisected = self.cumulative.partition_point(|&sum| sum <= position);
        Some(GoalId(bisected.min(last_goal) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_drawn_one_too_far() {
        // Recorded from the original's `random_idx` under seed 0.
        let draw = GoalDraw::new([0.5, 1.0, 2.0, 0.25]);
        let mut random = PythonRandom::new(0);
        let drawn: Vec<u32> = (0..9).filter_map(|_| draw.goal(&mut random)).map(|goal| goal.0).collect();
        assert_eq!(drawn, [3, 3, 3, 2, 3, 3, 3, 2, 3]);
        assert_eq!(GoalDraw::new([]).goal(&mut random), None);
    }
}
