//! Experts as policies, to measure demonstrators beside the models that clone them.

use rand_chacha::ChaCha8Rng;
use webshop_products::{Purpose, Seed};

use crate::episode::{EpisodeCoordinates, ModelTurn};
use crate::error::AgentError;
use crate::expert::browsing::{BrowsingExpert, BrowsingHabits};
use crate::expert::turn::ExpertTurn;
use crate::expert::two_habits::{Expert, ExpertKind};
use crate::policies::policy::{Decision, LaneView, Policy};

/// The draws of the browsing expert.
const HABITS: Purpose = Purpose::new("habits");

/// Takes the turns of an expert that sees the first products of a results page. Where the expert has no episode, the
/// policy stops at once, without a purchase.
#[derive(Clone, Debug)]
pub struct ExpertPolicy {
    demonstrator: Demonstrator,
    results_shown: usize,
    /// The turns of each lane's episode, once they are known.
    lanes: Vec<Option<Vec<ExpertTurn>>>,
}

#[derive(Clone, Copy, Debug)]
enum Demonstrator {
    Thinking,
    Browsing(BrowsingHabits, Seed),
    StatedOptions,
}

impl ExpertPolicy {
    /// The thinking [`Expert`], which knows the goal's criteria but reads titles only. It has no episode for a goal
    /// where it finds no purchase of reward 1.
    pub fn thinking(results_shown: usize) -> Self {
        Self { demonstrator: Demonstrator::Thinking, results_shown, lanes: Vec::new() }
    }

    /// The [`BrowsingExpert`], which knows the instruction and the pages; `seed` decides between its habits.
    pub fn browsing(results_shown: usize, habits: BrowsingHabits, seed: Seed) -> Self {
        Self { demonstrator: Demonstrator::Browsing(habits, seed), results_shown, lanes: Vec::new() }
    }

    /// The rule `stated-options`, a [`BrowsingExpert`] with [`BrowsingHabits::STATED_OPTIONS`].
    pub fn stated_options(results_shown: usize) -> Self {
        Self { demonstrator: Demonstrator::StatedOptions, results_shown, lanes: Vec::new() }
    }

    fn turns(&self, view: &LaneView<'_>) -> Vec<ExpertTurn> {
        let turns = match self.demonstrator {
            Demonstrator::Thinking => {
                let expert = Expert::new(view.shop, self.results_shown);
                expert.episode(view.session.goal(), ExpertKind::Thinking)
            }
            Demonstrator::Browsing(habits, seed) => self.browse(view, habits, seed),
            Demonstrator::StatedOptions => self.browse(view, BrowsingHabits::STATED_OPTIONS, Seed(0)),
        };
        turns.unwrap_or_default()
    }

    fn browse(&self, view: &LaneView<'_>, habits: BrowsingHabits, seed: Seed) -> Option<Vec<ExpertTurn>> {
        let expert = BrowsingExpert::new(view.shop, self.results_shown, habits);
        let demonstrated = expert.episode(view.session.goal(), &mut rng(seed, view.coordinates))?;
        Some(demonstrated.turns)
    }

    fn decide(&mut self, view: &LaneView<'_>) -> Decision {
        if self.lanes[view.lane].is_none() {
            self.lanes[view.lane] = Some(self.turns(view));
        }
        let turns = self.lanes[view.lane].as_ref().expect("they were just set");
        match turns.get(view.turn) {
            None => Decision::Stop,
            Some(turn) => {
                let thought = Some(turn.thought.clone()).filter(|thought| !thought.is_empty());
                let recorded = ModelTurn { thought, ..ModelTurn::default() };
                Decision::Act { action: turn.action.clone(), turn: recorded }
            }
        }
    }
}

/// The generator of an episode.
fn rng(seed: Seed, at: EpisodeCoordinates) -> ChaCha8Rng {
    seed.rng(HABITS, &[at.step, at.shop, u64::from(at.goal.0), at.sample])
}

impl Policy for ExpertPolicy {
    fn name(&self) -> &'static str {
        match self.demonstrator {
            Demonstrator::Thinking => "expert",
            Demonstrator::Browsing(..) => "browsing-expert",
            Demonstrator::StatedOptions => "stated-options",
        }
    }

    fn begin_rollout(&mut self, n_lanes: usize) -> Result<(), AgentError> {
        self.lanes = vec![None; n_lanes];
        Ok(())
    }

    fn begin_episode(&mut self, lane: usize) {
        self.lanes[lane] = None;
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Decision>, AgentError> {
        Ok(lanes.iter().map(|view| self.decide(view)).collect())
    }
}
