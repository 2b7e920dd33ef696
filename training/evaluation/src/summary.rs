//! Statistics of a set of episodes.
//!
//! A [`Summary`] holds the success rate (reward exactly 1) and the mean score with 95 % intervals, the mean
//! length, and the number of failures of each [`FailureKind`]. `webshop rollout`, `webshop eval` and every
//! evaluation during training report one. A [`Tally`] builds it episode by episode, for episodes in our shop
//! and at a website. Intervals have the product as their unit ([`crate::clustered`]) where products are known.
//! Two summaries are not compared here.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use webshop_agent::{Episode, EpisodeExt, FailureKind, SiteEpisode};
use webshop_env::RewardBreakdown;
use webshop_products::GoalSet;

use crate::clustered::{
    clustered_mean_interval, clustered_rate_interval, product_means, product_rate_interval,
};
use crate::outcomes::{Outcomes, ShopProduct};
use crate::statistics::{mean, mean_interval, wilson_interval};

/// Number of failed episodes by [`FailureKind`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// See [`FailureKind::NeverBought`].
    pub never_bought: usize,
    /// See [`FailureKind::WrongProduct`].
    pub wrong_product: usize,
    /// See [`FailureKind::MissingOption`].
    pub missing_option: usize,
    /// See [`FailureKind::OverPrice`].
    pub over_price: usize,
    /// See [`FailureKind::Unexplained`]. Left out of JSON if 0, as always in our own shop.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unexplained: usize,
}

impl Failures {
    fn of(kinds: impl Iterator<Item = FailureKind>) -> Self {
        let mut counts = Self::default();
        for kind in kinds {
            match kind {
                FailureKind::NeverBought => counts.never_bought += 1,
                FailureKind::WrongProduct => counts.wrong_product += 1,
                FailureKind::MissingOption => counts.missing_option += 1,
                FailureKind::OverPrice => counts.over_price += 1,
                FailureKind::Unexplained => counts.unexplained += 1,
            }
        }
        counts
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Statistics of a set of episodes. Rates are shares from 0 to 1; all are 0 for no episodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of episodes.
    pub episodes: usize,
    /// Number of products that the goals are of: the units of the intervals. Products of different shops count
    /// apart. `None` if they are unknown, as at a website.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub products: Option<usize>,
    /// Share of episodes with reward exactly 1.
    pub success_rate: f64,
    /// Wilson interval of the success rate, 95 %, clustered by product; of independent episodes if `products`
    /// is `None`.
    pub success_ci95: [f64; 2],
    /// The success rate with every product counting the same, however many goals it has; `None` if `products` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_product: Option<ByProduct>,
    /// Mean reward; an episode without a purchase counts 0.
    pub score: f64,
    /// Interval of the score, 95 %: Student's, clustered by product; normal if `products` is `None`.
    pub score_ci95: [f64; 2],
    /// Mean number of actions.
    pub mean_turns: f64,
    /// Share of actions that had no effect because they were malformed or not available.
    pub inadmissible_rate: f64,
    /// Mean number of generated tokens in an episode; 0 for policies without tokens.
    pub mean_sampled_tokens: f64,
    /// Share of episodes with at least one written thought.
    pub thinking_rate: f64,
    /// Failed episodes by kind.
    pub failures: Failures,
    /// Mean parts of the reward; `None` for episodes at a website, which does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward_parts: Option<RewardParts>,
}

/// A success rate in which every product counts the same: the mean over products of the share of a product's goals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByProduct {
    /// The rate.
    pub success_rate: f64,
    /// Its interval, 95 %: Wilson's, with the variance between products.
    pub success_ci95: [f64; 2],
}

impl ByProduct {
    fn of(is_success: &[bool], products: &[ShopProduct]) -> Self {
        let values: Vec<f64> = is_success.iter().map(|success| f64::from(u8::from(*success))).collect();
        let (rates, _) = product_means(&values, products);
        Self { success_rate: mean(&rates), success_ci95: product_rate_interval(&rates, values.len()) }
    }
}

/// The parts of the reward, each from 0 to 1, as means over episodes. An episode without a purchase counts 0
/// in each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RewardParts {
    /// The type factor `r_type`.
    pub product_type: f64,
    /// Share of the required attributes that the product has; 1 if none is required.
    pub attributes: f64,
    /// Share of the required options that were selected; 1 if none is required.
    pub options: f64,
    /// Share of episodes that bought within the price limit.
    pub price: f64,
}

