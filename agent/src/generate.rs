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
//! most [`LANES_PER_GROUP`]; groups run side by side on rayon's threads and each runs on one. A wide model reads
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

use crate::constraint::{Allowed, Constraint, ConstraintState};
use crate::engine::{Engine, EngineCache};
use crate::error::AgentError;
use crate::kernels::threads::Threads;
use crate::qwen2::LaneTokens;
use crate::sampler::{Draw, Sampler, SamplingCoordinates, uniform};

/// Most lanes of a small model that are computed together on one thread: enough rows for the matrix products to be worth it, few
/// enough to keep several threads busy.
pub const LANES_PER_GROUP: usize = 16;

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

/// What was said in one turn. The three lists are equally long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// The sampled tokens, the stop token included.
    pub ids: Vec<u32>,
    /// Log-probability of each under the distribution it was drawn from.
    pub log_probs: Vec<f32>,
    /// Entropy in nats of each of these distributions.
    pub entropy: Vec<f32>,
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
    pub fn new(engine: impl Into<Engine>, config: GeneratorConfig) -> Result<Self, AgentError> {
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
        let groups = groups.collect::<Result<_, AgentError>>()?;
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
    /// If there is no such lane; so does [`Generator::forget`].
    pub fn context_len(&self, lane: usize) -> usize {
        self.groups[lane / self.lanes_per_group].contexts[lane % self.lanes_per_group].len()
    }

    /// Empties the context of `lane`.
    pub fn forget(&mut self, lane: usize) {
        let group = &mut self.groups[lane / self.lanes_per_group];
        group.cache.truncate_lane(lane % self.lanes_per_group, 0);
        group.contexts[lane % self.lanes_per_group].clear();
    }

    /// Says one turn for each request, in their order.
    ///
    /// Fails if a request names a lane that does not exist or that another request names, if a lane has
    /// nothing to read, or if the model's logits are not finite. After a failure the contexts are unusable.
    pub fn generate(&mut self, requests: &[Request]) -> Result<Vec<Completion>, AgentError> {
        let mut of_group = vec![Vec::new(); self.groups.len()];
        let mut is_asked = vec![false; self.config.n_lanes];
        for (place, request) in requests.iter().enumerate() {
            match is_asked.get_mut(request.lane) {
                Some(asked) if !*asked => *asked = true,
                Some(_) => {
                    return Err(AgentError::Sampling(format!("lane `{}` is asked twice", request.lane)));
                }
                None => {
                    return Err(AgentError::Sampling(format!("there is no lane `{}`", request.lane)));
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
            .collect::<Result<_, AgentError>>()?;
        let mut completions: Vec<_> =
            of_group.into_iter().flatten().zip(said.into_iter().flatten()).collect();
        completions.sort_by_key(|(place, _)| *place);
        Ok(completions.into_iter().map(|(_, completion)| completion).collect())
    }
}

/// Lanes that are computed together.
#[derive(Debug)]
struct Group {
    /// The generator's number of the first lane here.
    first_lane: usize,
    cache: EngineCache,
    /// All tokens of each lane; the cache has read the first of them.
    contexts: Vec<Vec<u32>>,
}

impl Group {
    fn generate<'r>(
        &mut self,
        engine: &Engine,
        config: &GeneratorConfig,
        requests: impl Iterator<Item = &'r Request>,
    ) -> Result<Vec<Completion>, AgentError> {
        let mut turns = requests.map(|request| self.begin(config, request)).collect::<Result<Vec<_>, _>>()?;
        loop {
            let mut open: Vec<&mut Turn> = turns.iter_mut().filter(|turn| turn.stop.is_none()).collect();
            if open.is_empty() {
                break;
            }
            let lanes: Vec<LaneTokens<'_>> =
                open.iter().map(|turn| LaneTokens { lane: turn.lane, ids: &turn.unread }).collect();
            let is_free = config.sampler.top_p() == 1.0 && open.iter().all(|turn| turn.state.is_none());
            if is_free {
                let uniforms: Vec<f32> = open.iter().map(|turn| turn.uniform(config)).collect();
                let temperature = config.sampler.temperature();
                if let Some(draws) = engine.draw(&mut self.cache, &lanes, &uniforms, temperature)? {
                    for (turn, draw) in open.iter_mut().zip(draws) {
                        turn.unread.clear();
                        turn.say(config, draw)?;
                    }
                    continue;
                }
            }
            let logits = engine.decode(&mut self.cache, &lanes)?;
            let answer = |(turn, logits): (&mut &mut Turn, &[f32])| {
                turn.unread.clear();
                turn.sample(config, logits)?;
                turn.say_what_is_certain(config)
            };
            match engine.threads() {
                Threads::One => open.iter_mut().zip(logits.rows()).try_for_each(answer)?,
                Threads::All => {
                    let answers = open.par_iter_mut().zip(logits.par_rows()).map(answer);
                    // Of several failures, the first lane's is told, whichever came first.
                    answers.collect::<Vec<_>>().into_iter().collect::<Result<(), _>>()?;
                }
            }
        }
        Ok(turns.into_iter().map(|turn| self.finish(turn)).collect())
    }

    /// Puts the prompt behind the lane's context, if at least one token of an answer fits behind it.
    fn begin<'r>(&mut self, config: &GeneratorConfig, request: &'r Request) -> Result<Turn<'r>, AgentError> {
        let lane = request.lane - self.first_lane;
        let kept = match request.context {
            Context::Kept => self.contexts[lane].len(),
            Context::Alone => 0,
        };
        let context_len = kept + request.prompt_ids.len();
        if context_len == 0 {
            return Err(AgentError::Sampling(format!("lane `{}` has nothing to read", request.lane)));
        }
        let mut turn = Turn {
            request,
            lane,
            room: self.cache.capacity().saturating_sub(context_len),
            state: request.constraint.as_ref().map(Constraint::start),
            unread: Vec::new(),
            draws: Vec::new(),
            stop: None,
        };
        if turn.room == 0 {
            turn.stop = Some(StopReason::ContextFull);
        } else if request.max_new_tokens == 0 {
            turn.stop = Some(StopReason::Length);
        }
        if turn.room > 0 {
            self.replace(lane, kept, &request.prompt_ids);
            turn.unread.extend_from_slice(&self.contexts[lane][self.cache.len(lane)..]);
            turn.say_what_is_certain(config)?;
        }
        Ok(turn)
    }

    /// Puts `ids` in the place of all but the first `kept` tokens of a lane. What stays as it was need not be read
    /// again, but for the last token, after which the model is asked.
    fn replace(&mut self, lane: usize, kept: usize, ids: &[u32]) {
        let context = &mut self.contexts[lane];
        let same = context[kept..].iter().zip(ids).take_while(|(old, new)| old == new).count();
        let len = kept + ids.len();
        context.truncate(kept + same);
        context.extend_from_slice(&ids[same..]);
        self.cache.truncate_lane(lane, (kept + same).min(len - 1));
    }

    fn finish(&mut self, turn: Turn<'_>) -> Completion {
        self.contexts[turn.lane].extend(turn.draws.iter().map(|draw| draw.id));
        Completion {
            ids: turn.draws.iter().map(|draw| draw.id).collect(),
            log_probs: turn.draws.iter().map(|draw| draw.log_prob).collect(),
            entropy: turn.draws.iter().map(|draw| draw.entropy).collect(),
            stop: turn.stop.expect("turns are finished when they have stopped"),
        }
    }
}

