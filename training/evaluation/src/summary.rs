//! What a set of episodes amounts to.
//!
//! [`Summary`] is the answer of `webshop rollout` and `webshop eval` and of every evaluation during
//! training: success (reward exactly 1) with its 95 % interval, mean score, length, and how the failures
//! failed. Trips at a site are counted in the same words. It counts; it does not compare and does not decide.

use std::fmt;

use serde::{Deserialize, Serialize};
use webshop_agent::Episode;
use webshop_agent::SiteTrip;
use webshop_env::RewardBreakdown;

use crate::statistics::{mean_interval, wilson_interval};

/// Why an episode did not succeed. Each failed episode has one kind, the first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The trip ended without a purchase.
    NeverBought,
    /// The article is of another type or lacks a wanted attribute.
    WrongProduct,
    /// The right kind of article, but a wanted option was not chosen.
    MissingOption,
    /// All as wanted but too dear.
    OverPrice,
    /// Paid less than 1 by a site, which does not say why.
    Unexplained,
}

impl FailureKind {
    /// The kind of `episode`, `None` if it succeeded.
    pub fn of(episode: &Episode) -> Option<Self> {
        Self::of_purchase(episode.breakdown.as_ref())
    }

    /// The kind of a trip with this purchase, if any, at its end; `None` if that was a success.
    pub fn of_purchase(bought: Option<&RewardBreakdown>) -> Option<Self> {
        let Some(bought) = bought else {
            return Some(Self::NeverBought);
        };
        if bought.is_success() {
            None
        } else if bought.r_type() < 1.0 || bought.attribute_matches < bought.n_attributes {
            Some(Self::WrongProduct)
        } else if bought.option_matches < bought.n_options {
            Some(Self::MissingOption)
        } else {
            Some(Self::OverPrice)
        }
    }
}

/// How many episodes failed in which way.
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
    /// See [`FailureKind::Unexplained`]; present only where there are such, as our own shop has none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unexplained: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The figures of a set of episodes. Rates are shares from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many episodes.
    pub episodes: usize,
    /// Share with reward exactly 1.
    pub success_rate: f64,
    /// Wilson interval of the success rate, 95 %.
    pub success_ci95: [f64; 2],
    /// Mean reward; an episode without a purchase counts 0.
    pub score: f64,
    /// Normal interval of the score, 95 %.
    pub score_ci95: [f64; 2],
    /// Mean number of actions.
    pub mean_turns: f64,
    /// Share of actions that the shop could not carry out.
    pub inadmissible_rate: f64,
    /// Mean number of tokens the model said in an episode; 0 for policies without tokens.
    pub mean_sampled_tokens: f64,
    /// Share of episodes in which the model wrote down a thought.
    pub thinking_rate: f64,
    /// How the others failed.
    pub failures: Failures,
    /// How much of what was wanted was bought, part by part; unknown of trips at a site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward_parts: Option<RewardParts>,
}

/// The parts that a reward is made of, each from 0 to 1, as means over episodes; one without a purchase counts 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RewardParts {
    /// The factor for the kind of product.
    pub product_type: f64,
    /// Share of the wanted attributes that the product has; 1 where none is wanted.
    pub attributes: f64,
    /// Share of the wanted options that were chosen; 1 where none is wanted.
    pub options: f64,
    /// Share of purchases at a price in reach.
    pub price: f64,
}

impl RewardParts {
    /// The parts of a trip with this purchase, if any, at its end.
    fn of(bought: Option<&RewardBreakdown>) -> Self {
        let share =
            |met: u32, wanted: u32| if wanted == 0 { 1.0 } else { f64::from(met) / f64::from(wanted) };
        bought.map_or(Self::default(), |bought| Self {
            product_type: bought.r_type(),
            attributes: share(bought.attribute_matches, bought.n_attributes),
            options: share(bought.option_matches, bought.n_options),
            price: f64::from(u8::from(bought.price_ok)),
        })
    }

    fn mean(trips: &[Self]) -> Self {
        let mean = |part: fn(&Self) -> f64| trips.iter().map(part).sum::<f64>() / trips.len().max(1) as f64;
        Self {
            product_type: mean(|of| of.product_type),
            attributes: mean(|of| of.attributes),
            options: mean(|of| of.options),
            price: mean(|of| of.price),
        }
    }
}

/// Trips that are counted one by one, so that none need be kept.
#[derive(Debug, Default)]
pub struct Tally {
    trips: Vec<Counted>,
}

