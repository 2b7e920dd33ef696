//! Whether episodes act on the features that they read.
//!
//! A product is *read* if its features are opened and the next action goes back to its page. The thought written on
//! the features page is the *note*; it calls the product fitting if its last word is `yes`, as the notes of
//! [`webshop_agent::BrowsingExpert`] do. The product is *rejected* if the following action returns to the results,
//! else it is *kept*. Actions that had no effect are passed over.
//!
//! The browsing expert's decisions do not depend on its notes. An episode *acts on features* if it reads a product and
//! each product that it read is kept if its note calls it fitting, and rejected otherwise.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use webshop_agent::{Episode, EpisodeExt, Turn};
use webshop_env::Action;

/// Number of products that were kept and rejected after their features were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decisions {
    /// Products that were kept.
    pub kept: usize,
    /// Products that were rejected.
    pub rejected: usize,
}

impl Decisions {
    /// Share of products that were rejected, 0 to 1; `None` without any.
    pub fn rejection_rate(&self) -> Option<f64> {
        rate(self.rejected, self.kept + self.rejected)
    }

    fn count(&mut self, is_rejected: bool) {
        *(if is_rejected { &mut self.rejected } else { &mut self.kept }) += 1;
    }
}

impl AddAssign for Decisions {
    fn add_assign(&mut self, other: Self) {
        self.kept += other.kept;
        self.rejected += other.rejected;
    }
}

/// What a set of episodes read, and did then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Decisions on products that the note calls fitting.
    pub fitting: Decisions,
    /// Decisions on the other products that were read.
    pub not_fitting: Decisions,
    /// Number of episodes.
    pub episodes: usize,
    /// Episodes that read a product.
    pub reading: usize,
    /// Episodes that act on features.
    pub acting: usize,
    /// Successful episodes among them.
    pub acting_successes: usize,
    /// Successful episodes among the others.
    pub other_successes: usize,
}

impl Reading {
    /// What one episode read.
    fn of(episode: &Episode) -> Self {
        let mut found = Self { episodes: 1, ..Self::default() };
        let turns: Vec<&Turn> = episode.turns.iter().filter(|turn| turn.noop.is_none()).collect();
        for turns in turns.windows(3) {
            if !clicks(turns[0], "features") || !clicks(turns[1], "< prev") {
                continue;
            }
            let note = turns[1].agent.thought.as_deref().unwrap_or_default();
            let is_fitting = note.split_whitespace().next_back() == Some("yes");
            let decisions = if is_fitting { &mut found.fitting } else { &mut found.not_fitting };
            decisions.count(clicks(turns[2], "< prev"));
        }
        let n_as_noted = found.fitting.kept + found.not_fitting.rejected;
        let n_against = found.fitting.rejected + found.not_fitting.kept;
        found.reading = usize::from(n_as_noted + n_against > 0);
        found.acting = usize::from(n_as_noted > 0 && n_against == 0);
        let success = usize::from(episode.is_success());
        (found.acting_successes, found.other_successes) =
            (found.acting * success, (1 - found.acting) * success);
        found
    }

    /// What these episodes read.
    pub fn of_all(episodes: &[Episode]) -> Self {
        let mut found = Self::default();
        episodes.iter().for_each(|episode| found += Self::of(episode));
        found
    }

    /// Share of episodes that read a product, 0 to 1; `None` without episodes.
    pub fn reading_rate(&self) -> Option<f64> {
        rate(self.reading, self.episodes)
    }

    /// Share of episodes that act on features, 0 to 1; `None` without episodes.
    pub fn acting_rate(&self) -> Option<f64> {
        rate(self.acting, self.episodes)
    }

    /// Success rate of the episodes that act on features, 0 to 1; `None` without any.
    pub fn acting_success_rate(&self) -> Option<f64> {
        rate(self.acting_successes, self.acting)
    }

