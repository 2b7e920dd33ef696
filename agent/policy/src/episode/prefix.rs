//! Prefixes of episodes, from which other episodes are forked.
//!
//! [`EpisodePrefix::each`] replays an [`Episode`] and keeps the state before each turn. A forked episode
//! ([`crate::Task::fork`]) resumes a copy of the session and takes over the turns before it. Policies with a
//! memory take these turns over ([`crate::Policy::replay_turn`]): a model reads the recorded tokens as
//! one prompt and samples none of them again. The turns after the prefix are drawn from the fork's own
//! coordinates.

use std::sync::Arc;

use webshop_env::{Session, Shop, Transition, TransitionDigest};

use crate::episode::{Episode, EpisodeCoordinates, Turn};
use crate::policies::policy::LaneView;

/// The first turns of an episode. Prefixes of one episode share their data.
#[derive(Clone, Debug)]
pub struct EpisodePrefix {
    shop: Arc<Shop>,
    coordinates: EpisodeCoordinates,
    /// All turns of the episode, each with the state before it.
    transitions: Arc<[(Transition, Turn)]>,
    /// At least 1 and less than the number of transitions.
    n_turns: usize,
}

impl EpisodePrefix {
    /// The prefixes of `episode`, which was recorded in `shop`: of one turn, of two, and so on to all turns
    /// but the last. An episode of one turn has none.
    ///
    /// # Panics
    /// If the goal is not one of the shop's.
    pub fn each(shop: &Arc<Shop>, episode: &Episode) -> Vec<Self> {
        let actions = episode.turns.iter().map(|turn| turn.action.clone());
        let walk = Session::walk(shop, episode.goal, actions);
        let transitions: Arc<[_]> = walk.zip(episode.turns.iter().cloned()).collect();
        let prefix = |n_turns| Self {
            shop: shop.clone(),
            coordinates: episode.meta.coordinates,
            transitions: transitions.clone(),
            n_turns,
        };
        (1..transitions.len()).map(prefix).collect()
    }

    /// The shop of the episode.
    pub fn shop(&self) -> &Arc<Shop> {
        &self.shop
    }

    /// The coordinates of the episode.
    pub fn coordinates(&self) -> EpisodeCoordinates {
        self.coordinates
    }

    /// The digests of the state after the prefix.
    pub fn after(&self) -> TransitionDigest {
        self.transitions[self.n_turns - 1].1.after
    }

    /// The turns, in order.
    pub fn turns(&self) -> impl ExactSizeIterator<Item = &Turn> {
        self.transitions[..self.n_turns].iter().map(|(_, turn)| turn)
    }

    /// The number of sampled tokens, end tokens included.
    pub fn n_sampled_tokens(&self) -> usize {
        self.turns().map(|turn| turn.agent.n_sampled_tokens()).sum()
    }

    /// The state after the prefix.
    pub(crate) fn current(&self) -> &Transition {
        &self.transitions[self.n_turns].0
    }

    /// Each turn with what the policy saw before it, on a lane with these coordinates.
    pub(crate) fn views(
        &self,
        lane: usize,
        coordinates: EpisodeCoordinates,
        max_steps: u32,
    ) -> impl Iterator<Item = (LaneView<'_>, &Turn)> {
        let past = self.transitions[..self.n_turns].iter().enumerate();
        past.map(move |(number, (transition, turn))| {
            let view = LaneView {
                lane,
                coordinates,
                shop: &self.shop,
                session: &transition.session,
                page: &transition.page,
                noop: transition.noop_before,
                turn: number,
                max_steps,
            };
            (view, turn)
        })
    }
}

#[cfg(test)]
mod tests {
    use webshop_products::{EmbeddedCatalog, GoalId, GoalKind, Seed};

    use super::*;
    use crate::policies::random::RandomPolicy;
    use crate::rollout::task::Task;
    use crate::rollout::{RolloutConfig, rollout};

    fn shop() -> Arc<Shop> {
        Arc::new(Shop::embedded(EmbeddedCatalog::Hundred, GoalKind::Human))
    }

    fn play(tasks: &[Task], max_steps: u32) -> Vec<Episode> {
        let limits = RolloutConfig { max_steps, lanes: 5 };
        rollout(&mut RandomPolicy::new(Seed(0)), tasks, limits, &mut |_, _| ()).unwrap()
    }

    fn episodes(shop: &Arc<Shop>) -> Vec<Episode> {
        let at = |goal| EpisodeCoordinates::of_goal(GoalId(goal));
        let tasks: Vec<Task> = (0..12).map(|goal| Task::new(shop.clone(), at(goal))).collect();
        play(&tasks, 9)
    }

    fn line(episode: &Episode) -> String {
        serde_json::to_string(episode).unwrap()
    }

    #[test]
    fn a_fork_with_the_same_draws_is_the_same_episode() {
        let shop = shop();
        for episode in episodes(&shop) {
            let prefixes = EpisodePrefix::each(&shop, &episode);
            assert_eq!(prefixes.len(), episode.turns.len() - 1);
            for (n_turns, prefix) in (1..).zip(&prefixes) {
                assert_eq!(
                    (prefix.turns().len(), prefix.after()),
                    (n_turns, episode.turns[n_turns - 1].after)
                );
            }
            let tasks: Vec<Task> = prefixes.iter().map(|prefix| Task::fork(prefix, 0, 0)).collect();
            for fork in play(&tasks, 9) {
                assert_eq!(line(&fork), line(&episode));
            }
        }
    }

    #[test]
    fn forks_of_other_samples_share_the_prefix_only() {
        let shop = shop();
        let episode = episodes(&shop).into_iter().find(|episode| episode.turns.len() == 9).unwrap();
        let prefix = &EpisodePrefix::each(&shop, &episode)[2];
        let tasks: Vec<Task> = (1..9).map(|sample| Task::fork(prefix, 7, sample)).collect();
        let forks = play(&tasks, 9);
        let mut lines: Vec<String> = forks.iter().map(line).collect();
        for (fork, sample) in forks.iter().zip(1..) {
            assert_eq!((fork.meta.coordinates.step, fork.meta.coordinates.sample), (7, sample));
            let past: Vec<_> = fork.turns[..3].iter().map(|turn| turn.after).collect();
            assert_eq!(past, episode.turns[..3].iter().map(|turn| turn.after).collect::<Vec<_>>());
        }
        lines.sort();
        lines.dedup();
        assert!(lines.len() > 4, "{} different episodes", lines.len());
    }

    #[test]
    fn the_step_limit_counts_the_prefix() {
        let shop = shop();
        let episode = episodes(&shop).into_iter().find(|episode| episode.turns.len() == 9).unwrap();
        let prefixes = EpisodePrefix::each(&shop, &episode);
        let tasks: Vec<Task> = prefixes.iter().map(|prefix| Task::fork(prefix, 0, 0)).collect();
        for (n_turns, fork) in (1..).zip(play(&tasks, 4)) {
            assert_eq!((fork.turns.len(), fork.truncated, fork.terminated), (n_turns.max(4), true, false));
        }
    }
}