impl Tally {
    /// Counts `episode`.
    pub fn count(&mut self, episode: &Episode) {
        self.trips.push(Counted {
            reward: episode.reward,
            n_turns: episode.turns.len(),
            n_inadmissible: episode.n_inadmissible(),
            n_sampled_tokens: episode.n_sampled_tokens(),
            has_thought: episode.has_thought(),
            failure: FailureKind::of(episode),
            parts: Some(RewardParts::of(episode.breakdown.as_ref())),
        });
    }

    /// Counts a trip at a site. Its policy says no tokens, and the site does not say why it paid what it paid.
    pub fn count_at_site(&mut self, trip: &SiteTrip) {
        self.trips.push(Counted {
            reward: trip.reward,
            n_turns: trip.turns.len(),
            n_inadmissible: trip.n_inadmissible(),
            n_sampled_tokens: 0,
            has_thought: false,
            failure: match trip.terminated {
                false => Some(FailureKind::NeverBought),
                true => (!trip.is_success()).then_some(FailureKind::Unexplained),
            },
            parts: None,
        });
    }

    /// What they amount to; all rates are 0 for none.
    pub fn summary(&self) -> Summary {
        figures(&self.trips)
    }
}

/// Summarizes `episodes`.
pub fn summarize(episodes: &[Episode]) -> Summary {
    let mut tally = Tally::default();
    episodes.iter().for_each(|episode| tally.count(episode));
    tally.summary()
}

/// Summarizes trips at a site.
pub fn summarize_at_site(trips: &[SiteTrip]) -> Summary {
    let mut tally = Tally::default();
    trips.iter().for_each(|trip| tally.count_at_site(trip));
    tally.summary()
}

/// What counts of one trip.
#[derive(Debug)]
struct Counted {
    reward: f64,
    n_turns: usize,
    n_inadmissible: usize,
    n_sampled_tokens: usize,
    has_thought: bool,
    failure: Option<FailureKind>,
    parts: Option<RewardParts>,
}

fn figures(trips: &[Counted]) -> Summary {
    let n = trips.len();
    let mean = |total: f64| if n == 0 { 0.0 } else { total / n as f64 };
    let successes = trips.iter().filter(|trip| trip.failure.is_none()).count();
    let rewards: Vec<f64> = trips.iter().map(|trip| trip.reward).collect();
    let turns: usize = trips.iter().map(|trip| trip.n_turns).sum();
    let inadmissible: usize = trips.iter().map(|trip| trip.n_inadmissible).sum();
    let sampled: usize = trips.iter().map(|trip| trip.n_sampled_tokens).sum();
    let thinking = trips.iter().filter(|trip| trip.has_thought).count();
    let parts: Option<Vec<RewardParts>> = trips.iter().map(|trip| trip.parts).collect();
    let mut failures = Failures::default();
    for kind in trips.iter().filter_map(|trip| trip.failure) {
        match kind {
            FailureKind::NeverBought => failures.never_bought += 1,
            FailureKind::WrongProduct => failures.wrong_product += 1,
            FailureKind::MissingOption => failures.missing_option += 1,
            FailureKind::OverPrice => failures.over_price += 1,
            FailureKind::Unexplained => failures.unexplained += 1,
        }
    }
    Summary {
        episodes: n,
        success_rate: mean(successes as f64),
        success_ci95: wilson_interval(successes, n),
        score: mean(rewards.iter().sum()),
        score_ci95: mean_interval(&rewards),
        mean_turns: mean(turns as f64),
        inadmissible_rate: if turns == 0 { 0.0 } else { inadmissible as f64 / turns as f64 },
        mean_sampled_tokens: mean(sampled as f64),
        thinking_rate: mean(thinking as f64),
        failures,
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
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reward_is_told_part_by_part() {
        let bought = RewardBreakdown {
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
        let parts = RewardParts::of(Some(&bought));
        // Of the same query; one attribute of two; no option wanted; within the limit.
        let expected = RewardParts { product_type: 1.0, attributes: 0.5, options: 1.0, price: 1.0 };
        assert_eq!(parts, expected);
        assert_eq!(RewardParts::of(None), RewardParts::default());
        let mean = RewardParts::mean(&[parts, RewardParts::default()]);
        assert_eq!((mean.product_type, mean.attributes, mean.options), (0.5, 0.25, 0.5));
        assert_eq!(RewardParts::mean(&[]), RewardParts::default());
    }
}
