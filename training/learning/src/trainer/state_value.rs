//! V* of states that the learner's trips passed, from reference trips forked there.
//!
//! The reference goes on from a state in several ways: the shop's session is copied, what was read and said on the way is
//! read again as one prompt, and only what comes after is written. So V* of a state costs what is left of the trip:
//!
//! ```text
//! tokens written      = Σ over forks of what they said             `Forks::written`
//! tokens not written  = Σ over forks of what their beginnings said `Forks::shared`
//! ```
//!
//! A rollout from the door would have to write the latter too, and would hardly come by the same state. What a fork earns
//! is what its whole trip earns at its end. States are named, and their V* understood, as in [`crate::value::ValueTable`]; a state
//! is forked from the first trip of a batch that led there, where it was new to the trip, as credit asks for no other. What
//! forks pass on their way is not counted.
//!
//! Draws are addressed by the reference, the goal, the state and the fork's number. Rewards are part of what a run resumes
//! from and not of `value.json`: a run that stops behind a refreshed reference and resumes before it could not make the
//! trips again that led to the states of the earlier one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use webshop_agent::{Beginning, Episode, Task};
use webshop_env::Shop;

use crate::trainer::reference::Guide;
use crate::trainer::{FORK_STEP, Trainer};
use crate::config::Credit;
use crate::error::Result;
use crate::data::task_set::GroundGoal;
use crate::metrics::{Metric, Record};

/// What forked trips of the reference earned, and what they cost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Forks {
    /// Tokens that were written in them, over the whole run.
    written: u64,
    /// Tokens of their beginnings, which were not written again.
    shared: u64,
    /// Rewards under the present reference: by shop, goal and name of the state.
    rewards: BTreeMap<u32, BTreeMap<u32, BTreeMap<u64, Vec<f64>>>>,
}

impl Forks {
    /// What the forks of a state earned, in the order of their numbers; nothing if there were none.
    fn of(&self, goal: GroundGoal, state: u64) -> &[f64] {
        let of_goal = self.rewards.get(&goal.shop).and_then(|of_shop| of_shop.get(&goal.goal.0));
        of_goal.and_then(|states| states.get(&state)).map_or(&[], Vec::as_slice)
    }

    fn insert(&mut self, goal: GroundGoal, state: u64, rewards: Vec<f64>) {
        let of_shop = self.rewards.entry(goal.shop).or_default();
        of_shop.entry(goal.goal.0).or_default().insert(state, rewards);
    }

    /// Another reference begins: what this one earned says nothing of it. What it cost is spent.
    pub(super) fn forget_rewards(&mut self) {
        self.rewards.clear();
    }
}

impl Trainer<'_> {
    /// V* of a state on the way to `goal`, where credit goes to states and it is known.
    pub(super) fn v_state(&self, guide: &Guide, goal: GroundGoal, state: u64) -> Option<f64> {
        let config = &self.config.value;
        match config.credit {
            Credit::Trip => None,
            Credit::State => {
                let forked = self.state.forks.of(goal, state);
                guide.value(goal)?.v_state(state, forked, config.beta1, config.state_samples)
            }
        }
    }

    /// Where credit goes to states: records how many of those that the step's trips came to are known, and sees to it that
    /// all are, if forks are asked for. The trips come with their goals.
    pub(super) fn value_states<'e>(
        &mut self,
        guide: &Guide,
        trips: impl Iterator<Item = (&'e [Episode], &'e GroundGoal)>,
        record: &mut Record,
    ) -> Result<()> {
        if self.config.value.credit == Credit::Trip || !self.wants_values() {
            return Ok(());
        }
        let (mut n_reached, mut n_known) = (0, 0);
        let mut unknown: BTreeMap<(GroundGoal, u64), Beginning> = BTreeMap::new();
        for (episodes, goal) in trips {
            let shop = self.stage.shop_of(*goal);
            for (state, beginning) in episodes.iter().flat_map(|episode| new_states(shop, episode)) {
                n_reached += 1;
                if self.v_state(guide, *goal, state).is_some() {
                    n_known += 1;
                } else {
                    unknown.entry((*goal, state)).or_insert(beginning);
                }
            }
        }
        record.set(Metric::ValueStateHitRate, f64::from(n_known) / f64::from(n_reached));
        if self.config.value.forks > 0 {
            self.fork(guide, &unknown)?;
            let Forks { written, shared, .. } = self.state.forks;
            record.set(Metric::ValueForkTokens, written as f64);
            record.set(Metric::ValueForkTokensShared, shared as f64);
        }
        Ok(())
    }

    /// Has the reference go on from these states.
    fn fork(&mut self, guide: &Guide, states: &BTreeMap<(GroundGoal, u64), Beginning>) -> Result<()> {
        if states.is_empty() {
            return Ok(());
        }
        let n_forks = self.config.value.forks;
        let at = FORK_STEP + guide.since;
        let of_state = |((_, state), beginning): (&(GroundGoal, u64), &Beginning)| -> Vec<Task> {
            // Names of states are digests: the few numbers from one on do not meet those of another.
            let numbers = (0..n_forks as u64).map(|number| state.wrapping_add(number));
            numbers.map(|number| Task::fork(beginning, at, number)).collect()
        };
        let tasks: Vec<Task> = states.iter().flat_map(of_state).collect();
        let began = self.clock.seconds();
        self.observer.begin("V* of states", tasks.len() as u64, 0);
        let episodes = self.play(&guide.network, &tasks, &|| self.observer.advance(1, ""))?;
        self.observer.end();
        self.pace.forked(self.clock.seconds() - began);
        for (((goal, state), beginning), episodes) in states.iter().zip(episodes.chunks(n_forks)) {
            let shared = (n_forks * beginning.n_sampled_tokens()) as u64;
            let written = episodes.iter().map(|trip| trip.n_sampled_tokens() as u64).sum::<u64>() - shared;
            let rewards = episodes.iter().map(|trip| self.reward(trip)).collect();
            self.state.forks.insert(*goal, *state, rewards);
            self.state.forks.written += written;
            self.state.forks.shared += shared;
            self.state.tokens += written;
        }
        Ok(())
    }
}

