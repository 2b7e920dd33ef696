//! Many environments stepped in parallel.
//!
//! A [`VecEnv`] is a list of lanes, each a [`ShopEnv`]. [`VecEnv::step`] takes one action for every lane,
//! [`VecEnv::step_lanes`] for some; results are indexed by lane, whatever thread computed them, so the number
//! of threads cannot be observed. Lanes may belong to different shops. A policy reads a lane's page
//! ([`ShopEnv::page`]) or its [`Observation`], which is rendered on demand.
//!
//! Each thread has a fixed share of the lanes, and results stay there until the next step: the thread that
//! allocates a page also frees it, which allocators reward.
//!
//! Lanes never reset by themselves: a lane whose episode is over answers with no-ops until it is reset.

use crate::action::Action;
use crate::session::Session;
use crate::shop::Shop;
use crate::shop_env::{EnvConfig, ShopEnv, Step, StepInfo};
use std::sync::{Arc, Mutex};
use webshop_products::GoalId;

/// A step takes microseconds, so waking a thread is only worth it for many lanes.
const LANES_PER_THREAD: usize = 64;

/// A list of environments.
#[derive(Clone, Debug)]
pub struct VecEnv {
    lanes: Vec<ShopEnv>,
    /// The last step of each lane.
    steps: Vec<Step>,
}

impl VecEnv {
    /// One lane per goal, at the start of that goal.
    ///
    /// # Panics
    /// If a goal is not one of the shop's.
    pub fn new(shop: &Arc<Shop>, config: EnvConfig, goals: &[GoalId]) -> VecEnv {
        let lane = |&goal: &GoalId| {
            let mut lane = ShopEnv::new(Arc::clone(shop), config);
            lane.reset(goal);
            lane
        };
        VecEnv::from_lanes(goals.iter().map(lane).collect())
    }

    /// Lanes in any state, of one shop or of several.
    pub fn from_lanes(lanes: Vec<ShopEnv>) -> VecEnv {
        let steps = lanes.iter().map(first_step).collect();
        VecEnv { lanes, steps }
    }

    /// The number of lanes.
    pub fn n_lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The lanes in order.
    pub fn lanes(&self) -> &[ShopEnv] {
        &self.lanes
    }

    /// The last step of each lane; for a lane that has just been reset, resumed or replaced, a step with reward 0.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Takes one action in every lane and returns the last step of each.
    ///
    /// # Panics
    /// If there are not as many actions as lanes.
    pub fn step(&mut self, actions: &[Action]) -> &[Step] {
        assert_eq!(actions.len(), self.lanes.len(), "one action per lane");
        self.for_each(|number, lane, step| *step = lane.step(&actions[number]));
        &self.steps
    }

    /// Takes one action in each of some lanes and returns the last step of every lane.
    ///
    /// # Panics
    /// If there is no such lane, or a lane is named twice.
    pub fn step_lanes(&mut self, actions: &[(usize, Action)]) -> &[Step] {
        let chosen = self.by_lane(actions.iter().map(|(lane, action)| (*lane, action)));
        self.for_each(|number, lane, step| {
            if let Some(action) = chosen[number] {
                *step = lane.step(action);
            }
        });
        &self.steps
    }

    /// Starts new episodes in some lanes and returns the last step of every lane.
    ///
    /// # Panics
    /// If there is no such lane, a lane is named twice, or a goal is not one of its shop's.
    pub fn reset_lanes(&mut self, goals: &[(usize, GoalId)]) -> &[Step] {
        let goals = self.by_lane(goals.iter().copied());
        self.for_each(|number, lane, step| {
            if let Some(goal) = goals[number] {
                lane.reset(goal);
                *step = first_step(lane);
            }
        });
        &self.steps
    }

    /// Continues one lane from the state of `session`.
    ///
    /// # Panics
    /// If there is no such lane.
    pub fn resume_lane(&mut self, lane: usize, session: Session) -> &Step {
        self.lanes[lane].resume(session);
        self.steps[lane] = first_step(&self.lanes[lane]);
        &self.steps[lane]
    }

    /// Replaces one lane, possibly by one of another shop.
    ///
    /// # Panics
    /// If there is no such lane.
    pub fn replace_lane(&mut self, lane: usize, env: ShopEnv) -> &Step {
        self.steps[lane] = first_step(&env);
        self.lanes[lane] = env;
        &self.steps[lane]
    }

    /// The values by lane; `None` for lanes without one.
    fn by_lane<V: Clone>(&self, values: impl Iterator<Item = (usize, V)>) -> Vec<Option<V>> {
        let mut by_lane = vec![None; self.lanes.len()];
        for (lane, value) in values {
            assert!(by_lane[lane].is_none(), "lane {lane} is named twice");
            by_lane[lane] = Some(value);
        }
        by_lane
    }

    /// Calls `act` for each lane on the thread that has the lane in its share.
    fn for_each(&mut self, act: impl Fn(usize, &mut ShopEnv, &mut Step) + Sync) {
        let most_threads = self.lanes.len().div_ceil(LANES_PER_THREAD);
        let n_threads = rayon::current_num_threads().min(most_threads).max(1);
        let n_lanes = self.lanes.len().div_ceil(n_threads).max(1);
        if n_threads == 1 {
            let lanes = self.lanes.iter_mut().zip(&mut self.steps).enumerate();
            return lanes.for_each(|(number, (lane, step))| act(number, lane, step));
        }
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

/// The state of a lane as a step with reward 0.
fn first_step(lane: &ShopEnv) -> Step {
    let (terminated, truncated) = (lane.is_terminated(), lane.is_truncated());
    Step { observation: lane.observation(), reward: 0.0, terminated, truncated, info: StepInfo::default() }
}
