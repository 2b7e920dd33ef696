//! Episodes at a site: what its pages tell, without the state that a replay needs.

use webshop_env::{Action, NoopReason};

/// One trip at a site.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteTrip {
    /// What was to be bought.
    pub instruction: String,
    /// The first page, as [`webshop_env::ForeignPage::text`] writes it.
    pub start: String,
    /// Its turns in order.
    pub turns: Vec<SiteTurn>,
    /// The score on the last page, 0 to 1; 0 if nothing was bought.
    pub reward: f64,
    /// The trip ended by a purchase; otherwise it was cut.
    pub terminated: bool,
}

/// One turn of a [`SiteTrip`].
#[derive(Clone, Debug, PartialEq)]
pub struct SiteTurn {
    /// What was done.
    pub action: Action,
    /// Why it changed nothing, if it did.
    pub noop: Option<NoopReason>,
    /// The page after it, as text.
    pub observation: String,
}

impl SiteTrip {
    /// The site paid exactly 1.
    pub fn is_success(&self) -> bool {
        self.terminated && self.reward == 1.0
    }

    /// Turns whose action the page did not offer.
    pub fn n_inadmissible(&self) -> usize {
        self.turns.iter().filter(|turn| turn.noop.is_some()).count()
    }
}

