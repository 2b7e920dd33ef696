//! The sampling loop of lanes that are decoded together.

use rayon::prelude::*;

use crate::engine::{Engine, EngineCache};
use crate::error::LmError;
use crate::generation::constraint::{Allowed, Constraint, ConstraintState};
use crate::generation::request::{Completion, Context, GeneratorConfig, Request, StopReason};
use crate::generation::sampler::{Draw, SamplingCoordinates, uniform};
use crate::qwen2::LaneTokens;
use webshop_kernels::cpu::threads::Threads;

/// Lanes that are decoded together.
#[derive(Debug)]
pub(super) struct Group {
    /// The generator's index of the first lane of the group.
    pub(super) first_lane: usize,
    pub(super) cache: EngineCache,
    /// All tokens of each lane; the cache holds a prefix of them.
    pub(super) contexts: Vec<Vec<u32>>,
}

impl Group {
    /// Generates one completion for each request to this group, in their order.
    pub(super) fn generate<'r>(
        &mut self,
        engine: &Engine,
        config: &GeneratorConfig,
        requests: impl Iterator<Item = &'r Request>,
    ) -> Result<Vec<Completion>, LmError> {
        let mut turns = requests.map(|request| self.begin(config, request)).collect::<Result<Vec<_>, _>>()?;
        loop {
            let mut open: Vec<&mut Turn> = turns.iter_mut().filter(|turn| turn.stop.is_none()).collect();
            if open.is_empty() {
                break;
            }
            let lanes: Vec<LaneTokens<'_>> =
                open.iter().map(|turn| LaneTokens { lane: turn.lane, ids: &turn.unread }).collect();
            let is_free = config.sampler.top_p() == 1.0
                && config.certainty.is_none()
                && open.iter().all(|turn| turn.state.is_none());
            if is_free {
                let uniforms: Vec<f32> = open.iter().map(|turn| turn.uniform(config)).collect();
                let temperature = config.sampler.temperature();
                if let Some(draws) = engine.draw(&mut self.cache, &lanes, &uniforms, temperature)? {
                    for (turn, draw) in open.iter_mut().zip(draws) {
                        turn.unread.clear();
                        turn.push(config, draw)?;
                    }
                    continue;
                }
            }
            let logits = engine.decode(&mut self.cache, &lanes)?;
            let advance = |(turn, logits): (&mut &mut Turn, &[f32])| {
                turn.unread.clear();
                turn.sample(config, logits)?;
                turn.push_forced(config)
            };
            match engine.threads() {
                Threads::One => open.iter_mut().zip(logits.rows()).try_for_each(advance)?,
                Threads::All => {
                    let results = open.par_iter_mut().zip(logits.par_rows()).map(advance);
                    // Of several errors, that of the first lane is returned, independent of the thread order.
                    results.collect::<Vec<_>>().into_iter().collect::<Result<(), _>>()?;
                }
            }
        }
        Ok(turns.into_iter().map(|turn| self.finish(turn)).collect())
    }

    /// Adds the prompt to the lane's context, if at least one more token fits.
    fn begin<'r>(&mut self, config: &GeneratorConfig, request: &'r Request) -> Result<Turn<'r>, LmError> {
        let lane = request.lane - self.first_lane;
        let kept = match request.context {
            Context::Continue => self.contexts[lane].len(),
            Context::Fresh => 0,
        };
        let context_len = kept + request.prompt_ids.len();
        if context_len == 0 {
            return Err(LmError::Sampling(format!("lane `{}` has an empty context", request.lane)));
        }
        let mut turn = Turn {
            request,
            lane,
            room: self.cache.capacity().saturating_sub(context_len),
            state: request.constraint.as_ref().map(Constraint::start),
            unread: Vec::new(),
            draws: Vec::new(),
            certainty: Vec::new(),
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
            turn.push_forced(config)?;
        }
        Ok(turn)
    }

    /// Replaces all but the first `kept` tokens of a lane by `ids`. The cache keeps the common prefix, except
    /// the last token of the context: the model must run on it to give the next logits.
    pub(super) fn replace(&mut self, lane: usize, kept: usize, ids: &[u32]) {
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
            certainty: turn.certainty,
            stop: turn.stop.expect("turns are finished when they have stopped"),
        }
    }
}

/// A turn while it is generated.
struct Turn<'r> {
    request: &'r Request,
    /// Index within the group.
    lane: usize,
    /// Number of tokens for which the context has room.
    room: usize,
    state: Option<ConstraintState<'r>>,
    /// Tokens of the context that are not in the cache yet; not empty before the turn ends.
    unread: Vec<u32>,
    draws: Vec<Draw>,
    /// Self-certainty of each draw, if recorded.
    certainty: Vec<f64>,
    stop: Option<StopReason>,
}

impl Turn<'_> {
    fn sample(&mut self, config: &GeneratorConfig, logits: &[f32]) -> Result<(), LmError> {
        let allowed = self.state.map_or(Allowed::All, |state| state.allowed());
        let draw = config.sampler.sample(logits, allowed, config.seed, self.coordinates())?;
        self.certainty.extend(config.certainty.map(|measure| measure.of_logits(logits)).transpose()?);
        self.push(config, draw)
    }

    /// The random number in [0, 1) of the next draw, rounded down to a multiple of 2⁻²⁴, so that it stays below 1.
    fn uniform(&self, config: &GeneratorConfig) -> f32 {
        let steps = f64::from(1 << 24);
        ((uniform(config.seed, self.coordinates()) * steps).floor() / steps) as f32
    }

    fn coordinates(&self) -> SamplingCoordinates {
        let mut at = self.request.coordinates;
        at.token += self.draws.len() as u64;
        at
    }

    /// Appends tokens as long as the constraint allows a single one.
    fn push_forced(&mut self, config: &GeneratorConfig) -> Result<(), LmError> {
        while let (None, Some(Allowed::Only([id]))) = (self.stop, self.state.map(|state| state.allowed())) {
            self.certainty.extend(config.certainty.map(|_| 0.0));
            self.push(config, Draw::certain(*id))?;
        }
        Ok(())
    }

    fn push(&mut self, config: &GeneratorConfig, draw: Draw) -> Result<(), LmError> {
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
