//! The thread that owns the weights: it generates many completions together.
//!
//! Each running [`Job`] has a lane of the KV cache. In every step all lanes take their next tokens together: a part of
//! the prompt, or the token drawn last. A lane that is done takes the next waiting job at once, while the others go
//! on. What a lane draws depends on its own tokens, sampler and seed only.
//!
//! A lane keeps its tokens after a job, and a job gets the free lane that shares the longest beginning with its
//! prompt, so that the next turn of a chat reads only what is new. A job that scores its prompt reads all of it.

use std::collections::VecDeque;

use tokio::sync::mpsc;
use webshop_lm::{
    Allowed, Engine, EngineCache, LaneTokens, LmError, Sampler, SamplingCoordinates, StopReason,
};
use webshop_products::Seed;

use super::place::Place;

/// The most tokens of a prompt that a lane reads in one step, so that a long prompt does not hold up the others.
const PROMPT_PART: usize = 256;

/// The same of a prompt that is scored, each token of which has logits.
const SCORED_PART: usize = 64;

/// A completion to generate.
#[derive(Debug)]
pub(super) struct Job {
    /// Not empty, below the vocabulary's size, and within the context with one more token, or without it if
    /// `max_tokens` is 0.
    pub(super) prompt_ids: Vec<u32>,
    pub(super) max_tokens: usize,
    pub(super) sampler: Sampler,
    pub(super) seed: Seed,
    /// The number of most probable tokens to report; `None` reports no log-probabilities.
    pub(super) n_top: Option<usize>,
    /// Whether the tokens of the prompt are reported too.
    pub(super) scores_prompt: bool,
    /// Takes what is generated. The job ends when nobody listens.
    pub(super) events: mpsc::UnboundedSender<Event>,
}

/// What happens to a job.
#[derive(Debug)]
pub(super) enum Event {
    /// A token of the prompt; all of them come before the first of the completion.
    Prompt(Scored),
    /// A token of the completion.
    Token(Scored),
    /// The end.
    End(StopReason),
    /// The end, because the model failed.
    GenerationError(String),
}

/// A token with its log-probability.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scored {
    pub(crate) id: u32,
    /// In nats; minus infinity if the sampler never draws the token. `None` for the first token of a prompt, and if
    /// no log-probabilities are reported.
    pub(crate) log_prob: Option<f32>,
    /// The most probable tokens at this place, in descending order.
    pub(crate) top: Vec<(u32, f32)>,
}

/// The lanes and the weights.
pub(super) struct Batch {
    engine: Engine,
    cache: EngineCache,
    stop_ids: Vec<u32>,
    lanes: Vec<Lane>,
}

/// A lane of the cache.
#[derive(Debug, Default)]
struct Lane {
    /// The prompt and what was drawn. The cache holds a prefix of them.
    tokens: Vec<u32>,
    job: Option<Job>,
}

/// The new tokens of a lane in one step.
struct Part {
    lane: usize,
    /// The number of tokens in the cache before.
    start: usize,
    ids: Vec<u32>,
}

impl Batch {
    pub(super) fn new(
        engine: Engine,
        n_lanes: usize,
        max_context: usize,
        stop_ids: Vec<u32>,
    ) -> Result<Batch, LmError> {
        let n_lanes = n_lanes.max(1);
        let cache = engine.cache(n_lanes, max_context)?;
        let lanes = (0..n_lanes).map(|_| Lane::default()).collect();
        Ok(Batch { engine, cache, stop_ids, lanes })
    }

    /// The most tokens of a prompt and its completion together.
    pub(super) fn capacity(&self) -> usize {
        self.cache.capacity()
    }

