//! Seconds: how often a run does what, times what each took when it was tried.

use webshop_lm::Sampler;
use webshop_products::Seed;

use crate::estimate::probe;
use crate::model::policy::Actor;
use crate::config::Config;
use crate::error::{Result, TrainingError};
use crate::data::copy_tasks::Exercises;
use crate::data::task_set::Ground;
use crate::loss;
use crate::loss::Judged;
use crate::setup::prompt_config;
use crate::trainer::samples_at;
use crate::data::trajectory::Trajectory;
use crate::data::demonstrations::Demonstrations;

/// Demonstrations that are looked at, unless a batch has fewer trips.
const EXAMPLES: usize = 128;

/// A part of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// What is done.
    pub name: &'static str,
    /// How often.
    pub count: u64,
    /// Seconds each time.
    pub seconds: f64,
}

/// What a run takes, in its order.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// Its parts.
    pub stages: Vec<Stage>,
}

impl Forecast {
    /// Seconds of the whole run.
    pub fn seconds(&self) -> f64 {
        self.stages.iter().map(|stage| stage.count as f64 * stage.seconds).sum()
    }
}

/// Demonstrations as the run would draw them: what its trips are taken to be like.
pub(super) fn demonstrations(config: &Config, ground: &Ground, actor: &Actor) -> Result<Vec<Trajectory>> {
    let demonstrations = Demonstrations {
        ground,
        tokenizer: &actor.tokenizer,
        chat: actor.demonstrator(config)?,
        prompt: prompt_config(config),
        max_context: config.prompt.max_context,
        think_share: config.warm_start.think_share,
        refusal_share: config.warm_start.refusal_share,
        seed: Seed(config.seed),
    };
    let batch = demonstrations.batch(0, EXAMPLES.min(config.learner.batch_episodes))?;
    if batch.is_empty() { Err(TrainingError::NothingToClone { step: 0 }) } else { Ok(batch) }
}

/// Times the parts of the run of `config` and counts them. `opening` is what it took to open all that is needed.
pub(super) fn forecast(
    config: &Config,
    ground: &Ground,
    actor: &Actor,
    trips: &[Trajectory],
    opening: f64,
) -> Result<Forecast> {
    let (model, warm, learner) = (&actor.model, &config.warm_start, &config.learner);
    let mean_tokens = |trips: &[Trajectory]| {
        trips.iter().map(|trip| trip.ids.len()).sum::<usize>() as f64 / trips.len().max(1) as f64
    };
    let mut stages = vec![Stage { name: "opening", count: 1, seconds: opening }];
    let mut stage = |name, count, seconds| stages.push(Stage { name, count, seconds });

    let n_held_out = ground.held_out(config.evaluation.split.into(), config.evaluation.episodes).len() as u64;
    let now = probe::trips_now(config, ground, actor)?;
    // A model that learns from demonstrations comes to shop as they do; another goes on as it is.
    let sampler = Sampler::new(learner.temperature as f32, learner.top_p as f32)?;
    let then = match warm.steps {
        0 => now,
        _ => probe::rehearsal(config, actor, sampler, trips)? + probe::shop(config, ground)?,
    };
    stage("trips of the first evaluation", n_held_out, now);
    if warm.all_steps() > 0 {
        let update = probe::update(config, warm.optimizer, model)?;
        // Micro-batches that are too few for all threads make them wait, so that a step is tried as it is.
        let of_batch = |batch: &[Trajectory]| -> Result<f64> {
            let batch = &batch[..batch.len().min(warm.batch_episodes)];
            let tokens = mean_tokens(batch) * warm.batch_episodes as f64;
            Ok(update + tokens * probe::gradient(config, model, None, batch)?)
        };
        if warm.exercise_steps > 0 {
            let exercises = Exercises::new(&actor.tokenizer, Seed(config.seed)).batch(0, warm.batch_episodes);
            stage("steps of exercises", warm.exercise_steps, of_batch(&exercises)?);
        }
        if warm.steps > 0 {
            let drawing = probe::drawing(warm.batch_episodes, || demonstrations(config, ground, actor))?;
            stage("steps of cloning", warm.steps, drawing + of_batch(trips)?);
        }
    }
    let n_sampled = trips.iter().map(Trajectory::n_sampled).sum::<usize>();
    let learning = learning(config, ground.training().len(), n_sampled as f64 / trips.len().max(1) as f64);
    let between = |steps: u64, every: u64| steps.saturating_sub(1).checked_div(every).unwrap_or(0);
    let evaluations = between(warm.all_steps(), config.evaluation.warm_start_every)
        + between(learning.steps, config.evaluation.every);
    stage("trips of later evaluations", n_held_out * (evaluations + 2), then);
    if learning.steps > 0 {
        if learning.value_trips > 0 {
            stage("trips for V*", learning.value_trips, then);
        }
        if config.value.forks > 0 {
            stage(
                "forked trips for V* of states, at most",
                forked_trips(config, learning.steps, trips),
                then,
            );
        }
        let update = probe::update(config, learner.optimizer, model)?;
        let token = probe::gradient(config, model, Some(model), trips)?;
        let (batch, epochs) = (learner.batch_episodes as f64, learner.epochs as f64);
        let passes = epochs * batch * (1.0 + learner.demonstration_share) * mean_tokens(trips) * token;
        let updates = epochs * learner.minibatches as f64 * update;
        stage("learner steps", learning.steps, batch * then + passes + updates);
    }
    Ok(Forecast { stages })
}

