//! The thinking expert as a policy, for comparison with policies that do not know the goal.

use crate::episode::ModelTurn;
use crate::error::AgentError;
use crate::expert::turn::ExpertTurn;
use crate::expert::two_habits::{Expert, ExpertKind};
use crate::policies::policy::{Decision, LaneView, Policy};

/// Takes the turns of the thinking [`Expert`], which knows the goal's criteria but reads titles only. Where the
/// expert finds no purchase of reward 1 the episode ends at once, without a purchase.
#[derive(Clone, Debug)]
pub struct ExpertPolicy {
    results_shown: usize,
    /// The turns of each lane's episode, once they are known.
    lanes: Vec<Option<Vec<ExpertTurn>>>,
}

impl ExpertPolicy {
    /// An expert that sees the first `results_shown` products of a results page.
    pub fn new(results_shown: usize) -> Self {
        Self { results_shown, lanes: Vec::new() }
    }

    fn decide(&mut self, view: &LaneView<'_>) -> Decision {
        let expert = Expert::new(view.shop, self.results_shown);
        let demonstrate = || expert.episode(view.session.goal(), ExpertKind::Thinking).unwrap_or_default();
        let turns = self.lanes[view.lane].get_or_insert_with(demonstrate);
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

impl Policy for ExpertPolicy {
    fn name(&self) -> &'static str {
        "expert"
    }

    fn begin(&mut self, n_lanes: usize) -> Result<(), AgentError> {
        self.lanes = vec![None; n_lanes];
        Ok(())
    }

    fn enter(&mut self, lane: usize) {
        self.lanes[lane] = None;
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Decision>, AgentError> {
        Ok(lanes.iter().map(|view| self.decide(view)).collect())
    }
}