    /// Runs jobs until nobody can send any, and all have ended.
    pub(super) fn run(mut self, mut jobs: mpsc::UnboundedReceiver<(Job, Place)>) {
        let mut waiting = VecDeque::new();
        loop {
            if waiting.is_empty() && self.lanes.iter().all(|lane| lane.job.is_none()) {
                match jobs.blocking_recv() {
                    Some(job) => waiting.push_back(job),
                    None => return,
                }
            }
            // Without senders the other jobs go on.
            waiting.extend(std::iter::from_fn(|| jobs.try_recv().ok()));
            // Nobody listens to a job whose client has gone.
            waiting.retain(|(job, _)| !job.events.is_closed());
            while self.lanes.iter().any(|lane| lane.job.is_none()) {
                let Some((job, place)) = waiting.pop_front() else { break };
                drop(place);
                self.admit(job);
            }
            self.step();
        }
    }

    /// Gives a job the free lane that shares the longest beginning with its prompt, the first of equal ones.
    fn admit(&mut self, job: Job) {
        if job.max_tokens == 0 && !job.scores_prompt {
            // A client that has gone needs no end.
            let _ = job.events.send(Event::End(StopReason::Length));
            return;
        }
        let prompt = &job.prompt_ids;
        let shared = |(lane_idx, lane): (usize, &Lane)| {
            let cached = &lane.tokens[..self.cache.len(lane_idx)];
            // The model runs on the last token at least, which gives the first logits.
            let pairs = cached.iter().zip(&prompt[..prompt.len() - 1]);
            (lane_idx, pairs.take_while(|(cached, new)| cached == new).count())
        };
        let free = self.lanes.iter().enumerate().filter(|(_, lane)| lane.job.is_none());
        let best = free.map(shared).reduce(|best, next| if next.1 > best.1 { next } else { best });
        let (lane_idx, n_shared) = best.expect("a job is taken when a lane is free");
        self.cache.truncate_lane(lane_idx, if job.scores_prompt { 0 } else { n_shared });
        let lane = &mut self.lanes[lane_idx];
        lane.tokens.clone_from(&job.prompt_ids);
        if job.scores_prompt {
            // If nobody listens, the first step ends the job.
            let _ = job.events.send(Event::Prompt(Scored::unknown(job.prompt_ids[0])));
        }
        lane.job = Some(job);
    }

    /// Reads the next tokens of all lanes, and draws where all are read.
    fn step(&mut self) {
        let (scored, read): (Vec<Part>, Vec<Part>) = self.parts().into_iter().partition(|part| {
            let job = self.lanes[part.lane].job.as_ref().expect("parts are of lanes with jobs");
            job.scores_prompt && part.start < job.prompt_ids.len()
        });
        if !read.is_empty() {
            match self.engine.decode(&mut self.cache, &tokens_of(&read)) {
                Ok(logits) => {
                    for (part, logits) in read.iter().zip(logits.rows()) {
                        self.advance(part, &[logits]);
                    }
                }
                Err(error) => self.fail(&read, &error),
            }
        }
        for part in scored {
            match self.engine.decode_each(&mut self.cache, &tokens_of(std::slice::from_ref(&part))) {
                Ok(logits) => self.advance(&part, &logits.rows().collect::<Vec<_>>()),
                Err(error) => self.fail(&[part], &error),
            }
        }
    }

    /// The tokens that each lane takes in the next step.
    fn parts(&self) -> Vec<Part> {
        let running =
            self.lanes.iter().enumerate().filter_map(|(idx, lane)| Some((idx, lane, lane.job.as_ref()?)));
        let part = |(lane_idx, lane, job): (usize, &Lane, &Job)| {
            let start = self.cache.len(lane_idx);
            let n_tokens = if job.scores_prompt { SCORED_PART } else { PROMPT_PART };
            let end = lane.tokens.len().min(start + n_tokens);
            Part { lane: lane_idx, start, ids: lane.tokens[start..end].to_vec() }
        };
        running.map(part).collect()
    }

    /// Reports and draws by the logits after the tokens of a part, or after its last token only.
    fn advance(&mut self, part: &Part, rows: &[&[f32]]) {
        let lane = &mut self.lanes[part.lane];
        let outcome = lane.advance(part.start + part.ids.len(), rows, &self.stop_ids, self.cache.capacity());
        match outcome {
            Ok(Progress::GoesOn) => {}
            Ok(Progress::Ended) => lane.job = None,
            Err(error) => self.fail(std::slice::from_ref(part), &error),
        }
    }

