//! A reward's parts under the names that the original gives them.
//!
//! The original hands out shares and weights instead of counts; a [`VerboseInfo`] is a
//! [`RewardBreakdown`] in this form, for programs that compare with it. The counts are more precise.

use crate::reward::RewardBreakdown;
use serde::{Deserialize, Serialize};

/// The original's diagnostics of a reward.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerboseInfo {
    /// The factor for the kind of product.
    pub r_type: f64,
    /// The share of wanted attributes that are met; not a number if none are wanted.
    pub r_att: f64,
    /// The part of everything wanted that is attributes.
    pub w_att: f64,
    /// Whether the product answers the goal's query.
    pub query_match: bool,
    /// Whether the two share two steps of the category path.
    pub category_match: bool,
    /// The share of the goal's nouns that the product's title holds.
    pub title_score: f64,
    /// The share of wanted options that are met, if any are wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r_option: Option<f64>,
    /// The part of everything wanted that is options, if any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub w_option: Option<f64>,
    /// Whether the price is within the limit.
    pub r_price: bool,
    /// The part of everything wanted that is the price.
    pub w_price: f64,
}

impl From<&RewardBreakdown> for VerboseInfo {
    fn from(counts: &RewardBreakdown) -> Self {
        let share = |met: u32, wanted: u32| f64::from(met) / f64::from(wanted);
        let weight = |wanted| share(wanted, counts.n_required());
        let wants_options = counts.n_options > 0;
        VerboseInfo {
            r_type: counts.r_type(),
            r_att: share(counts.attribute_matches, counts.n_attributes),
            w_att: weight(counts.n_attributes),
            query_match: counts.query_match,
            category_match: counts.category_match,
            title_score: counts.title_score(),
            r_option: wants_options.then(|| share(counts.option_matches, counts.n_options)),
            w_option: wants_options.then(|| weight(counts.n_options)),
            r_price: counts.price_ok,
            w_price: weight(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weighted_shares_add_up_to_the_reward() {
        let counts = RewardBreakdown {
            query_match: true,
            category_match: false,
            shared_nouns: 2,
            goal_nouns: 4,
            attribute_matches: 1,
            n_attributes: 2,
            option_matches: 1,
            n_options: 1,
            price_ok: true,
        };
        let info = VerboseInfo::from(&counts);
        // Of four things wanted, half are attributes, of which half are met.
        assert_eq!((info.r_att, info.w_att, info.w_option, info.w_price), (0.5, 0.5, Some(0.25), 0.25));
        assert_eq!(info.title_score, 0.5);
        let options = info.r_option.unwrap() * info.w_option.unwrap();
        let sum = info.r_att * info.w_att + options + f64::from(u8::from(info.r_price)) * info.w_price;
        assert_eq!(sum * info.r_type, counts.total());
        let json =
            serde_json::to_string(&VerboseInfo::from(&RewardBreakdown { n_options: 0, ..counts })).unwrap();
        assert!(!json.contains("option"), "{json}");
    }
}
