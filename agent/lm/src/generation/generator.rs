//! Saying a turn: batched sampling across lanes, with the context kept from turn to turn.
//!
//! A [`Generator`] holds the contexts of many lanes. Each [`Request`] brings a lane what is new since its
//! last turn; the lane reads it, samples until a stop token, and its [`Completion`] becomes part of the
//! context too. Nothing is read twice: the last token said is read together with the next prompt, so that a
//! lane which is never asked again does not pay for it.
//!
//! ```text
//! context of a lane = prompt₀ completion₀ prompt₁ completion₁ …          at most `capacity` tokens
//! ```
//!
//! Where prompts stand alone ([`Context::Alone`]), the lane keeps what the new one begins with and the old
//! one began with, and reads the rest.
//!
//! Lanes are ragged, and a lane that has stopped leaves the batch. Lanes of a small model live in groups of at
//! most `LANES_PER_GROUP`; groups run side by side on rayon's threads and each runs on one. A wide model reads
//! its weights once for all lanes, which are one group, and divides its products among the threads instead. A
//! lane's completion depends on its context, the sampler and its coordinates alone: not on the number of
//! threads, nor on the lanes beside it.
//!
//! On a GPU all lanes are one group, and tokens are drawn there where nothing but the temperature shapes the distribution:
//! logits then never leave it.
//!
//! Where a constraint leaves a single token, it is taken without asking the model, with log-probability 0,
//! which is what sampling would have found. Text, pages and actions are other modules' business.


use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use webshop_products::Seed;

use crate::generation::group::Group;
use crate::generation::constraint::Constraint;
use crate::engine::Engine;
use crate::error::LmError;
use webshop_kernels::cpu::threads::Threads;
use crate::generation::sampler::{Sampler, SamplingCoordinates};
use crate::generation::self_certainty::Certainty;

/// Most lanes of a small model that are computed together on one thread: enough rows for the matrix products to be worth it, few
/// enough to keep several threads busy.
const LANES_PER_GROUP: usize = 16;

/// What stays the same over all turns.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratorConfig {
    /// Contexts held.
    pub n_lanes: usize,
    /// Most tokens of one context, at most the model's number of positions.
    pub capacity: usize,
    /// How tokens are drawn.
    pub sampler: Sampler,
    /// Where the draws come from.
    pub seed: Seed,
    /// Tokens that end a turn, such as `<|im_end|>`.
    pub stop_ids: Vec<u32>,
    /// What to record of how sure the model was of each token; `None` for nothing.
    pub certainty: Option<Certainty>,
}

/// What stands before a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// All that was read and said on the lane before.
    Kept,
    /// Nothing: it is the whole context.
    Alone,
}

/// One lane's next turn.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which lane.
    pub lane: usize,
    /// What stands before the prompt.
    pub context: Context,
    /// What is to be read before the answer.
    pub prompt_ids: Vec<u32>,
    /// Address of the turn's first draw; later tokens count up from its `token`.
    pub coordinates: SamplingCoordinates,
    /// What may be said; `None` is anything.
    pub constraint: Option<Constraint>,
    /// Tokens after which the turn is cut.
    pub max_new_tokens: usize,
}

/// What was said in one turn. The lists are equally long, `certainty` unless it is empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// The sampled tokens, the stop token included.
    pub ids: Vec<u32>,
    /// Log-probability of each under the distribution it was drawn from.
    pub log_probs: Vec<f32>,
    /// Entropy in nats of each of these distributions.
    pub entropy: Vec<f32>,
    /// How sure the model was of each, by the logits before temperature, where that is recorded; 0 where a constraint left
    /// nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certainty: Vec<f64>,
    /// Why it ended.
    pub stop: StopReason,
}

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A stop token was said, or all that the constraint allows.
    EndOfTurn,
    /// `max_new_tokens` were said.
    Length,
    /// The context is full. If nothing was said, the prompt left no room for it and was not read.
    ContextFull,
}

/// The contexts of many lanes, and a model that continues them.
#[derive(Debug)]
pub struct Generator {
    engine: Engine,
    config: GeneratorConfig,
    groups: Vec<Group>,
    /// Lanes of every group but the last, which may have fewer.
    lanes_per_group: usize,
}

