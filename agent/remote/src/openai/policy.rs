//! A model behind a server: any that answers `POST …/chat/completions` as OpenAI's does.
//!
//! A [`RemotePolicy`] knows an [`Endpoint`] and a [`RemoteConfig`]; [`RemotePolicy::play`] makes episodes, many at one
//! time: `episode` shops and tells the model of it, `client` asks. A [`webshop_agent::EpisodeFile`] keeps the episodes as they end, so that an
//! interrupted rollout goes on where it stopped. A [`RemoteSingleStepSampler`] asks about single steps instead.
//!
//! It is a policy by name and not by trait: [`webshop_agent::Policy`] is asked for one move of every lane at once, so that a
//! model can compute them together, and all lanes would wait for the slowest answer. A server batches by itself and
//! answers each episode when it can; so episodes run side by side here, each at its own pace, as they do at a
//! [`crate::site`].
//!
//! An episode that fails is no episode: it is told with its reason and neither recorded nor worth 0. An episode whose chat no
//! longer fits into the model is cut, as those of a local model are.


use crate::error::RemoteError;
use webshop_agent::AgentError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::Url;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::timeout;

use webshop_agent::{Episode, EpisodeCoordinates, PromptStamp};
use webshop_agent::Task;
pub use crate::openai::request::{RequestConfig, Retries};
use crate::openai::client::Client;
pub use crate::openai::single_step::RemoteSingleStepSampler;
pub use crate::openai::resume::Kept;
use crate::openai::episode::{Shopping, EpisodeFailure};

/// The name of the policy.
pub const REMOTE: &str = "remote";

/// How often it is looked whether to stop.
const GLANCE: Duration = Duration::from_millis(50);

/// Where a model is served, and the key to it.
#[derive(Clone)]
pub struct Endpoint {
    pub url: Url,
    pub key: Option<String>,
}

/// How to shop with it.
#[derive(Clone, Debug)]
pub struct RemoteConfig {
    /// How it is asked, turn by turn.
    pub request: RequestConfig,
    /// Actions after which an episode is cut.
    pub max_steps: u32,
    /// How long an episode may take, waiting included.
    pub episode_timeout: Duration,
    /// How often an episode is begun anew that failed although its requests were repeated.
    pub episode_retries: u32,
}

/// An episode that came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedEpisode {
    /// Which one.
    pub coordinates: EpisodeCoordinates,
    /// Why it failed the last time.
    pub reason: String,
    /// How often it was begun.
    pub attempts: u32,
}

/// A customer whose words come from a server.
#[derive(Clone, Debug)]
pub struct RemotePolicy {
    shopping: Arc<Shopping>,
}

