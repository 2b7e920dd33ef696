//! The reference: who it is, what it could expect of a goal, and which goals are worth learning on.
//!
//! V* of a goal is estimated when the goal is first drawn, from rollouts at coordinates of their own, so that it is the
//! same number whenever that is. `value.json` keeps what was estimated; a run that is resumed, or another that shares its
//! folder of values, finds it there, and counts its tokens and seconds as if it had written them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rand::Rng;
use serde::{Deserialize, Serialize};
use webshop_agent::{Episode, Task};
use webshop_lm::Qwen2;
use webshop_products::Purpose;

use crate::trainer::{Trainer, VALUE_STEP, kind};
use crate::run::folder::step_name;
use crate::config::ValueConfig;
use crate::run::atomic::{read_json, remove_if_there, write_json};
use crate::error::Result;
use crate::data::task_set::GroundGoal;
use crate::loss::ScoredTurn;
use crate::metrics::{Metric, Record};
use crate::model::network::Network;
use crate::value::{GoalValue, ReferenceTrip, ValueKey, ValueTable};

/// Folder of the first reference in the run folder.
const REFERENCE: &str = "reference";
/// From which learner step on N is half, and a quarter, of what it was, where it falls; and the least it falls to.
const FEWER_SAMPLES: [(u64, usize, usize); 2] = [(100, 4, 2), (30, 2, 4)];

/// The reference and what is known of it.
pub(super) struct Guide {
    pub(super) network: Network,
    /// The learner step at which it was the policy.
    pub(super) since: u64,
    /// The stage of the curriculum whose goals these are.
    stage: usize,
    /// Goals to learn on, by shop and goal.
    pool: Vec<GroundGoal>,
    /// V* of the goals that were drawn.
    pub(super) values: ValueTable,
}

/// What V* of some goals costs whoever asks for it first.
#[derive(Clone, Copy, Default)]
#[must_use]
pub(super) struct Cost {
    /// Tokens the reference wrote for it, in whichever run that was.
    tokens: u64,
    /// Seconds that other runs spent on it; those of this one its clock has seen.
    seconds: f64,
}

/// How long the goals in a shared folder of values took.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Effort {
    goals: u64,
    seconds: f64,
}

impl Effort {
    /// Of so many goals, at the mean of all.
    fn of(self, n_goals: usize) -> f64 {
        self.seconds * n_goals as f64 / self.goals.max(1) as f64
    }
}

impl Guide {
    /// The goals of a learner step, shuffled anew each time all were visited.
    pub(super) fn goals_of(&self, trainer: &Trainer<'_>, step: u64) -> Vec<GroundGoal> {
        let n = self.pool.len() as u64;
        let per_step = trainer.config.learner.goals_per_step() as u64;
        let order = |epoch: u64| {
            let mut rng = trainer.seed().rng(Purpose::GoalSampling, &[1 + epoch]);
            let mut order: Vec<usize> = (0..self.pool.len()).collect();
            for i in (1..order.len()).rev() {
                order.swap(i, rng.random_range(0..=i as u64) as usize);
            }
            order
        };
        let draws = step * per_step..(step + 1) * per_step;
        let epochs = draws.start / n..=(draws.end - 1) / n;
        let orders: Vec<Vec<usize>> = epochs.clone().map(order).collect();
        let goal = |draw: u64| {
            let order = &orders[(draw / n - epochs.start()) as usize];
            self.pool[order[(draw % n) as usize]]
        };
        draws.map(goal).collect()
    }

    /// The reference, if it is the first one.
    pub(super) fn first_reference(&self) -> Option<&Network> {
        (self.since == 0).then_some(&self.network)
    }

    /// Learner steps since the reference was the policy.
    pub(super) fn age(&self, step: u64) -> u64 {
        step - self.since
    }

    /// V* of a goal that was drawn.
    pub(super) fn value(&self, goal: GroundGoal) -> Option<&GoalValue> {
        self.values.get(goal.shop, goal.goal.0)
    }

    /// Records what is known of the goals drawn so far.
    pub(super) fn record(&self, record: &mut Record) {
        record
            .set(Metric::ValueMean, self.values.mean_v_star())
            .set(Metric::ValueShareWithoutSuccess, self.values.share_without_success())
            .set(Metric::ValueBias, self.values.mean_bias());
    }
}

/// N of a learner step, as founded: the first goals are the ones that are met again most often.
pub(crate) fn samples_at(config: &ValueConfig, step: u64) -> usize {
    let fewer = FEWER_SAMPLES.into_iter().find(|(from, ..)| config.adaptive && step >= *from);
    fewer.map_or(config.samples, |(_, divisor, least)| {
        (config.samples / divisor).max(least).min(config.samples)
    })
}

