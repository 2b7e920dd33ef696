//! Rollouts at a web site: the original's, or any that serves its pages.
//!
//! [`run_at_site`] runs a [`PagePolicy`] in many sessions at once and returns a [`SiteEpisode`] for each.
//! Actions follow the links of the pages. The reward is the score on the last page; the site's goals and
//! rules are unknown. Failed requests are not retried. The episodes cannot be replayed, because the site's
//! state is unknown.

mod address;

mod client;

mod episode;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use webshop_agent::{PagePolicy, SiteEpisode};

use crate::error::RemoteError;
use crate::site::client::Client;
use crate::site::episode::SiteSession;

pub use self::address::Site;

/// Concurrent sessions. Enough to keep the server busy; the original's development server takes no more.
const CONCURRENT_SESSIONS: usize = 16;

/// Limits of a rollout at a web site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteConfig {
    /// The number of episodes, one in each of the first sessions.
    pub n_sessions: usize,
    /// Actions after which an episode is truncated.
    pub max_steps: u32,
    /// The maximum duration of a request. The original loads its catalog before its first reply.
    pub page_timeout: Duration,
}

/// Runs an episode in each session and returns the results in the order of the sessions. `progress` is called
/// with the number of episodes that have ended since the last call.
///
/// The first page of the first session is fetched before any other, because the original takes one request
/// only while it loads its catalog.
///
/// # Errors
/// If that page cannot be fetched, or the site stops responding. An invalid page fails only its session.
pub fn run_at_site<P: PagePolicy + Clone + Send + Sync + 'static>(
    site: &Site,
    policy: &P,
    config: SiteConfig,
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<Result<SiteEpisode, RemoteError>>, RemoteError> {
    let unreachable = |reason: String| RemoteError::Unreachable { url: site.url().to_owned(), reason };
    let client = Client::new(config.page_timeout).map_err(unreachable)?;
    // One thread suffices: it only waits for the site.
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime: Runtime = runtime.map_err(|error| unreachable(error.to_string()))?;
    let runner = SiteRunner { site: site.clone(), client, policy: policy.clone(), config };
    runtime.block_on(run_all_sessions(Arc::new(runner), progress))
}

/// Runs sessions; shared by all of them.
struct SiteRunner<P> {
    site: Site,
    client: Client,
    policy: P,
    config: SiteConfig,
}

impl<P: PagePolicy> SiteRunner<P> {
    async fn open(&self, session: usize) -> Result<SiteSession, RemoteError> {
        SiteSession::open(&self.client, &self.site, session).await
    }

    async fn run(&self, session: SiteSession) -> Result<SiteEpisode, RemoteError> {
        session.run(&self.client, &self.policy, self.config.max_steps).await
    }
}

async fn run_all_sessions<P: PagePolicy + Send + Sync + 'static>(
    runner: Arc<SiteRunner<P>>,
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<Result<SiteEpisode, RemoteError>>, RemoteError> {
    let n_sessions = runner.config.n_sessions;
    if n_sessions == 0 {
        return Ok(Vec::new());
    }
    let mut tasks = JoinSet::new();
    let first = runner.open(0).await?;
    let shared = runner.clone();
    tasks.spawn(async move { (0, shared.run(first).await) });
    let mut waiting = 1..n_sessions;
    let mut episodes: Vec<Option<Result<SiteEpisode, RemoteError>>> = Vec::new();
    episodes.resize_with(n_sessions, || None);
    loop {
        while tasks.len() < CONCURRENT_SESSIONS
            && let Some(session) = waiting.next()
        {
            let shared = runner.clone();
            tasks.spawn(async move {
                let episode = async { shared.run(shared.open(session).await?).await };
                (session, episode.await)
            });
        }
        let Some(joined) = tasks.join_next().await else { break };
        let (session, episode) = joined.expect("no task is aborted, and none panics");
        if let Err(error @ RemoteError::Unreachable { .. }) = episode {
            return Err(error);
        }
        episodes[session] = Some(episode);
        progress(1);
    }
    Ok(episodes.into_iter().map(|episode| episode.expect("every session has a result")).collect())
}
