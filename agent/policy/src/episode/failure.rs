//! Why an episode failed.

use serde::{Deserialize, Serialize};
use webshop_env::RewardBreakdown;

use crate::episode::Episode;

/// Why an episode failed. Each failed episode has exactly one kind, the first that applies in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The episode ended without a purchase.
    NeverBought,
    /// The product is of another type or lacks a required attribute.
    WrongProduct,
    /// The product matches, but a required option was not selected.
    MissingOption,
    /// Product and options match, but the price is above the limit.
    OverPrice,
    /// A website returned a reward below 1; it does not report the breakdown.
    Unexplained,
}

impl FailureKind {
    /// The kinds that an episode in one of our shops can have.
    pub const IN_SHOP: [Self; 4] =
        [Self::NeverBought, Self::WrongProduct, Self::MissingOption, Self::OverPrice];

    /// The failure kind of `episode`; `None` if it succeeded.
    pub fn of(episode: &Episode) -> Option<Self> {
        Self::of_purchase(episode.breakdown.as_ref())
    }

    /// The failure kind of an episode that ended with this purchase, or without one; `None` if it succeeded.
    pub fn of_purchase(purchase: Option<&RewardBreakdown>) -> Option<Self> {
        let Some(purchase) = purchase else {
            return Some(Self::NeverBought);
        };
        if purchase.is_success() {
            None
        } else if purchase.r_type() < 1.0 || purchase.attribute_matches < purchase.n_attributes {
            Some(Self::WrongProduct)
        } else if purchase.option_matches < purchase.n_options {
            Some(Self::MissingOption)
        } else {
            Some(Self::OverPrice)
        }
    }

    /// The kind in words, lower case.
    pub fn title(self) -> &'static str {
        match self {
            Self::NeverBought => "never bought",
            Self::WrongProduct => "wrong product",
            Self::MissingOption => "missing option",
            Self::OverPrice => "over price",
            Self::Unexplained => "unexplained",
        }
    }
}