impl Trainer<'_> {
    /// The reference of learner step `step` and what was known of it then.
    pub(super) fn guide_at(&mut self, step: u64) -> Result<Guide> {
        let since = self.last_refresh(step);
        let folder = self.reference_folder(since);
        if step == since {
            self.save_model(&folder)?;
        }
        let model = self.actor.frozen(&folder)?;
        let key = self.value_key(&model, since)?;
        let beta1 = self.config.value.beta1;
        let pool = if self.practises_steps() {
            self.pool_of_steps()?
        } else {
            let mut pool = self.stage.sample(self.seed(), self.config.value.goals);
            pool.sort();
            pool
        };
        let stage = self.state.stage;
        let network = Network::new(&model, self.compute)?;
        let mut guide = Guide { network, since, stage, pool, values: ValueTable::new(key, beta1) };
        let began = since.max(self.state.stage_since);
        let cost = self.keep_widest(&mut guide)?;
        if step == began {
            self.pay(cost);
            self.state.forks.forget_rewards();
        }
        if self.wants_values() {
            for earlier in began..step {
                let goals = guide.goals_of(self, earlier);
                let _paid_before = self.estimate(&mut guide, &goals, earlier)?;
            }
        }
        Ok(guide)
    }

    /// Takes it as spent.
    pub(super) fn pay(&mut self, cost: Cost) {
        self.state.tokens += cost.tokens;
        self.clock.charge(cost.seconds);
    }

    /// Whether this is the guide of learner step `step`.
    pub(super) fn is_guided_by(&self, guide: &Guide, step: u64) -> bool {
        (guide.since, guide.stage) == (self.last_refresh(step), self.state.stage)
    }

    /// The learner step at which the reference of `step` was the policy.
    fn last_refresh(&self, step: u64) -> u64 {
        let refresh = self.config.value.refresh;
        step.checked_div(refresh).map_or(0, |times| times * refresh)
    }

    /// Removes the references that no run resumed from here on will ask for; the first is kept.
    pub(super) fn forget_references(&self) -> Result<()> {
        let refresh = self.config.value.refresh;
        let learner_step = self.state.step.saturating_sub(self.first_learner_step());
        // That of the step before may be asked for until the next one has begun.
        let needed = self.last_refresh(learner_step.saturating_sub(1));
        for since in (1..needed).filter(|since| since.is_multiple_of(refresh)).rev() {
            let folder = self.reference_folder(since);
            if !folder.exists() {
                break;
            }
            remove_if_there(&folder)?;
        }
        Ok(())
    }

    /// The policy as it was before the first learner step.
    pub(super) fn first_reference(&self) -> Result<Network> {
        Network::new(&self.actor.frozen(&self.reference_folder(0))?, self.compute)
    }

    fn reference_folder(&self, since: u64) -> PathBuf {
        match since {
            0 => self.run.root().join(REFERENCE),
            _ => self.run.root().join(format!("{REFERENCE}-{}", step_name(since))),
        }
    }

    fn value_key(&self, reference: &Qwen2, since: u64) -> Result<ValueKey> {
        let Self { config, .. } = self;
        let (value, learner) = (&config.value, &config.learner);
        let kind = kind(self.compute);
        let steps = if self.practises_steps() { format!(", {:?}", config.shop_r1) } else { String::new() };
        let conditions = format!(
            "seed {}, since {since}, N {}{}, reward {:?} less {}, temperature {}, top_p {}, {:?}, at most {} actions{steps}{}{kind}",
            config.seed,
            value.samples,
            if value.adaptive { " at first" } else { "" },
            learner.reward,
            config.malformed_penalty(),
            learner.temperature,
            learner.top_p,
            config.prompt,
            config.run.max_steps,
            if kind.is_empty() { "" } else { ", on " },
        );
        Ok(ValueKey {
            reference: reference.fingerprint()?,
            prompt: self.actor.prompt_version()?,
            ground: self.stage.fingerprint(),
            conditions,
        })
    }

    /// Keeps the share of the goals on which the reference's trips differ most, where that is asked for.
    fn keep_widest(&mut self, guide: &mut Guide) -> Result<Cost> {
        let share = self.config.value.keep_spread;
        if share == 1.0 {
            return Ok(Cost::default());
        }
        let pool = guide.pool.clone();
        let cost = self.estimate(guide, &pool, 0)?;
        let spread = |goal: &GroundGoal| guide.value(*goal).map_or(0.0, GoalValue::spread);
        let mut by_spread: Vec<(f64, GroundGoal)> = pool.iter().map(|goal| (spread(goal), *goal)).collect();
        by_spread.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        by_spread.truncate(((pool.len() as f64 * share).ceil() as usize).max(1));
        guide.pool = by_spread.into_iter().map(|(_, goal)| goal).collect();
        guide.pool.sort();
        Ok(cost)
    }

    /// Sees to it that V* of `goals`, drawn at `step`, is known.
    pub(super) fn estimate(&mut self, guide: &mut Guide, goals: &[GroundGoal], step: u64) -> Result<Cost> {
        let beta1 = self.config.value.beta1;
        let new: BTreeSet<GroundGoal> =
            goals.iter().copied().filter(|goal| guide.value(*goal).is_none()).collect();
        if new.is_empty() {
            return Ok(Cost::default());
        }
        let path = self.values_path(&guide.values);
        let is_shared = path != self.run.value();
        let effort_path = path.with_extension("seconds.json");
        let mut effort: Effort =
            if effort_path.exists() { read_json(&effort_path)? } else { Effort::default() };
        let mut kept = ValueTable::load(&path, guide.values.key(), beta1)?;
        let known = |goal: &GroundGoal| kept.get(goal.shop, goal.goal.0).is_some();
        let missing: Vec<GroundGoal> = new.iter().copied().filter(|goal| !known(goal)).collect();
        let seconds = effort.of(new.len() - missing.len());
        if !missing.is_empty() {
            let began = self.clock.seconds();
            let n_samples = samples_at(&self.config.value, step);
            let trips = self.reference_trips(guide, &missing, n_samples)?;
            for (goal, trips) in missing.iter().zip(trips).filter(|(_, trips)| !trips.is_empty()) {
                kept.insert(goal.shop, goal.goal.0, &trips);
            }
            kept.save(&path)?;
            if is_shared {
                effort.goals += missing.len() as u64;
                effort.seconds += self.clock.seconds() - began;
                write_json(&effort_path, &effort)?;
            }
        }
        let mut tokens = 0;
        for value in new.iter().filter_map(|goal| kept.get(goal.shop, goal.goal.0)) {
            tokens += value.n_tokens;
            guide.values.put(value.clone());
        }
        if is_shared {
            guide.values.save(&self.run.value())?;
        }
        Ok(Cost { tokens, seconds })
    }

    /// The file in which values of these conditions are kept from run to run, or the run's own.
    fn values_path(&self, values: &ValueTable) -> PathBuf {
        match &self.config.value.cache {
            Some(folder) => folder.join(format!("value-{}.json", &values.key().digest()[..16])),
            None => self.run.value(),
        }
    }

    /// What the reference makes of each of `goals`, so many times; nothing of those whose steps are practised and that
    /// have none.
    fn reference_trips(
        &self,
        guide: &Guide,
        goals: &[GroundGoal],
        n_samples: usize,
    ) -> Result<Vec<Vec<ReferenceTrip>>> {
        let at = VALUE_STEP + guide.since;
        self.observer.begin("V*", (goals.len() * n_samples) as u64, 0);
        let trips = if self.practises_steps() {
            self.reference_answers(guide, goals, (at, n_samples))?
        } else {
            let of_goal = |goal: &GroundGoal| {
                let goal = *goal;
                (0..n_samples as u64).map(move |sample| self.task(goal, at, sample))
            };
            let tasks: Vec<Task> = goals.iter().flat_map(of_goal).collect();
            let episodes = self.play(&guide.network, &tasks, &|| self.observer.advance(1, ""))?;
            let of_goals = episodes.chunks(n_samples);
            of_goals.map(|trips| trips.iter().map(|trip| self.reference_trip(trip)).collect()).collect()
        };
        self.observer.end();
        Ok(trips)
    }

    fn reference_trip(&self, episode: &Episode) -> ReferenceTrip {
        let n_between = episode.turns.len().saturating_sub(1);
        ReferenceTrip {
            reward: self.reward(episode),
            n_tokens: episode.n_sampled_tokens(),
            states: episode
                .turns
                .iter()
                .take(n_between)
                .map(|turn| turn.after.observation.number())
                .collect(),
        }
    }
}

/// The turns of a trip that have tokens, with V* of what they led to where `v_state` knows it.
pub(super) fn scored_turns(episode: &Episode, v_state: impl Fn(u64) -> Option<f64>) -> Vec<ScoredTurn> {
    let seen = std::iter::once(episode.start).chain(episode.turns.iter().map(|turn| turn.after));
    let said = episode.turns.iter().zip(seen).filter_map(|(turn, before)| {
        let n_tokens = turn.tokens.as_ref()?.completion.ids.len();
        let state = before.observation.number();
        Some(ScoredTurn { n_tokens, state, v_next: v_state(turn.after.observation.number()) })
    });
    said.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_founding_schedule_takes_fewer_samples_later() {
        let config = |samples, adaptive| ValueConfig { samples, adaptive, ..ValueConfig::default() };
        let at = |samples, step| samples_at(&config(samples, true), step);
        assert_eq!([at(16, 0), at(16, 29), at(16, 30), at(16, 99), at(16, 100)], [16, 16, 8, 8, 4]);
        assert_eq!([at(8, 30), at(8, 100), at(4, 30), at(4, 100), at(1, 100)], [4, 2, 4, 2, 1]);
        assert_eq!(samples_at(&config(16, false), 500), 16);
    }
}
