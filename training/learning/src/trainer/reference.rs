//! The reference policy: its weights, the goals of RL, and V* of the goals drawn so far.
//!
//! V* of a goal is estimated when RL draws the goal for the first time, from rollouts with coordinates of
//! their own, so its value does not depend on when that happens, unless `value.adaptive` changes the number of rollouts. A resumed run reads the values back
//! (`value_cache`) and is charged the same tokens; with a cache of several runs (`value.cache`) it is charged their seconds, too.

use std::collections::BTreeSet;

use rand::Rng;
use webshop_lm::Qwen2;

use crate::config::{Config, RlMode, ValueConfig};
use crate::data::task_set::TaskId;
use crate::error::Result;
use crate::metrics::{Metric, Record};
use crate::model::network::Network;
use crate::purpose;
use crate::run::atomic::remove_if_there;
use crate::run::clock::Clock;
use crate::trainer::VALUE_STEP;
use crate::trainer::curriculum;
use crate::trainer::experiment::Experiment;
use crate::trainer::frozen::FrozenPolicy;
use crate::trainer::progress::Progress;
use crate::trainer::task_source::TaskSource;
use crate::trainer::value_cache::ValueCache;
use crate::value::{GoalValue, VALUE_KEY_VERSION, ValueKey, ValueTable};

/// Schedule of N with `value.adaptive`: (first step, divisor of N, lower bound).
const FEWER_SAMPLES: [(u64, usize, usize); 2] = [(100, 4, 2), (30, 2, 4)];

/// The reference of the RL steps up to the next refresh or the next stage of the curriculum.
pub(super) struct ReferencePolicy<'a> {
    ex: &'a Experiment<'a>,
    frozen: FrozenPolicy,
    /// The stage of the curriculum that its goals belong to.
    stage: usize,
    source: Box<dyn TaskSource + 'a>,
    /// Goals that RL draws from, sorted.
    pool: Vec<TaskId>,
}

/// What V* of some goals cost.
#[derive(Clone, Copy, Default)]
#[must_use]
struct Cost {
    /// Tokens of the reference rollouts, whichever run made them.
    tokens: u64,
    /// Seconds that other runs spent on them; the clock of this run counts its own.
    seconds: f64,
}

impl<'a> ReferencePolicy<'a> {
    /// The reference of RL step `step` with the values known by then. The model folder of a new reference
    /// must exist.
    pub(super) fn open(ex: &'a Experiment<'a>, progress: &mut Progress, step: u64) -> Result<Self> {
        let since = last_refresh(ex, step);
        let stage = progress.state.curriculum_stage;
        let model = ex.policy.frozen(&ex.reference_folder(since))?;
        let (source, task_set) = curriculum::open(ex, stage)?;
        let key = value_key(ex, &model, since, task_set)?;
        let pool = source.goals(progress.state.step)?;
        let network = Network::new(&model, ex.compute)?;
        let values = ValueTable::new(key, ex.config.value.beta1);
        let mut reference = Self { ex, frozen: FrozenPolicy { network, since, values }, stage, source, pool };
        let began = since.max(progress.state.stage_since);
        let cost = reference.keep_widest_spread(&progress.clock)?;
        if step == began {
            reference.charge(cost, progress);
            progress.state.forks.forget_rewards();
        }
        if ex.needs_values() {
            for earlier in began..step {
                let goals = reference.draw_goals(earlier);
                // The run was charged for these at their step.
                let _ = reference.estimate(&goals, earlier, &progress.clock)?;
            }
        }
        Ok(reference)
    }

    /// Whether it is the reference of RL step `step` at the current stage of the curriculum.
    pub(super) fn is_current(&self, progress: &Progress, step: u64) -> bool {
        (self.frozen.since, self.stage) == (last_refresh(self.ex, step), progress.state.curriculum_stage)
    }

    /// Whether it is the policy from before the first RL step.
    pub(super) fn is_first(&self) -> bool {
        self.frozen.since == 0
    }

    pub(super) fn network(&self) -> &Network {
        &self.frozen.network
    }

    /// Its weights, and V* under them.
    pub(super) fn frozen(&self) -> &FrozenPolicy {
        &self.frozen
    }

    /// Where the rollouts of its stage come from.
    pub(super) fn source(&self) -> &dyn TaskSource {
        self.source.as_ref()
    }