impl RewardParts {
    /// The parts of an episode that ended with this purchase, or without one.
    fn of(purchase: Option<&RewardBreakdown>) -> Self {
        let share =
            |met: u32, required: u32| if required == 0 { 1.0 } else { f64::from(met) / f64::from(required) };
        purchase.map_or(Self::default(), |purchase| Self {
            product_type: purchase.r_type(),
            attributes: share(purchase.attribute_matches, purchase.n_attributes),
            options: share(purchase.option_matches, purchase.n_options),
            price: f64::from(u8::from(purchase.price_ok)),
        })
    }

    fn mean(parts: &[Self]) -> Self {
        let mean = |part: fn(&Self) -> f64| parts.iter().map(part).sum::<f64>() / parts.len().max(1) as f64;
        Self {
            product_type: mean(|of| of.product_type),
            attributes: mean(|of| of.attributes),
            options: mean(|of| of.options),
            price: mean(|of| of.price),
        }
    }
}

/// Accumulates the statistics of episodes one by one, so that the episodes need not be kept.
#[derive(Debug, Default)]
pub struct Tally {
    episodes: Vec<EpisodeCounts>,
}

impl Tally {
    /// Adds an episode in one of our shops; `goals` are that shop's. The episode's coordinates say which shop it is.
    ///
    /// # Panics
    /// If `goals` has no such goal.
    pub fn count(&mut self, episode: &Episode, goals: &GoalSet) {
        let shop = episode.meta.coordinates.shop;
        let product = ShopProduct { shop, product: goals.get(episode.goal).product };
        self.episodes.push(EpisodeCounts { product: Some(product), ..EpisodeCounts::of(episode) });
    }

    /// Adds an episode at a website. It has no generated tokens and no reward breakdown.
    pub(crate) fn count_at_site(&mut self, episode: &SiteEpisode) {
        self.episodes.push(EpisodeCounts {
            product: None,
            reward: episode.reward,
            n_turns: episode.turns.len(),
            n_inadmissible: episode.n_inadmissible(),
            n_sampled_tokens: 0,
            has_thought: false,
            failure: if episode.terminated {
                (!episode.is_success()).then_some(FailureKind::Unexplained)
            } else {
                Some(FailureKind::NeverBought)
            },
            parts: None,
        });
    }

    /// The statistics of all episodes added so far.
    pub fn summary(&self) -> Summary {
        statistics(&self.episodes)
    }

    /// Success and product of the episodes in our shops, in the order in which they were added.
    pub fn outcomes(&self) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for episode in &self.episodes {
            if let Some(product) = episode.product {
                outcomes.push(product, episode.failure.is_none());
            }
        }
        outcomes
    }
}

/// Statistics of episodes in one of our shops, each for a goal of `goals`. For several shops there is [`Tally`].
///
/// # Panics
/// If `goals` lacks the goal of an episode.
pub fn summarize(episodes: &[Episode], goals: &GoalSet) -> Summary {
    let mut tally = Tally::default();
    episodes.iter().for_each(|episode| tally.count(episode, goals));
    tally.summary()
}

/// Statistics of episodes at a website.
pub fn summarize_at_site(episodes: &[SiteEpisode]) -> Summary {
    let mut tally = Tally::default();
    episodes.iter().for_each(|episode| tally.count_at_site(episode));
    tally.summary()
}

/// The values of one episode that enter a [`Summary`].
#[derive(Debug)]
struct EpisodeCounts {
    /// The product of the goal, if it is known.
    product: Option<ShopProduct>,
    reward: f64,
    n_turns: usize,
    n_inadmissible: usize,
    n_sampled_tokens: usize,
    has_thought: bool,
    failure: Option<FailureKind>,
    parts: Option<RewardParts>,
}

impl EpisodeCounts {
    fn of(episode: &Episode) -> Self {
        Self {
            product: None,
            reward: episode.reward,
            n_turns: episode.turns.len(),
            n_inadmissible: episode.n_inadmissible(),
            n_sampled_tokens: episode.n_sampled_tokens(),
            has_thought: episode.has_thought(),
            failure: FailureKind::of(episode),
            parts: Some(RewardParts::of(episode.breakdown.as_ref())),
        }
    }
}