/// How much the learner does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Learning {
    steps: u64,
    /// Trips of the reference for V*.
    value_trips: u64,
}

/// What the learner does until its steps are done or its tokens spent, with `tokens` written a trip. Stages of a
/// curriculum are not foreseen: their goals are counted as if they were the same.
fn learning(config: &Config, n_goals: usize, tokens: f64) -> Learning {
    let (value, learner) = (&config.value, &config.learner);
    // Goals are chosen by the spread of their rewards among all.
    let values_all = value.keep_spread < 1.0;
    let values_some = loss::learner(config).judged() == Judged::ByValue;
    let pool = value.goals.min(n_goals) as u64;
    let limit = if learner.max_tokens == 0 { f64::INFINITY } else { learner.max_tokens as f64 };
    let (mut done, mut valued) = (Learning::default(), 0);
    let spent =
        |done: &Learning| (done.value_trips + done.steps * learner.batch_episodes as u64) as f64 * tokens;
    while done.steps < learner.steps && spent(&done) < limit {
        if value.refresh > 0 && done.steps.is_multiple_of(value.refresh) {
            valued = 0;
        }
        let new = match (values_all, values_some) {
            (true, _) => pool - valued,
            (false, true) => (pool - valued).min(learner.goals_per_step() as u64),
            (false, false) => 0,
        };
        valued += new;
        done.value_trips += new * samples_at(value, done.steps) as u64;
        done.steps += 1;
    }
    done
}

/// Trips of the reference from states on the way, at most: as if every turn of these trips but the last led to a state of
/// unknown V*, and each fork were a whole trip.
fn forked_trips(config: &Config, steps: u64, trips: &[Trajectory]) -> u64 {
    let answers = |trip: &Trajectory| trip.sampled.windows(2).filter(|pair| *pair == [false, true]).count();
    let states: usize = trips.iter().map(|trip| answers(trip).saturating_sub(1)).sum();
    let mean = states as f64 / trips.len().max(1) as f64;
    let n_trips = steps * config.learner.batch_episodes as u64;
    (mean * (n_trips * config.value.forks as u64) as f64).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forked_trips_are_counted_by_turns() {
        let keys = ["value.credit=state", "value.forks=2", "learner.batch_episodes=4"];
        let config = Config::resolve("test", "", &keys.map(String::from)).unwrap();
        let trip = |n_turns: usize| {
            let mut trip = Trajectory::new();
            for _ in 0..n_turns {
                trip.push_observation(&[1, 2]);
                trip.push_utterance(&[3, 4], &[0.0; 2]);
            }
            trip
        };
        // Of four turns three lead on, of one none: 1.5 states a trip, for 3 · 4 trips and two forks each.
        assert_eq!(forked_trips(&config, 3, &[trip(4), trip(1)]), 36);
    }

    #[test]
    fn trips_for_values_are_those_of_the_goals_that_are_met() {
        let count = |keys: &[&str]| {
            let keys: Vec<String> = keys.iter().map(|key| key.to_string()).collect();
            let tiny = "value = { goals = 50, samples = 4 }\nlearner = { steps = 10, batch_episodes = 8 }";
            let done = learning(&Config::resolve("test", tiny, &keys).unwrap(), 1000, 20.0);
            (done.steps, done.value_trips)
        };
        // 80 places for 50 goals; 40 places; 2 goals a step, twice for two references; a loss without V*.
        assert_eq!(count(&[]), (10, 50 * 4));
        assert_eq!(count(&["learner.steps=5"]), (5, 40 * 4));
        assert_eq!(count(&["group_size=4", "value.refresh=5"]), (10, 2 * 10 * 4));
        assert_eq!(count(&["learner.steps=5", "keep_spread=0.5"]), (5, 50 * 4));
        assert_eq!(count(&["loss=grpo", "group_size=4"]), (10, 0));
        // 40 trips a step; the third exceeds 1,700 tokens at 20 a trip. 8 trips a step without V*: 160 tokens.
        assert_eq!(count(&["max_tokens=1700"]), (3, 3 * 8 * 4));
        assert_eq!(count(&["max_tokens=800"]), (1, 8 * 4));
        assert_eq!(count(&["max_tokens=801"]), (2, 2 * 8 * 4));
        assert_eq!(count(&["loss=grpo", "group_size=4", "max_tokens=1000"]), (7, 0));
        // N falls to its half from step 30 on: 30 goals by then, 20 after.
        let falls = ["adaptive=true", "learner.steps=60", "learner.batch_episodes=1", "value.samples=16"];
        assert_eq!(count(&falls), (60, 30 * 16 + 20 * 8));
    }
}
