//! Episodes at a web site, whose state is unknown, so that they cannot be replayed.

use webshop_env::{Action, NoopReason};

/// One episode at a web site.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteEpisode {
    /// The instruction on the first page.
    pub instruction: String,
    /// The first page, see [`webshop_env::ForeignPage::text`].
    pub start: String,
    /// The turns in order.
    pub turns: Vec<SiteTurn>,
    /// The score on the last page, 0 to 1; 0 without a purchase.
    pub reward: f64,
    /// Whether the episode ended by a purchase; otherwise it was truncated.
    pub terminated: bool,
}

/// One turn of a [`SiteEpisode`].
#[derive(Clone, Debug, PartialEq)]
pub struct SiteTurn {
    /// The action.
    pub action: Action,
    /// Why the action did nothing; `None` if it did something.
    pub noop: Option<NoopReason>,
    /// The page after the action, as text.
    pub observation: String,
}

impl SiteEpisode {
    /// Whether the score is exactly 1.
    pub fn is_success(&self) -> bool {
        self.terminated && self.reward == 1.0
    }

    /// The number of turns whose action was a no-op.
    pub fn n_inadmissible(&self) -> usize {
        self.turns.iter().filter(|turn| turn.noop.is_some()).count()
    }
}