fn statistics(episodes: &[EpisodeCounts]) -> Summary {
    let n = episodes.len();
    let share = |total: f64| if n == 0 { 0.0 } else { total / n as f64 };
    let is_success: Vec<bool> = episodes.iter().map(|episode| episode.failure.is_none()).collect();
    let successes = is_success.iter().filter(|success| **success).count();
    let rewards: Vec<f64> = episodes.iter().map(|episode| episode.reward).collect();
    let products: Option<Vec<ShopProduct>> = episodes.iter().map(|episode| episode.product).collect();
    let products = products.filter(|products| !products.is_empty());
    let (success_ci95, score_ci95) = match &products {
        Some(of) => (clustered_rate_interval(&is_success, of), clustered_mean_interval(&rewards, of)),
        None => (wilson_interval(successes, n), mean_interval(&rewards)),
    };
    let turns: usize = episodes.iter().map(|episode| episode.n_turns).sum();
    let inadmissible: usize = episodes.iter().map(|episode| episode.n_inadmissible).sum();
    let sampled: usize = episodes.iter().map(|episode| episode.n_sampled_tokens).sum();
    let thinking = episodes.iter().filter(|episode| episode.has_thought).count();
    let parts: Option<Vec<RewardParts>> = episodes.iter().map(|episode| episode.parts).collect();
    Summary {
        episodes: n,
        by_product: products.as_deref().map(|of| ByProduct::of(&is_success, of)),
        products: products.map(|of| of.into_iter().collect::<BTreeSet<_>>().len()),
        success_rate: share(successes as f64),
        success_ci95,
        score: share(rewards.iter().sum()),
        score_ci95,
        mean_turns: share(turns as f64),
        inadmissible_rate: if turns == 0 { 0.0 } else { inadmissible as f64 / turns as f64 },
        mean_sampled_tokens: share(sampled as f64),
        thinking_rate: share(thinking as f64),
        failures: Failures::of(episodes.iter().filter_map(|episode| episode.failure)),
        reward_parts: parts.map(|parts| RewardParts::mean(&parts)),
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |rate: f64| 100.0 * rate;
        write!(
            f,
            "success {:.1} % [{:.1}, {:.1}], score {:.3} [{:.3}, {:.3}] over {} goals",
            percent(self.success_rate),
            percent(self.success_ci95[0]),
            percent(self.success_ci95[1]),
            self.score,
            self.score_ci95[0],
            self.score_ci95[1],
            self.episodes,
        )?;
        self.products.map_or(Ok(()), |n| write!(f, " of {n} {}", if n == 1 { "product" } else { "products" }))
    }
}

#[cfg(test)]
mod tests {
    use webshop_products::ProductIdx;

    use super::*;

    #[test]
    fn reward_parts_are_shares_and_are_averaged() {
        let purchase = RewardBreakdown {
            query_match: true,
            category_match: false,
            shared_nouns: 2,
            goal_nouns: 4,
            attribute_matches: 1,
            n_attributes: 2,
            option_matches: 0,
            n_options: 0,
            price_ok: true,
        };
        let parts = RewardParts::of(Some(&purchase));
        // Same query; one of two attributes; no option required; within the price limit.
        let expected = RewardParts { product_type: 1.0, attributes: 0.5, options: 1.0, price: 1.0 };
        assert_eq!(parts, expected);
        assert_eq!(RewardParts::of(None), RewardParts::default());
        let mean = RewardParts::mean(&[parts, RewardParts::default()]);
        assert_eq!((mean.product_type, mean.attributes, mean.options), (0.5, 0.25, 0.5));
        assert_eq!(RewardParts::mean(&[]), RewardParts::default());
    }

    #[test]
    fn by_product_a_product_with_many_goals_counts_once() {
        let products = [1, 1, 1, 2].map(|product| ShopProduct { shop: 0, product: ProductIdx(product) });
        let of = ByProduct::of(&[true, true, false, false], &products);
        assert!((of.success_rate - 1.0 / 3.0).abs() < 1e-12, "the mean of 2/3 and 0, not 1/2");
        assert_eq!(of.success_ci95, product_rate_interval(&[2.0 / 3.0, 0.0], 4));
    }
}
