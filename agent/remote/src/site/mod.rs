//! Shopping at a running site: the original's, or any that serves its pages.
//!
//! A [`Site`] is where; its sessions are `fixed_0`, `fixed_1` and so on, which the original takes for its goals by
//! number. [`shop_at`] lets a [`PagePolicy`] make one episode a session, many at one time, and gives back a [`SiteEpisode`]
//! for each: `visit` acts, `client` fetches, and the links to follow are those that stand in the pages.
//!
//! It knows no shop, no goal and no rules: what a purchase was worth is what the last page says. It never asks a
//! second time for what failed, and episodes made here cannot be replayed, as nobody can tell the site's state.

pub mod client;
pub mod episode;


use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use webshop_agent::{PagePolicy, SiteEpisode, SiteTurn};
use crate::error::RemoteError;
use crate::site::client::Client;
use crate::site::episode::Visit;

/// Sessions at a site at one time: enough to keep its server busy, few enough for one that is meant for tests, as the
/// original's is.
const SESSIONS_AT_ONCE: usize = 16;

/// Where a shop's pages are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    root: Url,
}

/// How to shop there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteConfig {
    /// How many episodes: one in each of the first sessions.
    pub n_sessions: usize,
    /// Actions after which an episode is cut.
    pub max_steps: u32,
    /// How long to wait for a page. The original loads its catalog before it answers for the first time.
    pub patience: Duration,
}

impl Site {
    /// The site whose sessions lie below `address`, such as `http://localhost:3000`.
    ///
    /// # Errors
    /// If that is no address of a web server.
    pub fn parse(address: &str) -> Result<Site, RemoteError> {
        let refuse = |reason: String| RemoteError::Site { url: address.to_owned(), reason };
        let mut root = Url::parse(address)
            .map_err(|error| refuse(format!("{error}; an address is such as `http://localhost:3000`")))?;
        if !matches!(root.scheme(), "http" | "https") {
            return Err(refuse("an address begins with `http://` or `https://`".into()));
        }
        root.set_query(None);
        root.set_fragment(None);
        Ok(Site { root })
    }

    /// The address, without what no session has part in.
    pub fn url(&self) -> &str {
        self.root.as_str()
    }

    /// The first page of a session.
    fn session(&self, number: usize) -> Url {
        let mut url = self.root.clone();
        let mut path = url.path_segments_mut().expect("addresses of web servers have paths");
        path.pop_if_empty().push(&format!("fixed_{number}"));
        drop(path);
        url
    }
}

/// Makes an episode in each session and returns what came of each, in the order of the sessions; `progress` is called with
/// the number of episodes that have ended since the last call.
///
/// The first page of the first session is fetched before any other, as the original cannot take more requests than one
/// while it loads.
///
/// # Errors
/// If that page is not there or the site stops answering. A session that gets an answer it cannot shop on fails alone.
pub fn shop_at<P: PagePolicy + Clone + Send + Sync + 'static>(
    site: &Site,
    policy: &P,
    config: SiteConfig,
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<Result<SiteEpisode, RemoteError>>, RemoteError> {
    let unreachable = |reason: String| RemoteError::Unreachable { url: site.url().to_owned(), reason };
    let client = Client::new(config.patience).map_err(unreachable)?;
    // One thread is plenty: it waits for the site.
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime: Runtime = runtime.map_err(|error| unreachable(error.to_string()))?;
    let shopping = Shopping { site: site.clone(), client, policy: policy.clone(), config };
    runtime.block_on(shop_in_all_sessions(Arc::new(shopping), progress))
}

/// What the tasks share.
struct Shopping<P> {
    site: Site,
    client: Client,
    policy: P,
    config: SiteConfig,
}

impl<P: PagePolicy> Shopping<P> {
    async fn shop(&self, visit: Visit) -> Result<SiteEpisode, RemoteError> {
        visit.shop(&self.client, &self.policy, self.config.max_steps).await
    }

    async fn open(&self, session: usize) -> Result<Visit, RemoteError> {
        Visit::open(&self.client, &self.site, session).await
    }
}

async fn shop_in_all_sessions<P: PagePolicy + Send + Sync + 'static>(
    shopping: Arc<Shopping<P>>,
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<Result<SiteEpisode, RemoteError>>, RemoteError> {
    let n_sessions = shopping.config.n_sessions;
    if n_sessions == 0 {
        return Ok(Vec::new());
    }
    let mut tasks = JoinSet::new();
    let first = shopping.open(0).await?;
    let shared = shopping.clone();
    tasks.spawn(async move { (0, shared.shop(first).await) });
    let mut waiting = 1..n_sessions;
    let mut episodes: Vec<Option<Result<SiteEpisode, RemoteError>>> = Vec::new();
    episodes.resize_with(n_sessions, || None);
    loop {
        while tasks.len() < SESSIONS_AT_ONCE
            && let Some(session) = waiting.next()
        {
            let shared = shopping.clone();
            tasks.spawn(async move {
                let episode = async { shared.shop(shared.open(session).await?).await };
                (session, episode.await)
            });
        }
        let Some(ended) = tasks.join_next().await else { break };
        let (session, episode) = ended.expect("no task is aborted, and none panics");
        if let Err(gone @ RemoteError::Unreachable { .. }) = episode {
            return Err(gone);
        }
        episodes[session] = Some(episode);
        progress(1);
    }
    Ok(episodes.into_iter().map(|episode| episode.expect("every session has had its task")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_session(address: &str) -> String {
        Site::parse(address).unwrap().session(0).to_string()
    }

    #[test]
    fn sessions_lie_below_the_site() {
        assert_eq!(first_session("http://localhost:3000"), "http://localhost:3000/fixed_0");
        assert_eq!(first_session("https://example.org/shop/?a=b#c"), "https://example.org/shop/fixed_0");
    }

    #[test]
    fn what_is_no_address_of_a_web_server_is_refused() {
        for address in ["", "localhost", "localhost:3000", "http://", "ftp://example.org", "file:///etc"] {
            assert!(Site::parse(address).is_err(), "{address}");
        }
    }
}