    /// Ends jobs whose lanes failed, and empties the lanes.
    fn fail(&mut self, parts: &[Part], error: &LmError) {
        tracing::error!("the model failed: {error}");
        for part in parts {
            self.cache.truncate_lane(part.lane, 0);
            let lane = std::mem::take(&mut self.lanes[part.lane]);
            // A client that has gone needs no error.
            let _ = lane.job.map(|job| job.events.send(Event::GenerationError(error.to_string())));
        }
    }
}

fn tokens_of(parts: &[Part]) -> Vec<LaneTokens<'_>> {
    parts.iter().map(|part| LaneTokens { lane: part.lane, ids: &part.ids }).collect()
}

/// Whether a lane has more to do.
enum Progress {
    GoesOn,
    Ended,
}

impl Lane {
    /// Reports what `rows` say, the logits after the last of `n_read` tokens and after those before it. Draws a token
    /// if all are read.
    fn advance(
        &mut self,
        n_read: usize,
        rows: &[&[f32]],
        stop_ids: &[u32],
        capacity: usize,
    ) -> Result<Progress, LmError> {
        let job = self.job.as_ref().expect("only lanes with a job read");
        // If nobody listens, there is nothing to do.
        let report = |event| if job.events.send(event).is_ok() { Progress::GoesOn } else { Progress::Ended };
        if job.events.is_closed() {
            return Ok(Progress::Ended);
        }
        let first = n_read - rows.len();
        let targets = rows.iter().zip(&self.tokens[first + 1..]);
        // Of a prompt that is not scored, only the last token has logits, and no token follows it.
        for (logits, target) in targets.filter(|_| job.scores_prompt) {
            report(Event::Prompt(job.scored(logits, *target)?));
        }
        if n_read < self.tokens.len() {
            return Ok(Progress::GoesOn);
        }
        let n_drawn = n_read - job.prompt_ids.len();
        if job.max_tokens == 0 {
            report(Event::End(StopReason::Length));
            return Ok(Progress::Ended);
        }
        let last = rows.last().expect("there are logits after the last token");
        let drawn = job.draw(last, n_drawn)?;
        let id = drawn.id;
        let progress = report(Event::Token(drawn));
        self.tokens.push(id);
        let stop = if stop_ids.contains(&id) {
            StopReason::EndOfTurn
        } else if n_drawn + 1 == job.max_tokens {
            StopReason::Length
        } else if self.tokens.len() == capacity {
            StopReason::ContextFull
        } else {
            return Ok(progress);
        };
        report(Event::End(stop));
        Ok(Progress::Ended)
    }
}

impl Job {
    /// Draws the completion's token number `n_drawn`, from 0.
    fn draw(&self, logits: &[f32], n_drawn: usize) -> Result<Scored, LmError> {
        let at = SamplingCoordinates { token: n_drawn as u64, ..SamplingCoordinates::default() };
        let draw = self.sampler.sample(logits, Allowed::All, self.seed, at)?;
        match self.n_top {
            None => Ok(Scored::unknown(draw.id)),
            Some(_) => self.scored(logits, draw.id),
        }
    }

    /// A token under the sampled distribution, or under the model's own if that is greedy.
    fn scored(&self, logits: &[f32], id: u32) -> Result<Scored, LmError> {
        let sampler = if self.sampler.temperature() == 0.0 { Sampler::UNTEMPERED } else { self.sampler };
        let log_prob = sampler.log_prob(logits, Allowed::All, id)?;
        let top = match self.n_top {
            None | Some(0) => Vec::new(),
            Some(n) => sampler.top(logits, n)?,
        };
        Ok(Scored { id, log_prob: Some(log_prob), top })
    }
}

impl Scored {
    /// A token without log-probability.
    fn unknown(id: u32) -> Scored {
        Scored { id, log_prob: None, top: Vec::new() }
    }
}