/// A turn while it is being said.
struct Turn<'r> {
    request: &'r Request,
    /// Within the group.
    lane: usize,
    /// Tokens that still fit into the context.
    room: usize,
    state: Option<ConstraintState<'r>>,
    /// End of the context that the cache has not read; never empty while the turn is open.
    unread: Vec<u32>,
    draws: Vec<Draw>,
    stop: Option<StopReason>,
}

impl Turn<'_> {
    fn sample(&mut self, config: &GeneratorConfig, logits: &[f32]) -> Result<(), AgentError> {
        let allowed = self.state.map_or(Allowed::AllBut(&[]), |state| state.allowed());
        let draw = config.sampler.sample(logits, allowed, config.seed, self.coordinates())?;
        self.say(config, draw)
    }

    /// The number in [0, 1) behind the next draw.
    fn uniform(&self, config: &GeneratorConfig) -> f32 {
        uniform(config.seed, self.coordinates()) as f32
    }

    fn coordinates(&self) -> SamplingCoordinates {
        let mut at = self.request.coordinates;
        at.token += self.draws.len() as u64;
        at
    }

    /// As long as a single token is possible, the model need not be asked.
    fn say_what_is_certain(&mut self, config: &GeneratorConfig) -> Result<(), AgentError> {
        while let (None, Some(Allowed::Only([id]))) = (self.stop, self.state.map(|state| state.allowed())) {
            self.say(config, Draw::certain(*id))?;
        }
        Ok(())
    }

    fn say(&mut self, config: &GeneratorConfig, draw: Draw) -> Result<(), AgentError> {
        self.draws.push(draw);
        self.unread.push(draw.id);
        self.room -= 1;
        let mut is_complete = config.stop_ids.contains(&draw.id);
        if let Some(state) = &mut self.state {
            state.advance(draw.id)?;
            is_complete |= state.is_complete();
        }
        self.stop = if is_complete {
            Some(StopReason::EndOfTurn)
        } else if self.draws.len() == self.request.max_new_tokens {
            Some(StopReason::Length)
        } else if self.room == 0 {
            Some(StopReason::ContextFull)
        } else {
            None
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests;
