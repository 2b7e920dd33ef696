//! Many customers in one shop, stepped together.
//!
//! A [`VecEnv`] is a row of lanes over one shared [`Shop`]. [`VecEnv::step`] takes one action per
//! lane and returns the results by lane, whatever thread computed them; so the number of threads
//! cannot be observed.
//!
//! Lanes never reset by themselves: a lane whose episode is over answers with no-ops until
//! [`VecEnv::reset_lane`].

use crate::action::Action;
use crate::session::Session;
use crate::shop::Shop;
use crate::shop_env::{EnvConfig, Observation, ShopEnv, Step};
use rayon::prelude::*;
use std::sync::Arc;
use webshop_products::GoalId;

/// A step takes some microseconds, so a thread must get a good handful to be worth waking.
const LANES_PER_TASK: usize = 64;

/// A row of environments.
#[derive(Clone, Debug)]
pub struct VecEnv {
    lanes: Vec<ShopEnv>,
}

impl VecEnv {
    /// As many lanes as there are goals, each at the start of its goal.
    pub fn new(shop: &Arc<Shop>, config: EnvConfig, goals: &[GoalId]) -> VecEnv {
        let start = |&goal: &GoalId| {
            let mut lane = ShopEnv::new(Arc::clone(shop), config);
            lane.reset(goal);
            lane
        };
        VecEnv { lanes: goals.iter().map(start).collect() }
    }

    /// The number of lanes.
    pub fn n_lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The lanes, in order.
    pub fn lanes(&self) -> &[ShopEnv] {
        &self.lanes
    }

    /// What each lane shows.
    pub fn observations(&self) -> Vec<Observation> {
        self.lanes.iter().map(ShopEnv::observation).collect()
    }

    /// Takes one action per lane.
    ///
    /// # Panics
    /// If there are not as many actions as lanes.
    pub fn step(&mut self, actions: &[Action]) -> Vec<Step> {
        assert_eq!(actions.len(), self.lanes.len(), "one action per lane");
        self.lanes
            .par_iter_mut()
            .with_min_len(LANES_PER_TASK)
            .zip(actions)
            .map(|(lane, action)| lane.step(action))
            .collect()
    }

    /// Starts a new trip in one lane.
    ///
    /// # Panics
    /// If there is no such lane.
    pub fn reset_lane(&mut self, lane: usize, goal: GoalId) -> Observation {
        self.lanes[lane].reset(goal)
    }

    /// Goes on, in one lane, from where a session stands.
    ///
    /// # Panics
    /// If there is no such lane.
    pub fn resume_lane(&mut self, lane: usize, session: Session) -> Observation {
        self.lanes[lane].resume(session)
    }
}