impl Generator {
    /// Empty contexts for the weights in `engine`. Fails if a device has no room for them.
    pub fn new(engine: impl Into<Engine>, config: GeneratorConfig) -> Result<Self, LmError> {
        let engine = engine.into();
        let lanes_per_group = match engine.threads() {
            // A group for each thread, if there are few lanes.
            Threads::One => config.n_lanes.div_ceil(rayon::current_num_threads()).min(LANES_PER_GROUP),
            Threads::All => config.n_lanes,
        };
        let lanes_per_group = lanes_per_group.max(1);
        let groups = (0..config.n_lanes).step_by(lanes_per_group).map(|first_lane| {
            let n_lanes = lanes_per_group.min(config.n_lanes - first_lane);
            let cache = engine.cache(n_lanes, config.capacity)?;
            Ok(Group { first_lane, cache, contexts: vec![Vec::new(); n_lanes] })
        });
        let groups = groups.collect::<Result<_, LmError>>()?;
        Ok(Self { engine, config, groups, lanes_per_group })
    }

    /// Continues with other weights of the same shape on the same device, from empty contexts: what has been read was
    /// read by the old ones.
    pub fn renew(&mut self, engine: impl Into<Engine>) {
        self.engine = engine.into();
        (0..self.config.n_lanes).for_each(|lane| self.forget(lane));
    }

    /// What stays the same over all turns.
    pub fn config(&self) -> &GeneratorConfig {
        &self.config
    }

    /// Tokens in the context of `lane`.
    ///
    /// # Panics
    /// If there is no such lane; so do [`Generator::forget`] and [`Generator::recall`].
    pub fn context_len(&self, lane: usize) -> usize {
        self.groups[lane / self.lanes_per_group].contexts[lane % self.lanes_per_group].len()
    }

    /// Empties the context of `lane`.
    pub fn forget(&mut self, lane: usize) {
        let group = &mut self.groups[lane / self.lanes_per_group];
        group.cache.truncate_lane(lane % self.lanes_per_group, 0);
        group.contexts[lane % self.lanes_per_group].clear();
    }

    /// Takes tokens that were read and said elsewhere for those of `lane`: behind its context, or in the place of it. They
    /// are read with its next prompt.
    pub fn recall(&mut self, lane: usize, context: Context, ids: &[u32]) {
        if context == Context::Alone {
            self.forget(lane);
        }
        self.groups[lane / self.lanes_per_group].contexts[lane % self.lanes_per_group].extend_from_slice(ids);
    }

    /// Says one turn for each request, in their order.
    ///
    /// Fails if a request names a lane that does not exist or that another request names, if a lane has
    /// nothing to read, or if the model's logits are not finite. After a failure the contexts are unusable.
    pub fn generate(&mut self, requests: &[Request]) -> Result<Vec<Completion>, LmError> {
        let mut of_group = vec![Vec::new(); self.groups.len()];
        let mut is_asked = vec![false; self.config.n_lanes];
        for (place, request) in requests.iter().enumerate() {
            match is_asked.get_mut(request.lane) {
                Some(asked) if !*asked => *asked = true,
                Some(_) => {
                    return Err(LmError::Sampling(format!("lane `{}` is asked twice", request.lane)));
                }
                None => {
                    return Err(LmError::Sampling(format!("there is no lane `{}`", request.lane)));
                }
            }
            of_group[request.lane / self.lanes_per_group].push(place);
        }
        let (engine, config) = (&self.engine, &self.config);
        let said: Vec<Vec<Completion>> = self
            .groups
            .par_iter_mut()
            .zip(&of_group)
            .map(|(group, places)| {
                group.generate(engine, config, places.iter().map(|place| &requests[*place]))
            })
            .collect::<Result<_, LmError>>()?;
        let mut completions: Vec<_> =
            of_group.into_iter().flatten().zip(said.into_iter().flatten()).collect();
        completions.sort_by_key(|(place, _)| *place);
        Ok(completions.into_iter().map(|(_, completion)| completion).collect())
    }
}
