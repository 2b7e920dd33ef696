//! Held-out goals of one shop or of several.
//!
//! A [`HeldOutGoal`] is a goal with its shop. Which goals of a pool are taken depends on the goals only, never on the
//! run, so that every run is measured on the same ones. Nothing here is trained on.

use std::sync::Arc;

use webshop_agent::{Episode, EpisodeCoordinates, Task};
use webshop_env::Shop;
use webshop_evaluation::{ShopProduct, Tally};
use webshop_products::{GoalId, Seed, Split};

use crate::data::sampling::sample_without_replacement;
use crate::purpose;

/// A goal that is not trained on, with its shop.
#[derive(Clone, Debug)]
pub struct HeldOutGoal {
    /// The shop.
    pub shop: Arc<Shop>,
    /// The goal in that shop.
    pub goal: GoalId,
}

impl HeldOutGoal {
    /// The number of the shop in coordinates of episodes: the generator's seed, or 0 for the configured catalog.
    pub fn shop_number(&self) -> u64 {
        self.shop.generator().map_or(0, |of| of.seed)
    }

    /// The product of the goal.
    pub(crate) fn product(&self) -> ShopProduct {
        let product = self.shop.goals().get(self.goal).product;
        ShopProduct { shop: self.shop_number(), product }
    }

    /// An episode for the goal at step coordinate `step`.
    pub(crate) fn task(&self, step: u64) -> Task {
        let at = EpisodeCoordinates { step, shop: self.shop_number(), goal: self.goal, sample: 0 };
        Task::new(Arc::clone(&self.shop), at)
    }
}

/// The goals of `split` of a shop.
pub(crate) fn goals_of(shop: &Arc<Shop>, split: Split) -> impl Iterator<Item = HeldOutGoal> {
    shop.goals().split(split).iter().map(|&goal| HeldOutGoal { shop: Arc::clone(shop), goal })
}

/// The statistics of episodes for `goals`, in their order.
pub(crate) fn tally(episodes: &[Episode], goals: &[HeldOutGoal]) -> Tally {
    let mut tally = Tally::default();
    for (episode, goal) in episodes.iter().zip(goals) {
        tally.count(episode, goal.shop.goals());
    }
    tally
}

/// `n` of `pool` in an order that depends on the number of goals only; all of them if there are fewer.
pub(crate) fn evaluation_sample<T>(pool: Vec<T>, n: usize) -> Vec<T> {
    sample_without_replacement(pool, Seed(0).rng(purpose::EVALUATION, &[]), n)
}
