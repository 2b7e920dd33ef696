//! Catalog, goals and generator of the original WebShop after loading.
//!
//! The original draws everything from one generator, in this order: the price charged for each range, as
//! the products are loaded; a price limit for each instruction; then, reseeded with 233, the order of the
//! goals. An [`OriginalWorld`] holds catalog and goals after these draws and the generator in the state they
//! leave it in, so that later draws (session names, goals by [`GoalDraw`]) are those of the original.
//!
//! The original does not seed the generator before it shuffles the goals, so its prices and limits differ
//! between starts. Here the first seed is an argument; the recordings of the tests use 0. Like the original,
//! a world has human goals or synthetic ones, never both.

use crate::catalog::Catalog;
use crate::catalog::price::Cents;
use crate::error::DataError;
use crate::goal::make::goals;
use crate::goal::price_limit::PriceLimit;
use crate::goal::set::GoalSet;
use crate::goal::split_rule::SHUFFLE_SEED;
use crate::goal::{Goal, GoalId, GoalKind, GoalStyle};
use crate::original::goal_record::GoalRecord;
use crate::raw::RawData;
use webshop_pycompat::PythonRandom;

/// Catalog, goals and generator of the original after loading.
#[derive(Clone, Debug)]
pub struct OriginalWorld {
    /// The products.
    pub catalog: Catalog,
    /// The goals in the original's order: a goal's id is the integer that selects it there.
    pub goals: GoalSet,
    /// The price charged for each product in dollars, in catalog order. In a range it is any float, which
    /// [`Cents`] cannot hold.
    pub prices: Vec<f64>,
    /// The generator, ready for the first reset.
    pub random: PythonRandom,
}

impl OriginalWorld {
    /// Loads `data` with goals of one style; all draws follow from `seed`.
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

    /// Appends goals in the order given. Draws nothing.
    ///
    /// # Errors
    /// [`DataError::UnknownProduct`].
    pub fn append(&mut self, goals: &[GoalRecord]) -> Result<(), DataError> {
        let mut all = self.goals.goals().to_vec();
        for goal in goals {
            all.push(goal.to_goal(&self.catalog)?);
        }
        self.goals = GoalSet::numbered(&self.catalog, all);
        Ok(())
    }

    /// Loads `data` with the given goals in their order; only prices are drawn from `seed`.
    ///
    /// # Errors
    /// [`DataError`].
    pub fn with_goals(data: &RawData, goals: &[GoalRecord], seed: u64) -> Result<Self, DataError> {
        let (catalog, prices) = load_catalog(data, &mut PythonRandom::new(seed))?;
        let goals: Vec<Goal> = goals.iter().map(|goal| goal.to_goal(&catalog)).collect::<Result<_, _>>()?;
        // The goals are shuffled already; only the state of the generator after shuffling is needed.
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

/// Shuffles as the original does and returns the generator after it.
fn shuffle<T>(list: &mut [T]) -> PythonRandom {
    let mut random = PythonRandom::new(SHUFFLE_SEED);
    random.shuffle(list);
    random
}

/// The original's weighted draw of a goal, including its error: each goal has the weight of the one before
/// it. The first goal is never drawn, and the last has its own weight in addition.
#[derive(Clone, Debug)]
pub struct GoalDraw {
    /// 0, then the cumulative sums of the weights.
    cumulative: Vec<f64>,
}

impl GoalDraw {
    /// A draw among goals with these weights, which must not be negative.
    ///
    /// ```
    /// use webshop_products::{GoalDraw, GoalId};
    /// use webshop_pycompat::PythonRandom;
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

    /// Draws a goal; `None` if there are no goals.
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
    fn goals_are_drawn_with_the_original_off_by_one() {
        // Recorded from the original's `random_idx` under seed 0.
        let draw = GoalDraw::new([0.5, 1.0, 2.0, 0.25]);
        let mut random = PythonRandom::new(0);
        let drawn: Vec<u32> = (0..9).filter_map(|_| draw.goal(&mut random)).map(|goal| goal.0).collect();
        assert_eq!(drawn, [3, 3, 3, 2, 3, 3, 3, 2, 3]);
        assert_eq!(GoalDraw::new([]).goal(&mut random), None);
    }
}
