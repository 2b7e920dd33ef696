//! One session: its episode, its stream of goals, and what it shows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use webshop_env::{Action, AvailableActions, EnvConfig, Shop, ShopEnv, SnapshotError};
use webshop_products::{Digest, GoalId, GoalSet, Purpose, Seed, Split};

use super::episode::{LastAction, Origin};
use super::store::Store;
use super::stored::{SessionName, StoredEpisode, StoredSession};
use super::{Defaults, SessionId};
use crate::counters::Counters;
use crate::error::SessionError;
use crate::reset::{GoalRequest, ResetRequest};

/// The goals of resets that name neither goal nor seed, addressed by the session and the reset.
const STREAM: Purpose = Purpose::new("session-goals");

/// A shared handle to a session. Requests through all handles are served one after the other.
#[derive(Clone, Debug)]
pub struct OpenSession {
    id: SessionId,
    shop: Arc<Shop>,
    stream: Stream,
    counters: Arc<Counters>,
    /// Keeps the state after every change; `None` for sessions that end with a connection or with the server.
    store: Option<Arc<Store>>,
    state: Arc<Mutex<State>>,
}

/// Where the goals of a session come from if its resets do not say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) defaults: Defaults,
    /// The session's number.
    pub(crate) ordinal: u64,
}

/// The state of a session.
#[derive(Clone, Debug, Default)]
struct State {
    /// `None` before the first reset.
    episode: Option<Episode>,
    /// The number of resets.
    n_resets: u64,
    /// What a client calls the session.
    name: Option<SessionName>,
    /// Whether the session was closed: whoever still has a handle uses it, and it is not kept.
    is_closed: bool,
}

#[derive(Clone, Debug)]
struct Episode {
    env: ShopEnv,
    origin: Origin,
    last: Option<LastAction>,
}

/// What a session shows.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionView {
    /// The goal.
    pub goal: GoalId,
    /// The split that the goal was drawn from; for a goal given by its number, the first that has it.
    pub split: Split,
    /// The seed that drew the goal.
    pub seed: Option<u64>,
    /// The name that the client gave the episode.
    pub episode_id: Option<String>,
    /// The goal's instruction.
    pub instruction: Arc<str>,
    /// The page in the session's observation mode.
    pub observation: String,
    /// The available actions.
    pub available_actions: AvailableActions,
    /// The page's address in the original, with the goal's number as the session's name.
    pub url: String,
    /// The number of actions taken.
    pub step: u32,
    /// The result of the last action; `None` after a reset.
    pub last: Option<LastAction>,
    /// Whether the episode ended by a purchase.
    pub terminated: bool,
    /// Whether the step limit ended the episode.
    pub truncated: bool,
    /// The digest of the state.
    pub digest: Digest,
}

impl SessionView {
    /// Whether the episode is over.
    pub fn is_done(&self) -> bool {
        self.terminated || self.truncated
    }

    /// The reward of the last action; 0 after a reset.
    pub fn reward(&self) -> f64 {
        self.last.map_or(0.0, |last| last.reward)
    }
}

impl OpenSession {
    /// A session without an episode.
    pub(super) fn new(
        id: SessionId,
        shop: Arc<Shop>,
        stream: Stream,
        counters: Arc<Counters>,
        store: Option<Arc<Store>>,
    ) -> Self {
        OpenSession { id, shop, stream, counters, store, state: Arc::default() }
    }

    /// This session, which is empty, in the state of `env`. An episode that a purchase ended has its reward.
    pub(super) fn with_env(self, env: ShopEnv) -> Self {
        let last = LastAction::purchase(&env);
        let split = self.shop.goals().split_of(env.session().goal());
        let origin = Origin { episode_id: None, split, seed: None };
        self.state().episode = Some(Episode { env, origin, last });
        self
    }

    /// `empty` with the episode of this session.
    pub(super) fn copied_into(&self, empty: OpenSession) -> OpenSession {
        let episode = self.state().episode.clone();
        empty.state().episode = episode;
        empty
    }

