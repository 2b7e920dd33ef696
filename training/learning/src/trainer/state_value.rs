//! V* of states inside an episode, from reference rollouts that are forked there.
//!
//! The session of the shop is copied, the episode so far becomes the prompt, and the reference generates only
//! what follows:
//!
//! ```text
//! generated tokens = Σ over forks of the tokens after the state        `ForkedRewards::generated`
//! reused tokens    = Σ over forks of the sampled tokens before it      `ForkedRewards::reused`
//! ```
//!
//! The reward of a fork is the reward of its whole episode. States are identified, and their V* defined, as
//! in [`crate::value::ValueTable`]. A state is forked from the first episode of a batch that reaches it, at
//! its first visit. States that forks pass are not counted.
//!
//! Draws are addressed by the reference, the goal, the state and the number of the fork. Rewards belong to
//! the checkpoint and not to `value.json`: a run that stops after its reference was refreshed and resumes
//! before that could not repeat the episodes that led to the states of the earlier reference.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use webshop_agent::EpisodeExt;

use webshop_agent::{Episode, EpisodePrefix, Task};
use webshop_env::Shop;

use crate::config::Credit;
use crate::data::task_set::{TaskId, TaskSet};
use crate::error::Result;
use crate::metrics::{Metric, Record};
use crate::trainer::FORK_STEP;
use crate::trainer::experiment::Experiment;
use crate::trainer::forks::ForkedRewards;
use crate::trainer::frozen::FrozenPolicy;
use crate::trainer::progress::Progress;

/// V* of states under a reference.
pub(super) struct StateValues<'s> {
    pub(super) ex: &'s Experiment<'s>,
    pub(super) tasks: &'s TaskSet,
    pub(super) reference: &'s FrozenPolicy,
}

impl StateValues<'_> {
    /// V* of a state on the way to `goal`; `None` with credit by episode, or if too few rollouts passed the
    /// state.
    pub(super) fn get(&self, forks: &ForkedRewards, goal: TaskId, state: u64) -> Option<f64> {
        let config = &self.ex.config.value;
        match config.credit {
            Credit::Episode => None,
            Credit::State => {
                let forked = forks.of(goal, state);
                self.reference.value(goal)?.v_state(state, forked, config.beta1, config.state_samples)
            }
        }
    }

    /// With credit by state: records the share of states of the step's episodes whose V* is known and, if
    /// forks are configured, forks the others. `episodes` come with their goals.
    pub(super) fn estimate<'e>(
        &self,
        episodes: impl Iterator<Item = (&'e [Episode], &'e TaskId)>,
        progress: &mut Progress,
        record: &mut Record,
    ) -> Result<()> {
        if self.ex.config.value.credit == Credit::Episode || !self.ex.needs_values() {
            return Ok(());
        }
        let (mut n_reached, mut n_known) = (0, 0);
        let mut unknown: BTreeMap<(TaskId, u64), EpisodePrefix> = BTreeMap::new();
        for (episodes, goal) in episodes {
            let shop = self.tasks.shop_of(*goal);
            for (state, prefix) in episodes.iter().flat_map(|episode| new_states(shop, episode)) {
                n_reached += 1;
                if self.get(&progress.state.forks, *goal, state).is_some() {
                    n_known += 1;
                } else {
                    unknown.entry((*goal, state)).or_insert(prefix);
                }
            }
        }
        record.set(Metric::ValueStateHitRate, f64::from(n_known) / f64::from(n_reached));
        if self.ex.config.value.forks > 0 {
            self.fork(&unknown, progress)?;
            let ForkedRewards { generated, reused, .. } = progress.state.forks;
            record.set(Metric::ValueForkTokens, generated as f64);
            record.set(Metric::ValueForkTokensShared, reused as f64);
        }
        Ok(())
    }

    /// Rolls the reference out from these states.
    fn fork(&self, states: &BTreeMap<(TaskId, u64), EpisodePrefix>, progress: &mut Progress) -> Result<()> {
        if states.is_empty() {
            return Ok(());
        }
        let n_forks = self.ex.config.value.forks;
        let at = FORK_STEP + self.reference.since;
        let of_state = |((_, state), prefix): (&(TaskId, u64), &EpisodePrefix)| -> Vec<Task> {
            // States are digests, so the few numbers after one do not collide with those after another.
            let numbers = (0..n_forks as u64).map(|number| state.wrapping_add(number));
            numbers.map(|number| Task::fork(prefix, at, number)).collect()
        };
        let tasks: Vec<Task> = states.iter().flat_map(of_state).collect();
        let (observer, began) = (self.ex.observer, progress.clock.seconds());
        observer.begin("V* of states", tasks.len() as u64, 0);
        let episodes = self.ex.rollout(&self.reference.network, &tasks, &|| observer.advance(1, ""))?;
        observer.end();
        progress.throughput.forked(progress.clock.seconds() - began);
        for (((goal, state), prefix), episodes) in states.iter().zip(episodes.chunks(n_forks)) {
            let reused = (n_forks * prefix.n_sampled_tokens()) as u64;
            let total: u64 = episodes.iter().map(|episode| episode.n_sampled_tokens() as u64).sum();
            let rewards = episodes.iter().map(|episode| self.ex.config.reward(episode)).collect();
            let state_of_run = &mut progress.state;
            state_of_run.forks.insert(*goal, *state, rewards);
            state_of_run.forks.generated += total - reused;
            state_of_run.forks.reused += reused;
            state_of_run.tokens += total - reused;
        }
        Ok(())
    }
}