    /// Success rate of the other episodes, 0 to 1; `None` without any.
    pub fn other_success_rate(&self) -> Option<f64> {
        rate(self.other_successes, self.episodes - self.acting)
    }
}

impl AddAssign for Reading {
    fn add_assign(&mut self, other: Self) {
        self.fitting += other.fitting;
        self.not_fitting += other.not_fitting;
        self.episodes += other.episodes;
        self.reading += other.reading;
        self.acting += other.acting;
        self.acting_successes += other.acting_successes;
        self.other_successes += other.other_successes;
    }
}

fn clicks(turn: &Turn, label: &str) -> bool {
    matches!(&turn.action, Action::Click(clicked) if clicked.eq_ignore_ascii_case(label))
}

fn rate(count: usize, of: usize) -> Option<f64> {
    (of > 0).then(|| count as f64 / of as f64)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use webshop_agent::{BrowsingHabits, EpisodeCoordinates, ExpertPolicy, RolloutConfig, Task, rollout};
    use webshop_env::Shop;
    use webshop_products::{Catalog, GoalKind, GoalSet, Seed, generate};

    use super::*;

    const REJECTS_NOTHING: BrowsingHabits =
        BrowsingHabits { by_pairs: 1.0, reads_features: 1.0, ..BrowsingHabits::NONE };

    /// What the browsing expert reads in 60 episodes of a generated shop.
    fn reading(habits: BrowsingHabits) -> Reading {
        let data = generate(Seed(0), 40);
        let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Human, Seed(0)).unwrap();
        let shop = Arc::new(Shop::new(catalog, goals).unwrap());
        let at = EpisodeCoordinates::of_goal;
        let goals = shop.goals().goals().iter().take(60);
        let tasks: Vec<Task> = goals.map(|goal| Task::new(shop.clone(), at(goal.id))).collect();
        let mut expert = ExpertPolicy::browsing(10, habits, Seed(0));
        let limits = RolloutConfig { max_steps: 15, lanes: 8 };
        let episodes = rollout(&mut expert, &tasks, limits, &mut |_, _| ()).unwrap();
        let found = Reading::of_all(&episodes);
        assert_eq!(found.episodes, 60);
        found
    }

    #[test]
    fn decisions_are_counted_apart_by_what_the_note_says() {
        let keeps = reading(REJECTS_NOTHING);
        assert_eq!(keeps.fitting.rejection_rate(), Some(0.0));
        assert_eq!(keeps.not_fitting.rejection_rate(), Some(0.0));
        // Whoever rejects nothing acts on features if all products fit.
        assert!(keeps.acting > 0 && keeps.acting < keeps.reading, "{keeps:?}");
        assert!(keeps.acting_success_rate() > keeps.other_success_rate(), "{keeps:?}");
        let rejects_at_random = reading(BrowsingHabits { rejects_at_random: 1.0, ..REJECTS_NOTHING });
        let [fitting, not_fitting] =
            [rejects_at_random.fitting, rejects_at_random.not_fitting].map(|of| of.rejection_rate().unwrap());
        assert!(fitting > 0.5 && not_fitting > 0.5, "the last product is kept: {rejects_at_random:?}");
        let by_notes = reading(BrowsingHabits { rejects_by_notes: 1.0, ..REJECTS_NOTHING });
        assert_eq!(by_notes.fitting.rejection_rate(), Some(0.0));
        assert!(by_notes.not_fitting.rejection_rate() > Some(0.5), "{by_notes:?}");
        assert!(by_notes.acting > keeps.acting, "{by_notes:?}, {keeps:?}");
    }

    #[test]
    fn who_reads_nothing_does_not_act_on_features() {
        let found = reading(BrowsingHabits { reads_features: 0.0, ..REJECTS_NOTHING });
        assert_eq!((found.reading_rate(), found.acting_rate()), (Some(0.0), Some(0.0)));
        assert_eq!((found.fitting.rejection_rate(), found.acting_success_rate()), (None, None));
        assert!(found.other_success_rate() > Some(0.0));
    }
}
