//! A few of a run's steps, timed.
//!
//! Every probe does what the run does, with the run's model on trips like the run's, first once uncounted. What is too
//! large to be tried whole is tried in part: micro-batches by their tokens, trips by their number, within a budget of
//! operations ([`BUDGET`]).

use std::collections::VecDeque;
use std::sync::Arc;

use webshop_lm::{Context, Generator, GeneratorConfig, Qwen2, Request, Sampler, SamplingCoordinates};
use webshop_agent::{OraclePolicy, Task, rollout};
use webshop_products::Seed;

use crate::model::policy::Actor;
use crate::run::clock::Clock;
use crate::config::{Config, Method};
use crate::error::Result;
use crate::model::gradient::{WAVE, accumulate};
use crate::data::task_set::{Ground, GroundGoal};
use crate::model::network::Network;
use crate::optimizer::{Optimizer, Stride};
use crate::setup::{LANES, lm_config, rollout_config};
use crate::data::trajectory::{MicroBatch, Trajectory};

/// Multiplications and additions that one probe may take: about twenty seconds of two cores.
const BUDGET: f64 = 2e12;
/// Times that a probe is repeated after the uncounted one.
const REPETITIONS: u32 = 3;

/// Seconds of `work`, the mean of several times after one that is not counted.
fn timed(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    work()?;
    let clock = Clock::resume(0.0);
    for _ in 0..REPETITIONS {
        work()?;
    }
    Ok(clock.seconds() / f64::from(REPETITIONS))
}

/// Operations of `model` for a token of a forward pass.
fn per_token(model: &Qwen2) -> f64 {
    2.0 * model.config().n_parameters() as f64
}

/// Seconds a token of the gradient on `trips`, with a reference that scores them too if there is one.
pub fn gradient(
    config: &Config,
    model: &Qwen2,
    reference: Option<&Qwen2>,
    trips: &[Trajectory],
) -> Result<f64> {
    let mut packed = MicroBatch::pack(trips, config.learner.micro_batch_tokens);
    let tokens = |packed: &[MicroBatch]| packed.iter().map(|micro| micro.ids.len()).sum::<usize>();
    // A forward pass, and twice as much backwards.
    let affordable = BUDGET / (3.0 * per_token(model) * tokens(&packed) as f64) * packed.len() as f64;
    let least = if model.is_wide() { 1 } else { WAVE.min(packed.len()) };
    packed.truncate((affordable as usize).max(least));
    let network = Network::Cpu(Arc::new(model.clone()));
    let seconds = timed(|| {
        let (_, _): (_, Vec<()>) = accumulate(&network, &packed, Sampler::PLAIN, |micro, stats| {
            if let Some(reference) = reference {
                reference.score(&micro.tokens(), &micro.positions, &micro.targets, Sampler::PLAIN)?;
            }
            Ok((stats.log_prob.sum_all()?, ()))
        })?;
        Ok(())
    })?;
    Ok(seconds / tokens(&packed) as f64)
}

/// Seconds of a step of the optimizer, which leaves the model as it is.
pub fn update(config: &Config, method: Method, model: &Qwen2) -> Result<f64> {
    let mut optimizer = Optimizer::new(method, &config.optimizer, model.learnable());
    let mut gradients: Vec<Vec<f32>> =
        model.learnable().iter().map(|(_, var)| vec![1e-3; var.elem_count()]).collect();
    let in_place = Stride { lr: 0.0, grad_clip: 0.0 };
    timed(|| optimizer.step(model.learnable(), &mut gradients, in_place).map(|_| ()))
}