/// The states of an episode after its first turn and before its end, each at its first visit, with the prefix
/// that leads there.
fn new_states(shop: &Arc<Shop>, episode: &Episode) -> Vec<(u64, EpisodePrefix)> {
    let mut seen = BTreeSet::from([episode.start.observation.number()]);
    let named = |prefix: EpisodePrefix| (prefix.after().observation.number(), prefix);
    let mut states: Vec<(u64, EpisodePrefix)> =
        EpisodePrefix::each(shop, episode).into_iter().map(named).collect();
    states.retain(|(state, _)| seen.insert(*state));
    states
}

#[cfg(test)]
mod tests {
    use webshop_agent::{EpisodeCoordinates, RandomPolicy, RolloutConfig, rollout};
    use webshop_products::{GoalId, Seed};

    use super::*;
    use crate::config::CatalogConfig;
    use crate::setup::open_shop::open_shop;

    #[test]
    fn a_state_is_forked_where_the_episode_reaches_it_first() {
        let shop = Arc::new(open_shop(&CatalogConfig::default()).unwrap());
        let at = EpisodeCoordinates::of_goal(GoalId(0));
        let tasks: Vec<Task> =
            (0..20).map(|sample| Task::new(shop.clone(), at.with_sample(sample))).collect();
        let limits = RolloutConfig { max_steps: 15, lanes: 1 };
        let episodes = rollout(&mut RandomPolicy::new(Seed(0)), &tasks, limits, &mut |_, _| ()).unwrap();
        let mut n_again = 0;
        for episode in &episodes {
            let mut expected = Vec::new();
            let mut seen = vec![episode.start.observation];
            for (place, turn) in episode.turns[..episode.turns.len() - 1].iter().enumerate() {
                match seen.contains(&turn.after.observation) {
                    true => n_again += 1,
                    false => expected.push((turn.after.observation.number(), place + 1)),
                }
                seen.push(turn.after.observation);
            }
            let found = new_states(&shop, episode);
            let found: Vec<_> = found.iter().map(|(state, prefix)| (*state, prefix.turns().len())).collect();
            assert_eq!(found, expected);
        }
        assert!(n_again > 0, "some episode returns to an earlier state");
    }
}
