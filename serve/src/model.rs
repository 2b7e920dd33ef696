//! A language model that is served, without a network.
//!
//! A [`Model`] takes generations: the tokens of a prompt and [`Settings`]. One thread, [`batch`], owns the weights and
//! runs many generations together; a [`Generation`] follows one of them from outside and makes text of its tokens.
//! [`chat`] lays messages out as a prompt, and [`continuation`] is the text of a completion behind its prompt.
//!
//! On the CPU backend a completion depends on the prompt, the settings and the seed only, not on what else is
//! generated. A generation without a seed draws by its number, which counts the generations before.

mod batch;
mod chat;
mod continuation;
mod generation;
mod place;
mod stop;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::{Semaphore, mpsc};
use webshop_agent::ChatFormat;
use webshop_lm::chat::Message;
use webshop_lm::{BpeTokenizer, Engine, LmError, Sampler};
use webshop_products::{Digest, Purpose, Seed};

use crate::error::ServeError;
pub(crate) use batch::Scored;
use batch::{Batch, Job};
use chat::ChatLayout;
pub(crate) use continuation::decoding_context;
pub(crate) use generation::{Finish, Generation, GenerationError, Piece};
use place::Place;

/// The seeds of generations that name none.
const UNSEEDED: Purpose = Purpose::new("completion-seed");

/// A model, and how it is served.
#[derive(Debug)]
pub struct ModelConfig {
    /// The name that requests give.
    pub name: String,
    /// The weights.
    pub engine: Engine,
    /// The tokenizer.
    pub tokenizer: BpeTokenizer,
    /// Chat template and stop tokens; `None` for a model of a layout (`compact` or `text`), which has no roles.
    pub format: Option<ChatFormat>,
    /// The most tokens of a prompt and its completion together.
    pub max_context: usize,
    /// The number of completions that are generated together, at least 1.
    pub lanes: usize,
    /// The most requests that wait for a lane, at least 1.
    pub max_waiting: usize,
    /// The fingerprint of the weights.
    pub fingerprint: Arc<str>,
    /// The seed of completions that name none.
    pub seed: Seed,
}

/// How a completion is generated.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) sampler: Sampler,
    pub(crate) seed: Option<u64>,
    /// The most tokens; `None` for as many as the context has room for.
    pub(crate) max_tokens: Option<usize>,
    /// Texts that end the completion and are not part of it.
    pub(crate) stop: Vec<String>,
    /// The number of most probable tokens to report beside each token's own log-probability; `None` reports none.
    pub(crate) n_top: Option<usize>,
    /// Whether log-probabilities of the prompt are reported too.
    pub(crate) scores_prompt: bool,
    /// Whether the completion's text continues the prompt's, and is not a text of its own as in a chat.
    pub(crate) continues_prompt: bool,
}

/// Why a generation is not begun.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubmitError {
    // Clients look for the beginning of this text.
    #[error(
        "This model's maximum context length is {limit} tokens. However, the prompt has {n_tokens} tokens, and a \
         completion needs room for one more. Shorten the prompt."
    )]
    TooLong { limit: usize, n_tokens: usize },
    #[error("the prompt has no tokens")]
    Empty,
    #[error("the prompt has the token id `{id}`, but the ids of the model are less than {n_ids}")]
    NoSuchId { id: u32, n_ids: usize },
    #[error("{0}")]
    Prompt(LmError),
    #[error("{limit} requests wait for the model already; try again later")]
    Busy { limit: usize },
    #[error("the model has stopped after an error; see the server's log")]
    Stopped,
}

/// A served model.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) name: String,
    /// When it was loaded, in seconds since 1970.
    pub(crate) created: u64,
    /// The digest of the weights and the program's version.
    pub(crate) fingerprint: String,
    pub(crate) tokenizer: Arc<BpeTokenizer>,
    /// The most tokens of a prompt and its completion together.
    pub(crate) max_context: usize,
    layout: ChatLayout,
    stop_ids: Vec<u32>,
    n_ids: usize,
    seed: Seed,
    n_begun: AtomicU64,
    jobs: mpsc::UnboundedSender<(Job, Place)>,
    /// A permit for each request that may wait for a lane.
    queue: Arc<Semaphore>,
    max_waiting: usize,
}