/// Seconds a trip where trips are like these, made side by side.
pub fn rehearsal(config: &Config, actor: &Actor, sampler: Sampler, trips: &[Trajectory]) -> Result<f64> {
    let n_tokens: usize = trips.iter().map(|trip| trip.ids.len()).sum();
    let affordable = BUDGET / (per_token(&actor.model) * n_tokens as f64) * trips.len() as f64;
    let trips = &trips[..(affordable as usize).clamp(1, trips.len())];
    let n_lanes = LANES.min(trips.len());
    let decoder = Arc::new(actor.model.decoder()?);
    let capacity = trips.iter().map(Trajectory::longest_sequence).max().unwrap_or(0);
    // Nothing ends an answer but its length, so that each is as long as it was demonstrated.
    let generator = GeneratorConfig {
        n_lanes,
        capacity,
        sampler,
        seed: Seed(config.seed),
        stop_ids: Vec::new(),
        certainty: None,
    };
    let seconds = timed(|| {
        let mut generator = Generator::new(decoder.clone(), generator.clone())?;
        let mut waiting: VecDeque<VecDeque<Request>> = trips.iter().map(requests).collect();
        let mut lanes: Vec<VecDeque<Request>> = vec![VecDeque::new(); n_lanes];
        loop {
            let mut now = Vec::new();
            for (lane, turns) in lanes.iter_mut().enumerate() {
                if turns.is_empty() {
                    let Some(next) = waiting.pop_front() else { continue };
                    generator.forget(lane);
                    *turns = next;
                }
                now.extend(turns.pop_front().map(|turn| Request { lane, ..turn }));
            }
            if now.is_empty() {
                return Ok(());
            }
            generator.generate(&now)?;
        }
    })?;
    Ok(seconds / trips.len() as f64)
}

/// The turns of a trip: what was read and how long the answer was.
fn requests(trip: &Trajectory) -> VecDeque<Request> {
    let mut turns = VecDeque::new();
    let mut at = 0;
    while at < trip.ids.len() {
        let run = |from: usize, said: bool| {
            trip.sampled[from..].iter().take_while(|sampled| **sampled == said).count()
        };
        let (n_read, begins) = (run(at, false), trip.starts.binary_search(&at).is_ok());
        let n_said = run(at + n_read, true);
        turns.push_back(Request {
            lane: 0,
            context: if begins { Context::Alone } else { Context::Kept },
            prompt_ids: trip.ids[at..at + n_read].to_vec(),
            coordinates: SamplingCoordinates { turn: turns.len() as u64, ..Default::default() },
            constraint: None,
            max_new_tokens: n_said,
        });
        at += n_read + n_said;
    }
    turns
}

/// Seconds of drawing a batch of `n` demonstrations, of which `draw` makes some.
pub fn drawing(n: usize, draw: impl Fn() -> Result<Vec<Trajectory>>) -> Result<f64> {
    let mut drawn = 0;
    let seconds = timed(|| {
        drawn = draw()?.len();
        Ok(())
    })?;
    Ok(seconds * n as f64 / drawn.max(1) as f64)
}

/// Seconds a trip takes the shop.
pub fn shop(config: &Config, ground: &Ground) -> Result<f64> {
    let tasks = tasks(ground, config, LANES);
    let seconds = timed(|| {
        rollout(&mut OraclePolicy, &tasks, rollout_config(config), &mut |_, _| ())?;
        Ok(())
    })?;
    Ok(seconds / tasks.len() as f64)
}

/// Seconds a trip of the model as it is now.
pub fn trips_now(config: &Config, ground: &Ground, actor: &Actor) -> Result<f64> {
    let of_longest = per_token(&actor.model) * config.prompt.max_context as f64;
    let tasks = tasks(ground, config, ((BUDGET / of_longest) as usize).clamp(1, LANES));
    let (temperature, top_p) = (config.evaluation.temperature, config.evaluation.top_p);
    let lm = lm_config(config, temperature, top_p)?;
    let mut policy = actor.policy(Arc::new(actor.model.decoder()?), lm, Seed(config.seed))?;
    let clock = Clock::resume(0.0);
    rollout(&mut policy, &tasks, rollout_config(config), &mut |_, _| ())?;
    Ok(clock.seconds() / tasks.len() as f64)
}

fn tasks(ground: &Ground, config: &Config, n: usize) -> Vec<Task> {
    let task = |goal: GroundGoal| Task::new(ground.shop_of(goal).clone(), goal.at(0, 0));
    ground.sample(Seed(config.seed), n).into_iter().map(task).collect()
}