impl Endpoint {
    /// The server whose interface lies below `base`, such as `http://localhost:8000/v1`.
    ///
    /// # Errors
    /// If that is no address of a web server, or the key cannot stand in a request.
    pub fn parse(base: &str, key: Option<String>) -> Result<Endpoint, RemoteError> {
        let refuse = |reason: &str| RemoteError::Endpoint { url: base.to_owned(), reason: reason.to_owned() };
        let mut url = Url::parse(base)
            .map_err(|error| refuse(&format!("{error}; an address is such as `http://localhost:8000/v1`")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refuse("an address begins with `http://` or `https://`"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            let url = format!("{}://…@{}", url.scheme(), url.host_str().unwrap_or_default());
            let reason = "an address holds no password, as addresses are told in errors and results".into();
            return Err(RemoteError::Endpoint { url, reason });
        }
        if key.as_ref().is_some_and(|key| key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(refuse("the key to it is empty or holds other than visible characters"));
        }
        url.path_segments_mut()
            .expect("addresses of web servers have paths")
            .pop_if_empty()
            .extend(["chat", "completions"]);
        Ok(Endpoint { url, key })
    }

    /// Where requests go.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }
}

impl std::fmt::Debug for Endpoint {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

impl RemotePolicy {
    /// A customer who asks the model at `endpoint`. Nothing is sent yet.
    ///
    /// # Errors
    /// If no client can be made.
    pub fn new(endpoint: Endpoint, config: RemoteConfig) -> Result<RemotePolicy, RemoteError> {
        let client = Client::new(endpoint, &config.request)?;
        Ok(RemotePolicy { shopping: Arc::new(Shopping { client, config }) })
    }

    /// How the model is spoken to, as every record says it.
    pub fn prompt(&self) -> PromptStamp {
        self.shopping.config.request.prompt()
    }

    /// Actions after which an episode is cut.
    pub fn max_steps(&self) -> u32 {
        self.shopping.config.max_steps
    }

    /// Makes an episode for each task. `ended` is called with the place of a task and what came of it as soon as its episode
    /// has ended, in whatever order they do. Once `stop` is set, episodes under way are given up and it returns.
    ///
    /// What is said depends on the server; what is asked of it depends on the tasks and the seed alone.
    ///
    /// # Errors
    /// If nobody answers at the address or the server refuses key, model or address; if a task is the fork of an episode, whose
    /// words this does not tell again; and what `ended` says.
    pub fn play(
        &self,
        tasks: &[(usize, Task)],
        stop: &AtomicBool,
        ended: &mut dyn FnMut(usize, Result<Episode, FailedEpisode>) -> Result<(), RemoteError>,
    ) -> Result<(), RemoteError> {
        let forked = tasks.iter().find_map(|(_, task)| task.prefix.as_ref());
        if let Some(prefix) = forked {
            return Err(AgentError::EpisodePrefix {
                turn: prefix.turns().len(),
                goal: prefix.coordinates().goal.0,
                reason: "a model behind a server is told episodes from their door on".into(),
            }.into());
        }
        self.shopping.client.wait_for(self.play_all(tasks, stop, ended))
    }

    async fn play_all(
        &self,
        tasks: &[(usize, Task)],
        stop: &AtomicBool,
        ended: &mut dyn FnMut(usize, Result<Episode, FailedEpisode>) -> Result<(), RemoteError>,
    ) -> Result<(), RemoteError> {
        let mut waiting = tasks.iter().cloned();
        let mut under_way = JoinSet::new();
        while !stop.load(Ordering::Relaxed) {
            while under_way.len() < self.shopping.config.request.concurrency.max(1)
                && let Some((place, task)) = waiting.next()
            {
                let shopping = self.shopping.clone();
                under_way.spawn(async move { (place, shopping.shop_at_last(&task).await) });
            }
            let Ok(next) = timeout(GLANCE, under_way.join_next()).await else { continue };
            let Some(joined) = next else { break };
            let (place, outcome) = joined.expect("no episode is aborted, and none panics");
            match outcome {
                Ok(episode) => ended(place, Ok(episode))?,
                Err(EpisodeFailure::Alone(failed)) => ended(place, Err(failed))?,
                Err(EpisodeFailure::All(error)) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_below_the_address() {
        let url = |base: &str| Endpoint::parse(base, None).unwrap().url().to_owned();
        assert_eq!(url("http://localhost:8000/v1"), "http://localhost:8000/v1/chat/completions");
        assert_eq!(url("https://example.org/v1/"), "https://example.org/v1/chat/completions");
        assert_eq!(url("http://localhost:1"), "http://localhost:1/chat/completions");
    }

    #[test]
    fn what_is_no_address_or_no_key_is_refused_without_telling_secrets() {
        for base in ["", "localhost:8000/v1", "ftp://example.org", "http://"] {
            assert!(Endpoint::parse(base, None).is_err(), "{base}");
        }
        for key in ["", "two words", "line\nbreak", "schlüssel"] {
            let refusal = Endpoint::parse("http://localhost", Some(key.into())).unwrap_err().to_string();
            assert!(key.is_empty() || !refusal.contains(key), "{refusal}");
        }
        let refusal = Endpoint::parse("http://me:secret@example.org/v1", None).unwrap_err().to_string();
        assert!(refusal.contains("example.org") && !refusal.contains("secret"), "{refusal}");
        let endpoint = Endpoint::parse("http://localhost", Some("secret".into())).unwrap();
        assert!(!format!("{endpoint:?}").contains("secret"));
    }
}
