//! Trips that begin where another one stands.
//!
//! [`Beginning::each`] walks along an [`Episode`] and keeps its moments: before every turn the [`Session`], its page, and
//! what was then done. A trip that is forked from a beginning ([`crate::rollout::Task::fork`]) takes a copy of the session, which is
//! all that the shop has to do for it, and has the turns before it as its own first ones. Whoever remembers what was told
//! on a lane is told it again ([`crate::policies::Policy::recall`]): a model reads the tokens that were read and said, as one prompt,
//! and says none of them anew.
//!
//! What comes after is drawn from the fork's own coordinates. Where to fork, and what for, is not decided here.

use std::sync::Arc;

use webshop_env::{Footprint, NoopReason, Page, Session, Shop};

use crate::episode::{Episode, EpisodeCoordinates, EpisodeTurn};
use crate::policies::LaneView;

/// The first turns of a trip, for others to go on from. Those of one episode share its moments.
#[derive(Clone, Debug)]
pub struct Beginning {
    shop: Arc<Shop>,
    coordinates: EpisodeCoordinates,
    moments: Arc<[Moment]>,
    /// From 1 and less than there are moments.
    n_turns: usize,
}

/// The moment before a turn.
#[derive(Debug)]
pub(crate) struct Moment {
    pub session: Session,
    pub page: Page,
    /// Why the turn before changed nothing, if it did not.
    pub noop: Option<NoopReason>,
    /// What was done.
    pub turn: EpisodeTurn,
}

impl Beginning {
    /// The beginnings of `episode`, which was made in `shop`: of one turn, of two, and so on to all turns but the last.
    /// An episode of one turn has none.
    ///
    /// # Panics
    /// If the goal is not one of the shop's.
    pub fn each(shop: &Arc<Shop>, episode: &Episode) -> Vec<Self> {
        let (mut session, mut noop) = (Session::start(episode.coordinates.goal), None);
        let moments = episode.turns.iter().map(|turn| {
            let moment =
                Moment { page: session.page(shop), session: session.clone(), noop, turn: turn.clone() };
            noop = session.act(shop, &turn.action).noop;
            debug_assert_eq!(session.digest(), turn.after.state, "the episode was made in this shop");
            moment
        });
        let moments: Arc<[Moment]> = moments.collect();
        let of = |n_turns| Self {
            shop: shop.clone(),
            coordinates: episode.coordinates,
            moments: moments.clone(),
            n_turns,
        };
        (1..moments.len()).map(of).collect()
    }

    /// The shop it was made in.
    pub fn shop(&self) -> &Arc<Shop> {
        &self.shop
    }

    /// Those of the episode.
    pub fn coordinates(&self) -> EpisodeCoordinates {
        self.coordinates
    }

    /// What its last turn led to.
    pub fn after(&self) -> Footprint {
        self.moments[self.n_turns - 1].turn.after
    }

    /// Its turns, in order.
    pub fn turns(&self) -> impl ExactSizeIterator<Item = &EpisodeTurn> {
        self.moments[..self.n_turns].iter().map(|moment| &moment.turn)
    }

    /// Tokens that were said in it, end marks included.
    pub fn n_sampled_tokens(&self) -> usize {
        self.turns().map(EpisodeTurn::n_sampled_tokens).sum()
    }

    /// Where it stands.
    pub(crate) fn now(&self) -> &Moment {
        &self.moments[self.n_turns]
    }

    /// Its turns with what there was to decide on before each, for a lane on which a fork with these coordinates goes on.
    pub(crate) fn past(
        &self,
        lane: usize,
        coordinates: EpisodeCoordinates,
        max_steps: u32,
    ) -> impl Iterator<Item = (LaneView<'_>, &EpisodeTurn)> {
        self.moments[..self.n_turns].iter().enumerate().map(move |(turn, moment)| {
            let view = LaneView {
                lane,
                coordinates,
                shop: &self.shop,
                session: &moment.session,
                page: &moment.page,
                noop: moment.noop.as_ref(),
                turn,
                max_steps,
            };
            (view, &moment.turn)
        })
    }
}