impl Model {
    /// Starts the thread of the model, which ends when the model is dropped.
    ///
    /// # Errors
    /// If the caches do not fit into the device's memory, the tokenizer lacks a special token of its prompt format, or
    /// no thread can be started.
    pub(crate) fn start(config: ModelConfig) -> Result<Model, ServeError> {
        let ModelConfig { engine, tokenizer, format, max_waiting, .. } = config;
        let (layout, stop_ids) = ChatLayout::new(&tokenizer, format)?;
        let n_ids = engine.config().vocab_size;
        let batch = Batch::new(engine, config.lanes, config.max_context, stop_ids.clone())?;
        let max_context = batch.capacity();
        let (jobs, waiting) = mpsc::unbounded_channel();
        let max_waiting = max_waiting.clamp(1, Semaphore::MAX_PERMITS);
        thread::Builder::new().name("model".to_owned()).spawn(move || batch.run(waiting))?;
        let version = format!("{} {}", config.fingerprint, env!("CARGO_PKG_VERSION"));
        Ok(Model {
            name: config.name,
            created: now(),
            fingerprint: format!("fp_{}", Digest::of(version.as_bytes())),
            tokenizer: Arc::new(tokenizer),
            max_context,
            layout,
            stop_ids,
            n_ids,
            seed: config.seed,
            n_begun: AtomicU64::new(0),
            jobs,
            queue: Arc::new(Semaphore::new(max_waiting)),
            max_waiting,
        })
    }

    /// The tokens of a chat up to the model's turn; `tools` are JSON schemas of functions.
    pub(crate) fn encode_chat(
        &self,
        messages: &[Message],
        tools: Option<Vec<serde_json::Value>>,
    ) -> Result<Vec<u32>, SubmitError> {
        self.layout.encode(&self.tokenizer, messages, tools).map_err(SubmitError::Prompt)
    }

    /// Whether prompts show tools.
    pub(crate) fn has_tools(&self) -> bool {
        self.layout.has_tools()
    }

    /// The tokens of a text, in which special tokens may be spelled out.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<u32>, SubmitError> {
        self.tokenizer.encode(text).map_err(SubmitError::Prompt)
    }

    /// Begins a generation.
    pub(crate) fn generate(
        self: &Arc<Self>,
        prompt_ids: Vec<u32>,
        settings: Settings,
    ) -> Result<Generation, SubmitError> {
        self.check(&prompt_ids, settings.max_tokens == Some(0))?;
        let permit = Arc::clone(&self.queue).try_acquire_owned();
        let place = Place::new(permit.map_err(|_| SubmitError::Busy { limit: self.max_waiting })?);
        // A refused generation has no number: the draws of others do not depend on it.
        let ordinal = self.n_begun.fetch_add(1, Ordering::Relaxed);
        let seed = settings.seed.map_or_else(|| self.seed.child(UNSEEDED, &[ordinal]), Seed);
        let (events, received) = mpsc::unbounded_channel();
        let job = Job {
            max_tokens: settings.max_tokens.unwrap_or(self.max_context),
            sampler: settings.sampler,
            seed,
            n_top: settings.n_top,
            scores_prompt: settings.scores_prompt,
            events,
            prompt_ids: prompt_ids.clone(),
        };
        self.jobs.send((job, place.clone())).map_err(|_| SubmitError::Stopped)?;
        let Settings { stop, continues_prompt, .. } = settings;
        Ok(Generation::new(Arc::clone(self), ordinal, prompt_ids, stop, continues_prompt, received, place))
    }

    fn check(&self, prompt_ids: &[u32], only_scores: bool) -> Result<(), SubmitError> {
        let (limit, n_tokens) = (self.max_context, prompt_ids.len());
        if n_tokens > limit || (n_tokens == limit && !only_scores) {
            return Err(SubmitError::TooLong { limit, n_tokens });
        }
        if prompt_ids.is_empty() {
            return Err(SubmitError::Empty);
        }
        match prompt_ids.iter().find(|id| **id as usize >= self.n_ids) {
            Some(&id) => Err(SubmitError::NoSuchId { id, n_ids: self.n_ids }),
            None => Ok(()),
        }
    }

    /// Whether the token ends a completion.
    fn is_stop(&self, id: u32) -> bool {
        self.stop_ids.contains(&id)
    }
}

/// The time in seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "OpenAI's objects have a field for the time of their creation")]
pub(crate) fn now() -> u64 {
    // A clock before 1970 is set wrongly, which is no reason to refuse requests.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