    /// This session, which is empty, in a state that was kept.
    ///
    /// # Errors
    /// If the snapshot of its environment is damaged, of another version, or of another shop.
    pub(super) fn with_stored(self, stored: StoredSession) -> Result<Self, SnapshotError> {
        let StoredSession { n_resets, name, episode } = stored;
        let episode = episode.map(|StoredEpisode { snapshot, origin, last }| {
            let bytes = STANDARD.decode(snapshot);
            let bytes = bytes.map_err(|error| SnapshotError::Impossible(error.to_string()))?;
            let env = ShopEnv::restore(Arc::clone(&self.shop), &bytes)?;
            Ok(Episode { env, origin, last })
        });
        *self.state() = State { episode: episode.transpose()?, n_resets, name, is_closed: false };
        Ok(self)
    }

    /// Keeps the state, if this session is kept.
    pub(super) fn keep(&self) {
        self.save(&self.state());
    }

    /// Keeps the state no longer.
    pub(super) fn forget(&self) {
        let mut state = self.state();
        state.is_closed = true;
        if let Some(store) = &self.store {
            store.remove(self.id);
        }
    }

    /// What a client calls the session.
    pub(crate) fn name(&self) -> Option<SessionName> {
        self.state().name.clone()
    }

    /// The session's name.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Begins an episode.
    ///
    /// # Errors
    /// If there is no such goal; the session is unchanged then.
    pub fn reset(&self, request: &ResetRequest) -> Result<SessionView, SessionError> {
        let mut state = self.state();
        self.begin(&mut state, request).map(|episode| episode.view(&self.shop))
    }

    /// As [`OpenSession::reset`], of a session that a client names.
    ///
    /// # Errors
    /// As [`OpenSession::reset`].
    pub(crate) fn reset_named(&self, name: SessionName) -> Result<SessionView, SessionError> {
        let mut state = self.state();
        let request = name.reset.clone();
        state.name = Some(name);
        self.begin(&mut state, &request).map(|episode| episode.view(&self.shop))
    }

    /// Takes one action, given as text. Before the first reset the session resets itself.
    ///
    /// # Errors
    /// If the session must reset itself and its split has no goals.
    pub fn step(&self, action: &str) -> Result<SessionView, SessionError> {
        self.act(&Action::parse(action, self.shop.config().compat))
    }

    /// As [`OpenSession::step`], with an action that is no text.
    ///
    /// # Errors
    /// As [`OpenSession::step`].
    pub(crate) fn act(&self, action: &Action) -> Result<SessionView, SessionError> {
        let mut state = self.state();
        let episode = self.current(&mut state)?;
        let was_over = episode.env.is_over();
        let step = episode.env.step(action);
        let (reward, breakdown) = (step.reward, step.info.breakdown);
        episode.last = Some(LastAction { reward, noop: step.info.noop, breakdown });
        let ended = !was_over && (step.terminated || step.truncated);
        self.counters.step(ended, step.terminated);
        let view = episode.view(&self.shop);
        self.save(&state);
        Ok(view)
    }

    /// What the session shows. Before the first reset the session resets itself.
    ///
    /// # Errors
    /// As [`OpenSession::step`].
    pub fn view(&self) -> Result<SessionView, SessionError> {
        let mut state = self.state();
        Ok(self.current(&mut state)?.view(&self.shop))
    }

    /// The HTML document of the page. Before the first reset the session resets itself.
    ///
    /// # Errors
    /// As [`OpenSession::step`].
    pub fn html(&self) -> Result<String, SessionError> {
        let mut state = self.state();
        Ok(self.current(&mut state)?.env.page().html())
    }

    /// Both, of the same state.
    ///
    /// # Errors
    /// As [`OpenSession::step`].
    pub(crate) fn view_and_html(&self) -> Result<(SessionView, String), SessionError> {
        let mut state = self.state();
        let episode = self.current(&mut state)?;
        Ok((episode.view(&self.shop), episode.env.page().html()))
    }

    /// The episode as bytes, for [`super::Sessions::restore`]. Before the first reset the session resets itself.
    ///
    /// # Errors
    /// As [`OpenSession::step`].
    pub fn snapshot(&self) -> Result<Vec<u8>, SessionError> {
        let mut state = self.state();
        Ok(self.current(&mut state)?.env.snapshot())
    }