#[cfg(test)]
mod tests {
    use webshop_products::{Catalog, EmbeddedCatalog, GoalId, GoalKind, GoalSet, RawData, Seed};

    use super::*;
    use crate::policies::RandomPolicy;
    use crate::rollout::{RolloutConfig, Task, rollout};

    fn shop() -> Arc<Shop> {
        let data = RawData::embedded(EmbeddedCatalog::Hundred);
        let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Human, Seed(0)).unwrap();
        Arc::new(Shop::new(catalog, goals).unwrap())
    }

    fn play(tasks: &[Task], max_steps: u32) -> Vec<Episode> {
        let limits = RolloutConfig { max_steps, lanes: 5 };
        rollout(&mut RandomPolicy::new(Seed(0)), tasks, limits, &mut |_, _| ()).unwrap()
    }

    fn trips(shop: &Arc<Shop>) -> Vec<Episode> {
        let at = |goal| EpisodeCoordinates { step: 0, shop: 0, goal: GoalId(goal), sample: 0 };
        let tasks: Vec<Task> = (0..12).map(|goal| Task::new(shop.clone(), at(goal))).collect();
        play(&tasks, 9)
    }

    fn line(shop: &Shop, episode: &Episode) -> String {
        serde_json::to_string(&episode.record(shop)).unwrap()
    }

    #[test]
    fn a_fork_with_the_draws_of_its_trip_is_that_trip() {
        let shop = shop();
        for trip in trips(&shop) {
            let beginnings = Beginning::each(&shop, &trip);
            assert_eq!(beginnings.len(), trip.turns.len() - 1);
            for (n_turns, beginning) in (1..).zip(&beginnings) {
                assert_eq!(
                    (beginning.turns().len(), beginning.after()),
                    (n_turns, trip.turns[n_turns - 1].after)
                );
            }
            let tasks: Vec<Task> = beginnings.iter().map(|beginning| Task::fork(beginning, 0, 0)).collect();
            for fork in play(&tasks, 9) {
                assert_eq!(line(&shop, &fork), line(&shop, &trip));
            }
        }
    }

    #[test]
    fn forks_of_other_samples_share_the_beginning_alone() {
        let shop = shop();
        let trip = trips(&shop).into_iter().find(|trip| trip.turns.len() == 9).unwrap();
        let beginning = &Beginning::each(&shop, &trip)[2];
        let tasks: Vec<Task> = (1..9).map(|sample| Task::fork(beginning, 7, sample)).collect();
        let forks = play(&tasks, 9);
        let mut lines: Vec<String> = forks.iter().map(|fork| line(&shop, fork)).collect();
        for (fork, sample) in forks.iter().zip(1..) {
            assert_eq!((fork.coordinates.step, fork.coordinates.sample), (7, sample));
            let past: Vec<_> = fork.turns[..3].iter().map(|turn| turn.after).collect();
            assert_eq!(past, trip.turns[..3].iter().map(|turn| turn.after).collect::<Vec<_>>());
        }
        lines.sort();
        lines.dedup();
        assert!(lines.len() > 4, "{} different trips", lines.len());
    }

    #[test]
    fn the_limit_of_steps_counts_the_beginning() {
        let shop = shop();
        let trip = trips(&shop).into_iter().find(|trip| trip.turns.len() == 9).unwrap();
        let beginnings = Beginning::each(&shop, &trip);
        let tasks: Vec<Task> = beginnings.iter().map(|beginning| Task::fork(beginning, 0, 0)).collect();
        for (n_turns, fork) in (1..).zip(play(&tasks, 4)) {
            assert_eq!((fork.turns.len(), fork.truncated, fork.terminated), (n_turns.max(4), true, false));
        }
    }
}