/// The states that a trip came to between its first page and its last, each where it was new, with the way there.
fn new_states(shop: &Arc<Shop>, episode: &Episode) -> Vec<(u64, Beginning)> {
    let mut seen = BTreeSet::from([episode.start.observation.number()]);
    let named = |beginning: Beginning| (beginning.after().observation.number(), beginning);
    let mut states: Vec<(u64, Beginning)> = Beginning::each(shop, episode).into_iter().map(named).collect();
    states.retain(|(state, _)| seen.insert(*state));
    states
}

#[cfg(test)]
mod tests {
    use webshop_agent::{EpisodeCoordinates, RandomPolicy, RolloutConfig, rollout};
    use webshop_products::{GoalId, Seed};

    use super::*;
    use crate::config::CatalogConfig;
    use crate::setup::open_shop;

    #[test]
    fn a_state_is_forked_where_it_is_new_to_the_trip() {
        let shop = Arc::new(open_shop(&CatalogConfig::default()).unwrap());
        let at = EpisodeCoordinates { step: 0, shop: 0, goal: GoalId(0), sample: 0 };
        let tasks: Vec<Task> = (0..20).map(|sample| Task::new(shop.clone(), at.sampled(sample))).collect();
        let limits = RolloutConfig { max_steps: 15, lanes: 1 };
        let trips = rollout(&mut RandomPolicy::new(Seed(0)), &tasks, limits, &mut |_, _| ()).unwrap();
        let mut n_again = 0;
        for trip in &trips {
            let mut expected = Vec::new();
            let mut seen = vec![trip.start.observation];
            for (place, turn) in trip.turns[..trip.turns.len() - 1].iter().enumerate() {
                match seen.contains(&turn.after.observation) {
                    true => n_again += 1,
                    false => expected.push((turn.after.observation.number(), place + 1)),
                }
                seen.push(turn.after.observation);
            }
            let found = new_states(&shop, trip);
            let found: Vec<_> = found.iter().map(|(state, way)| (*state, way.turns().len())).collect();
            assert_eq!(found, expected);
        }
        assert!(n_again > 0, "some trip comes back to where it was");
    }

    #[test]
    fn rewards_are_found_under_goal_and_state_until_another_reference_begins() {
        let goal = |shop, goal| GroundGoal { shop, goal: GoalId(goal) };
        let mut forks = Forks { written: 7, shared: 5, ..Forks::default() };
        forks.insert(goal(0, 3), u64::MAX, vec![1.0 / 3.0, 0.0]);
        forks.insert(goal(1, 3), 4, vec![1.0]);
        // As a checkpoint has it.
        let mut forks: Forks = serde_json::from_str(&serde_json::to_string(&forks).unwrap()).unwrap();
        assert_eq!(
            (forks.of(goal(0, 3), u64::MAX), forks.of(goal(1, 3), 4)),
            (&[1.0 / 3.0, 0.0][..], &[1.0][..])
        );
        for (goal, state) in [(goal(1, 3), u64::MAX), (goal(0, 2), u64::MAX), (goal(0, 3), 4)] {
            assert!(forks.of(goal, state).is_empty(), "{goal:?} {state}");
        }
        forks.forget_rewards();
        assert!(forks.of(goal(1, 3), 4).is_empty());
        assert_eq!((forks.written, forks.shared), (7, 5));
    }
}