    /// The current episode, which begins now if there is none.
    fn current<'s>(&self, state: &'s mut State) -> Result<&'s mut Episode, SessionError> {
        if state.episode.is_none() {
            self.begin(state, &ResetRequest::new(GoalRequest::Stream { split: None }))?;
        }
        Ok(state.episode.as_mut().expect("an episode has begun"))
    }

    fn begin<'s>(
        &self,
        state: &'s mut State,
        request: &ResetRequest,
    ) -> Result<&'s mut Episode, SessionError> {
        let (goal, split) = self.stream.goal(self.shop.goals(), state.n_resets, request.goal)?;
        let defaults = &self.stream.defaults;
        let config = EnvConfig {
            max_steps: request.max_steps.unwrap_or(defaults.max_steps),
            observation: request.observation.unwrap_or(defaults.observation),
        };
        let mut env = ShopEnv::new(Arc::clone(&self.shop), config);
        env.reset(goal);
        let seed = match request.goal {
            GoalRequest::Seed { seed, .. } => Some(seed),
            _ => None,
        };
        state.n_resets += 1;
        self.counters.reset();
        let origin = Origin { episode_id: request.episode_id.clone(), split, seed };
        state.episode = Some(Episode { env, origin, last: None });
        self.save(state);
        Ok(state.episode.as_mut().expect("an episode has begun"))
    }

    fn save(&self, state: &State) {
        if let Some(store) = self.store.as_ref().filter(|_| !state.is_closed) {
            store.save(self.id, &state.stored());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // An environment takes any action without a panic, and a state is replaced as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream {
    /// The goal of the session's reset number `reset`, and its split.
    pub(super) fn goal(
        &self,
        goals: &GoalSet,
        reset: u64,
        request: GoalRequest,
    ) -> Result<(GoalId, Split), SessionError> {
        let or_default = |split: Option<Split>| split.unwrap_or(self.defaults.split);
        let drawn = |split: Split, seed: Seed| {
            let goal = goals.goal_for_seed(split, seed);
            goal.map(|goal| (goal, split)).ok_or(SessionError::EmptySplit(split))
        };
        let (goal, split) = match request {
            GoalRequest::Goal(goal) => {
                let id = i64::try_from(goal).ok().and_then(|number| goals.find(number).ok());
                let no_such =
                    || SessionError::NoSuchGoal { goal: goal.to_string(), n_goals: goals.goals().len() };
                (id.ok_or_else(no_such)?, Split::All)
            }
            GoalRequest::Index { split, index } => {
                let split = or_default(split);
                let ids = goals.split(split);
                let id = usize::try_from(index).ok().and_then(|index| ids.get(index)).copied();
                let no_such = SessionError::NoSuchIndex { split, index, n_goals: ids.len() };
                (id.ok_or(no_such)?, split)
            }
            GoalRequest::Seed { split, seed } => drawn(or_default(split), Seed(seed))?,
            GoalRequest::Stream { split } => {
                let seed = self.defaults.seed.child(STREAM, &[self.ordinal, reset]);
                drawn(or_default(split), seed)?
            }
        };
        Ok((goal, if split == Split::All { goals.split_of(goal) } else { split }))
    }
}

impl State {
    fn stored(&self) -> StoredSession {
        let episode = self.episode.as_ref().map(|episode| StoredEpisode {
            snapshot: STANDARD.encode(episode.env.snapshot()),
            origin: episode.origin.clone(),
            last: episode.last,
        });
        StoredSession { n_resets: self.n_resets, name: self.name.clone(), episode }
    }
}

impl Episode {
    fn view(&self, shop: &Shop) -> SessionView {
        let (env, session) = (&self.env, self.env.session());
        let observation = env.observation();
        SessionView {
            goal: session.goal(),
            split: self.origin.split,
            seed: self.origin.seed,
            episode_id: self.origin.episode_id.clone(),
            instruction: shop.goals().get(session.goal()).instruction.clone(),
            observation: observation.content(),
            available_actions: observation.available_actions(),
            url: env.page().url(&session.name()),
            step: session.steps(),
            last: self.last,
            terminated: env.is_terminated(),
            truncated: env.is_truncated(),
            digest: session.digest(),
        }
    }
}
