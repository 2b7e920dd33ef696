//! One session at a site, from its first page to its last.
//!
//! A [`Visit`] stands on a page, and what is done there is a link of that page. What the page does not offer passes
//! the turn, as in our own shop.

use crate::error::RemoteError;
use webshop_env::{Action, NoopReason};
use webshop_products::GoalId;

use crate::site::client::{Client, Fetched};
use crate::site::{Site, SiteEpisode, SiteTurn};
use webshop_agent::EpisodeCoordinates;
use webshop_agent::{PagePolicy, VisiblePage};

/// A session that has begun.
pub(super) struct Visit {
    coordinates: EpisodeCoordinates,
    instruction: String,
    here: Fetched,
}

impl Visit {
    /// Fetches the first page.
    pub async fn open(client: &Client, site: &Site, session: usize) -> Result<Visit, RemoteError> {
        let here = client.open(&site.session(session)).await?;
        let Some(instruction) = here.page.instruction() else {
            return Err(RemoteError::Site {
                url: here.url.into(),
                reason: "the first page does not say what to buy".into(),
            });
        };
        // The session's number is that of a goal, as our own shop would have it.
        let goal = GoalId(u32::try_from(session).expect("no site has so many goals"));
        let coordinates = EpisodeCoordinates { step: 0, shop: 0, goal, sample: 0 };
        Ok(Visit { coordinates, instruction: instruction.to_owned(), here })
    }

    /// Shops until something is bought, for `max_steps` actions at most.
    pub async fn shop(
        mut self,
        client: &Client,
        policy: &impl PagePolicy,
        max_steps: u32,
    ) -> Result<SiteEpisode, RemoteError> {
        let mut episode = SiteEpisode {
            instruction: self.instruction.clone(),
            start: self.here.page.text(),
            turns: Vec::new(),
            reward: 0.0,
            terminated: false,
        };
        for turn in 0..max_steps as usize {
            let seen = VisiblePage::of_site(&self.here.page, &self.instruction);
            let action = policy.choose(&seen, self.coordinates, turn);
            let noop = self.act(client, &action).await?;
            episode.turns.push(SiteTurn { action, noop, observation: self.here.page.text() });
            if let Some(score) = self.here.page.score() {
                return Ok(SiteEpisode { reward: score, terminated: true, ..episode });
            }
        }
        Ok(episode)
    }

    async fn act(&mut self, client: &Client, action: &Action) -> Result<Option<NoopReason>, RemoteError> {
        if let Action::Noop(reason) = action {
            return Ok(Some(*reason));
        }
        let Some(link) = self.here.page.links.of(action) else {
            return Ok(Some(NoopReason::NotOnPage));
        };
        self.here = client.follow(&self.here, &link).await?;
        Ok(None)
    }
}
