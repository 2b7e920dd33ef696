//! Episodes of people who shop on the site, written to a file as those of a rollout are.
//!
//! The site keeps nothing: an address makes a page. A [`Recorder`] follows a visitor's actions from the search bar
//! on in an environment of its own, and writes the episode when something is bought. Going back in the browser
//! takes back the actions since that page, because an agent has no such action. Each visitor, known by a cookie, is
//! recorded once for each session, since after the purchase the goal's solution has been seen.
//!
//! The site has no step limit, and the form of an episode has one: it is the server's default, or the number of the
//! person's actions if there are more.
//!
//! Not recorded is who begins at an address in the middle, who buys nothing, and who takes more than [`MAX_ACTIONS`] actions.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderMap, HeaderValue, header};
use webshop_agent::{AgentError, Episode, EpisodeCoordinates, EpisodeMeta, ModelTurn};
use webshop_env::{Action, Address, EnvConfig, Session, Shop, ShopEnv};
use webshop_products::GoalId;

use super::record_file::{POLICY, RecordFile};

/// The name of the cookie with a visitor's number.
const COOKIE: &str = "webshop-visitor";

/// The largest number of visits that are followed; those whose last action is longest ago make room.
const MAX_VISITS: usize = 4096;

/// The largest number of actions of a visit that is followed, since each keeps its page.
const MAX_ACTIONS: usize = 500;

/// The number of a visitor of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Visitor(u64);

/// Follows visitors and writes their episodes.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// Names this process in cookies, by 64 random bits in hexadecimal: a number of another process, which a browser may still
    /// have, is that of another visitor. Identifiers of processes do not tell them apart, since in a container each is 1.
    process: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: RecordFile,
    /// The form of observations of the episodes, and their step limit unless a person takes more actions.
    config: EnvConfig,
    n_visitors: u64,
    /// Each with the number of its last action.
    visits: BTreeMap<(Visitor, String), (u64, Progress)>,
    /// Number of actions, or of redirected groups of them, so far.
    n_followed: u64,
}

/// A visitor's way through a session.
#[derive(Debug)]
enum Progress {
    /// The environment after each action from the search bar on, and the actions between.
    Running { states: Vec<ShopEnv>, actions: Vec<Action> },
    /// The episode is written.
    Recorded,
}

impl Recorder {
    /// A recorder that writes episodes with this form of observations and this step limit to a file.
    pub(crate) fn new(file: RecordFile, config: EnvConfig) -> Recorder {
        let process = format!("{:016x}", RandomState::new().hash_one(()));
        Recorder {
            process,
            state: Mutex::new(State { file, config, n_visitors: 0, visits: BTreeMap::new(), n_followed: 0 }),
        }
    }

    /// The visitor whom the cookie of a request names, or a new one with the cookie to set.
    pub(crate) fn visitor(&self, headers: &HeaderMap) -> (Visitor, Option<HeaderValue>) {
        let process = &self.process;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = cookie(headers, process).filter(|visitor| visitor.0 < state.n_visitors) {
            return (known, None);
        }
        let visitor = Visitor(state.n_visitors);
        state.n_visitors += 1;
        let text = format!("{COOKIE}={process}-{}; Path=/; HttpOnly; SameSite=Lax", visitor.0);
        (visitor, Some(HeaderValue::from_str(&text).expect("digits and constants")))
    }

    /// Takes the actions of a request: `before` is the page that it came from, `after` the one that it leads to.
    ///
    /// # Errors
    /// If an episode cannot be written.
    pub(crate) fn follow(
        &self,
        shop: &Arc<Shop>,
        visitor: Visitor,
        before: &Session,
        actions: &[Action],
        after: &Session,
    ) -> Result<(), AgentError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (visitor, before.name());
        let mut visit = match state.visits.remove(&key) {
            Some((_, visit)) => visit,
            None if before.address() == Address::Search => Progress::begin(shop, state.config, before.goal()),
            None => return Ok(()),
        };
        if !visit.take(before, actions, after) {
            return Ok(());
        }
        let mut written = Ok(());
        if let Progress::Running { states, actions } = &visit
            && states.last().is_some_and(ShopEnv::is_terminated)
        {
            let goal = before.goal();
            let episode = episode(shop, state.config, goal, actions, state.file.n_written(goal));
            written = state.file.append(&episode);
            visit = Progress::Recorded;
        }
        if state.visits.len() >= MAX_VISITS {
            let least_recent = state.visits.iter().min_by_key(|(_, (at, _))| *at).map(|(key, _)| key.clone());
            least_recent.and_then(|key| state.visits.remove(&key));
        }
        state.n_followed += 1;
        let at = state.n_followed;
        state.visits.insert(key, (at, visit));
        written
    }
}

impl Progress {
    fn begin(shop: &Arc<Shop>, config: EnvConfig, goal: GoalId) -> Progress {
        let mut env = ShopEnv::new(Arc::clone(shop), EnvConfig { max_steps: u32::MAX, ..config });
        env.reset(goal);
        Progress::Running { states: vec![env], actions: Vec::new() }
    }

    /// Takes actions from the page `before`; whether the way is still known.
    fn take(&mut self, before: &Session, new: &[Action], after: &Session) -> bool {
        let Progress::Running { states, actions } = self else { return true };
        let Some(at) = states.iter().rposition(|env| env.session().address() == before.address()) else {
            return false;
        };
        if at + new.len() > MAX_ACTIONS {
            return false;
        }
        states.truncate(at + 1);
        actions.truncate(at);
        for action in new {
            let mut env = states[states.len() - 1].clone();
            env.step(action);
            states.push(env);
            actions.push(action.clone());
        }
        // Two options may offer the same value, of which a click chooses one.
        states[states.len() - 1].session().address() == after.address()
    }
}

/// The episode of a person's actions; `sample` is the number of episodes for the goal before it.
fn episode(shop: &Arc<Shop>, config: EnvConfig, goal: GoalId, actions: &[Action], sample: u64) -> Episode {
    let n_actions = u32::try_from(actions.len()).expect("a page of the site takes memory");
    let max_steps = config.max_steps.max(n_actions);
    let mut env = ShopEnv::new(Arc::clone(shop), EnvConfig { max_steps, ..config });
    env.reset(goal);
    let coordinates = EpisodeCoordinates { sample, ..EpisodeCoordinates::of_goal(goal) };
    let mut episode = Episode::new(&env, EpisodeMeta::new(shop, coordinates, POLICY, None));
    for action in actions {
        let step = env.step(action);
        episode.push(&env, action.clone(), &step, ModelTurn::default());
    }
    episode
}

/// The visitor of this process whom a cookie names.
fn cookie(headers: &HeaderMap, process: &str) -> Option<Visitor> {
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == COOKIE)?;
    let (of, number) = value.split_once('-')?;
    (of == process).then(|| number.parse().ok().map(Visitor)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_names_a_visitor_of_the_same_process() {
        let headers = |text: &str| {
            HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_str(text).expect("a header"))])
        };
        assert_eq!(cookie(&headers("a=b; webshop-visitor=7-3"), "7"), Some(Visitor(3)));
        for other in ["webshop-visitor=8-3", "webshop-visitor=7", "webshop-visitor=7-x", "visitor=7-3", ""] {
            assert_eq!(cookie(&headers(other), "7"), None, "{other}");
        }
    }
}