    /// The goals of an RL step. The pool is shuffled again each time all its goals were drawn.
    pub(super) fn draw_goals(&self, step: u64) -> Vec<TaskId> {
        let n = self.pool.len() as u64;
        let per_step = self.ex.config.rl.goals_per_step() as u64;
        let order = |epoch: u64| {
            let mut rng = self.ex.seed().rng(purpose::GOAL_SAMPLING, &[1 + epoch]);
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

    /// How many goals of the pool all RL steps together draw at most.
    fn n_goals_to_draw(&self) -> usize {
        let rl = &self.ex.config.rl;
        self.pool.len().min((rl.steps as usize).saturating_mul(rl.goals_per_step()))
    }

    /// Makes V* of the goals of RL step `step` known, if the loss needs it, and records what it was.
    pub(super) fn estimate_values(
        &mut self,
        goals: &[TaskId],
        step: u64,
        progress: &mut Progress,
        record: &mut Record,
    ) -> Result<()> {
        record.set(Metric::ValueAge, (step - self.frozen.since) as f64);
        if self.ex.needs_values() {
            let n_known = goals.iter().filter(|goal| self.frozen.value(**goal).is_some()).count();
            record.set(Metric::ValueHitRate, n_known as f64 / goals.len() as f64);
            let cost = self.estimate(goals, step, &progress.clock)?;
            self.charge(cost, progress);
            record
                .set(Metric::ValueMean, self.frozen.values.mean_v_star())
                .set(Metric::ValueShareWithoutSuccess, self.frozen.values.share_without_success())
                .set(Metric::ValueBias, self.frozen.values.mean_bias());
        }
        Ok(())
    }

    fn charge(&self, cost: Cost, progress: &mut Progress) {
        progress.state.tokens += cost.tokens;
        progress.clock.charge(cost.seconds);
    }

    /// Keeps the share `value.keep_spread` of the pool: the goals whose reference rewards have the largest
    /// spread.
    fn keep_widest_spread(&mut self, clock: &Clock) -> Result<Cost> {
        if !self.ex.chooses_by_spread() {
            return Ok(Cost::default());
        }
        let share = self.ex.config.value.keep_spread;
        let pool = self.pool.clone();
        let cost = self.estimate(&pool, 0, clock)?;
        let spread = |goal: &TaskId| self.frozen.value(*goal).map_or(0.0, GoalValue::spread);
        let mut by_spread: Vec<(f64, TaskId)> = pool.iter().map(|goal| (spread(goal), *goal)).collect();
        by_spread.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        by_spread.truncate(((pool.len() as f64 * share).ceil() as usize).max(1));
        self.pool = by_spread.into_iter().map(|(_, goal)| goal).collect();
        self.pool.sort();
        Ok(cost)
    }

    /// Makes V* of `goals` known, which RL step `step` drew: from the cache, else from N rollouts each.
    fn estimate(&mut self, goals: &[TaskId], step: u64, clock: &Clock) -> Result<Cost> {
        let new: BTreeSet<TaskId> =
            goals.iter().copied().filter(|goal| self.frozen.value(*goal).is_none()).collect();
        if new.is_empty() {
            return Ok(Cost::default());
        }
        let config = &self.ex.config.value;
        let mut cache = ValueCache::open(config, self.ex.run, self.frozen.values.key())?;
        let is_cached = |goal: &TaskId| cache.table.get(goal.shop, goal.goal.0).is_some();
        let missing: Vec<TaskId> = new.iter().copied().filter(|goal| !is_cached(goal)).collect();
        let seconds = cache.seconds_of(new.len() - missing.len());
        if !missing.is_empty() {
            let began = clock.seconds();
            let n_samples = samples_at(config, step);
            let n_known = self.frozen.values.goals().len() + new.len() - missing.len();
            let n_goals = self.n_goals_to_draw().max(n_known + missing.len());
            self.ex.observer.begin("V*", (n_goals * n_samples) as u64, (n_known * n_samples) as u64);
            let FrozenPolicy { network, since, .. } = &self.frozen;
            let rollouts =
                self.source.reference_rollouts(network, &missing, VALUE_STEP + since, n_samples)?;
            self.ex.observer.end();
            for (goal, rollouts) in missing.iter().zip(rollouts).filter(|(_, rollouts)| !rollouts.is_empty())
            {
                cache.table.insert(goal.shop, goal.goal.0, &rollouts);
            }
            cache.save(missing.len(), clock.seconds() - began)?;
        }
        let mut tokens = 0;
        for value in new.iter().filter_map(|goal| cache.table.get(goal.shop, goal.goal.0)) {
            tokens += value.n_tokens;
            self.frozen.values.put(value.clone());
        }
        if cache.is_shared() {
            self.frozen.values.save(&self.ex.run.value())?;
        }
        Ok(Cost { tokens, seconds })
    }
}

/// The RL step at which the reference of `step` was the policy.
pub(super) fn last_refresh(ex: &Experiment<'_>, step: u64) -> u64 {
    let refresh = ex.config.value.refresh;
    step.checked_div(refresh).map_or(0, |times| times * refresh)
}

/// Removes the folders of references that no run resumed at optimizer step `step` needs; the first is kept.
pub(super) fn remove_unneeded(ex: &Experiment<'_>, step: u64) -> Result<()> {
    let refresh = ex.config.value.refresh;
    let rl_step = step.saturating_sub(ex.first_rl_step());
    // The reference of the previous step is needed until the next step has begun.
    let needed = last_refresh(ex, rl_step.saturating_sub(1));
    for since in (1..needed).filter(|since| since.is_multiple_of(refresh)).rev() {
        let folder = ex.reference_folder(since);
        if !folder.exists() {
            break;
        }
        remove_if_there(&folder)?;
    }
    Ok(())
}

/// N of an RL step: with `value.adaptive` it falls, since early goals are drawn again most often.
fn samples_at(config: &ValueConfig, step: u64) -> usize {
    let fewer = FEWER_SAMPLES.into_iter().find(|(from, ..)| config.adaptive && step >= *from);
    fewer.map_or(config.samples, |(_, divisor, least)| {
        (config.samples / divisor).max(least).min(config.samples)
    })
}

pub(super) fn value_key(
    ex: &Experiment<'_>,
    reference: &Qwen2,
    since: u64,
    task_set: String,
) -> Result<ValueKey> {
    let Config { value, rl, .. } = ex.config;
    Ok(ValueKey {
        version: VALUE_KEY_VERSION,
        reference: reference.fingerprint()?,
        prompt: ex.policy.prompt_version()?,
        results_shown: ex.config.prompt.results_shown,
        price_ranges: ex.config.prompt.price_ranges,
        detail_chars: ex.config.prompt.detail_chars,
        max_context: ex.config.prompt.max_context,
        max_turn_tokens: ex.config.prompt.max_turn_tokens,
        max_steps: ex.config.run.max_steps,
        task_set,
        seed: ex.config.seed,
        since,
        samples: value.samples,
        adaptive: value.adaptive,
        reward: rl.reward,
        malformed_penalty: ex.config.malformed_penalty(),
        temperature: rl.temperature,
        top_p: rl.top_p,
        single_step: (rl.mode == RlMode::SingleStep).then(|| ex.config.shop_r1.clone()),
        demonstrator: ex.config.browsing_demonstrator().filter(|_| rl.mode == RlMode::SingleStep),
        examples: ex.recorded.as_ref().map_or_else(String::new, |steps| steps.digest().into()),
        compute: ex.compute.recorded_kind(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::TrainOptions;
    use crate::trainer::experiment::tests::{frozen, small_run};
    use crate::trainer::multi_turn::MultiTurn;

    #[test]
    fn the_goals_of_the_widest_spread_are_kept() {
        let (_folder, config, run, compute) = small_run("value.goals=8 keep_spread=0.5");
        let (ex, progress, _) = Experiment::open(&compute, &config, &run, TrainOptions::default()).unwrap();
        let source = MultiTurn { ex: &ex, tasks: ex.tasks.clone() };
        let pool = source.goals(0).unwrap();
        assert_eq!(pool.len(), 8);
        let widths = [0.1, 0.4, 0.0, 0.3, 0.2, 0.5, 0.25, 0.05];
        let frozen = frozen(&ex, &pool, |place| vec![0.5 - widths[place], 0.5 + widths[place]]);
        let mut reference =
            ReferencePolicy { ex: &ex, frozen, stage: 0, source: Box::new(source), pool: pool.clone() };
        let cost = reference.keep_widest_spread(&progress.clock).unwrap();
        assert_eq!((cost.tokens, cost.seconds), (0, 0.0), "all values are known");
        assert_eq!(reference.pool, [1, 3, 5, 6].map(|place| pool[place]));
    }

    #[test]
    fn the_adaptive_schedule_takes_fewer_samples_later() {
        let config = |samples, adaptive| ValueConfig { samples, adaptive, ..ValueConfig::default() };
        let at = |samples, step| samples_at(&config(samples, true), step);
        assert_eq!([at(16, 0), at(16, 29), at(16, 30), at(16, 99), at(16, 100)], [16, 16, 8, 8, 4]);
        assert_eq!([at(8, 30), at(8, 100), at(4, 30), at(4, 100), at(1, 100)], [4, 2, 4, 2, 1]);
        assert_eq!(samples_at(&config(16, false), 500), 16);
    }
}
