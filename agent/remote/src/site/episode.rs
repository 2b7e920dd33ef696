//! One session at a web site, from its first page to its last.

use webshop_agent::{EpisodeCoordinates, PagePolicy, SiteEpisode, SiteTurn, VisiblePage};
use webshop_env::{Action, NoopReason};
use webshop_products::GoalId;

use crate::error::RemoteError;
use crate::site::address::Site;
use crate::site::client::{Client, Fetched};

/// A session and its current page. An action follows a link of the page; an action without a link is a no-op,
/// as in our own shop.
pub(super) struct SiteSession {
    coordinates: EpisodeCoordinates,
    instruction: String,
    current: Fetched,
}

impl SiteSession {
    /// Fetches the first page.
    pub(super) async fn open(
        client: &Client,
        site: &Site,
        session: usize,
    ) -> Result<SiteSession, RemoteError> {
        let current = client.open(&site.session(session)).await?;
        let Some(instruction) = current.page.instruction() else {
            return Err(RemoteError::Site {
                url: current.url.into(),
                reason: "the first page has no instruction".into(),
            });
        };
        // The original takes the session's number for that of the goal.
        let goal = GoalId(u32::try_from(session).expect("session numbers fit into 32 bits"));
        let coordinates = EpisodeCoordinates::of_goal(goal);
        Ok(SiteSession { coordinates, instruction: instruction.to_owned(), current })
    }

    /// Runs the policy until a purchase, for at most `max_steps` actions.
    pub(super) async fn run(
        mut self,
        client: &Client,
        policy: &impl PagePolicy,
        max_steps: u32,
    ) -> Result<SiteEpisode, RemoteError> {
        let mut episode = SiteEpisode {
            instruction: self.instruction.clone(),
            start: self.current.page.text(),
            turns: Vec::new(),
            reward: 0.0,
            terminated: false,
        };
        for turn in 0..max_steps as usize {
            let page = VisiblePage::of_site(&self.current.page, &self.instruction);
            let action = policy.choose(&page, self.coordinates, turn);
            let noop = self.step(client, &action).await?;
            episode.turns.push(SiteTurn { action, noop, observation: self.current.page.text() });
            if let Some(score) = self.current.page.score() {
                return Ok(SiteEpisode { reward: score, terminated: true, ..episode });
            }
        }
        Ok(episode)
    }

    async fn step(&mut self, client: &Client, action: &Action) -> Result<Option<NoopReason>, RemoteError> {
        if let Action::Noop(reason) = action {
            return Ok(Some(*reason));
        }
        let Some(link) = self.current.page.links.of(action) else {
            return Ok(Some(NoopReason::NotOnPage));
        };
        self.current = client.follow(&self.current, &link).await?;
        Ok(None)
    }
}
