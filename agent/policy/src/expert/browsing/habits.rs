//! The habits of a browsing expert.

use serde::{Deserialize, Serialize};

/// How often a [`BrowsingExpert`](crate::BrowsingExpert) does what. Shares are from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BrowsingHabits {
    /// Share of episodes that open products in the order of shared word pairs; the others in that of the page.
    pub by_pairs: f64,
    /// Share of the products without a reason to go back whose features are read.
    pub reads_features: f64,
    /// Share of the products whose features were read that are rejected, whatever the note says.
    pub rejects_at_random: f64,
    /// Share of the others with a note that ends in `no` that are rejected because of it.
    pub rejects_by_notes: f64,
    /// Whether a product is rejected if its page lacks an option that the instruction states as `name: value`; else
    /// only the options that the page has count.
    pub checks_options: bool,
    /// Whether a second search follows if none of the first two products was bought.
    pub searches_again: bool,
    /// Whether a price that is a range is judged by its lowest amount, since what the purchase costs is drawn from the
    /// range; else by the highest.
    pub by_lowest_price: bool,
}

impl Default for BrowsingHabits {
    fn default() -> Self {
        Self { by_pairs: 0.5, reads_features: 0.5, rejects_by_notes: 0.1, ..Self::NONE }
    }
}

impl BrowsingHabits {
    /// All shares are 0, and nothing else is done.
    pub const NONE: Self = Self {
        by_pairs: 0.0,
        reads_features: 0.0,
        rejects_at_random: 0.0,
        rejects_by_notes: 0.0,
        checks_options: false,
        searches_again: false,
        by_lowest_price: false,
    };

    /// Those of the rule `stated-options`: products are opened in the order of the page, stated options are checked, a
    /// second search follows, ranges of prices count by their lowest amount, and no features are read. Nothing is left
    /// to draws.
    pub const STATED_OPTIONS: Self =
        Self { checks_options: true, searches_again: true, by_lowest_price: true, ..Self::NONE };

    /// Share of the products with this note, by its last word, that are rejected.
    pub(super) fn rejects_after(&self, verdict: &str) -> f64 {
        let by_note = if verdict == "no" { self.rejects_by_notes } else { 0.0 };
        self.rejects_at_random + (1.0 - self.rejects_at_random) * by_note
    }
}
