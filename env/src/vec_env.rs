//! Many customers in one shop, stepped together.
//!
//! A [`VecEnv`] is a row of lanes over one shared [`Shop`]. [`VecEnv::step`] takes one action per
//! lane and shows the results by lane, whatever thread computed them; so the number of threads
//! cannot be observed. Each thread has its own share of the lanes, always the same, and results
//! stay there until the next step: whoever makes a page also clears it away, which allocators
//! reward.
//!
//! Lanes never reset by themselves: a lane whose episode is over answers with no-ops until
//! [`VecEnv::reset_lanes`].

use crate::action::Action;
use crate::session::Session;
use crate::shop::Shop;
use crate::shop_env::{EnvConfig, Observation, ShopEnv, Step, StepInfo};
use std::sync::{Arc, Mutex};
use webshop_products::GoalId;

/// A step takes some microseconds, so a thread must get a good handful to be worth waking.
const LANES_PER_THREAD: usize = 64;

/// A row of environments.
#[derive(Clone, Debug)]
pub struct VecEnv {
    lanes: Vec<ShopEnv>,
    /// What each lane has shown last.
    steps: Vec<Step>,
}

impl VecEnv {
    /// As many lanes as there are goals, each at the start of its goal.
    pub fn new(shop: &Arc<Shop>, config: EnvConfig, goals: &[GoalId]) -> VecEnv {
        let start = |&goal: &GoalId| {
            let mut lane = ShopEnv::new(Arc::clone(shop), config);
            let step = first_step(lane.reset(goal));
            (lane, step)
        };
        let (lanes, steps) = goals.iter().map(start).unzip();
        VecEnv { lanes, steps }
    }

    /// The number of lanes.
    pub fn n_lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The lanes, in order.
    pub fn lanes(&self) -> &[ShopEnv] {
        &self.lanes
    }

    /// What each lane has shown last; a lane at its start, as a step that earned nothing.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Takes one action per lane, and shows what it brought.
    ///
    /// # Panics
    /// If there are not as many actions as lanes.
    pub fn step(&mut self, actions: &[Action]) -> &[Step] {
        assert_eq!(actions.len(), self.lanes.len(), "one action per lane");
        self.for_each(|number, lane, step| *step = lane.step(&actions[number]));
        &self.steps
    }

    /// Starts new trips in some lanes, and shows where these begin and what the others have shown last.
    ///
    /// # Panics
    /// If there is no such lane, or a goal is not one of the shop's.
    pub fn reset_lanes(&mut self, trips: &[(usize, GoalId)]) -> &[Step] {
        let mut goals: Vec<Option<GoalId>> = vec![None; self.lanes.len()];
        for &(lane, goal) in trips {
            goals[lane] = Some(goal);
        }
        self.for_each(|number, lane, step| {
            if let Some(goal) = goals[number] {
                *step = first_step(lane.reset(goal));
            }
        });
        &self.steps
    }

    /// Goes on, in one lane, from where a session stands.
    ///
    /// # Panics
    /// If there is no such lane.
    pub fn resume_lane(&mut self, lane: usize, session: Session) -> &Step {
        self.steps[lane] = first_step(self.lanes[lane].resume(session));
        &self.steps[lane]
    }

    /// Does something in each lane, on the thread whose share it is in.
    fn for_each(&mut self, act: impl Fn(usize, &mut ShopEnv, &mut Step) + Sync) {
        let most_threads = self.lanes.len().div_ceil(LANES_PER_THREAD);
        let n_threads = rayon::current_num_threads().min(most_threads).max(1);
        let n_lanes = self.lanes.len().div_ceil(n_threads).max(1);
        let shares = self.lanes.chunks_mut(n_lanes).zip(self.steps.chunks_mut(n_lanes));
        let shares: Vec<_> = shares.map(Mutex::new).collect();
        rayon::broadcast(|thread| {
            let Some(share) = shares.get(thread.index()) else { return };
            let (lanes, steps) = &mut *share.lock().expect("each thread has a share of its own");
            for (at, (lane, step)) in lanes.iter_mut().zip(steps.iter_mut()).enumerate() {
                act(thread.index() * n_lanes + at, lane, step);
            }
        });
    }
}

/// The start of a trip, as a step that earned nothing.
fn first_step(observation: Observation) -> Step {
    Step { observation, reward: 0.0, terminated: false, truncated: false, info: StepInfo::default() }
}
