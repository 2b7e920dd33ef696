//! One episode to run.

use std::sync::Arc;

use webshop_env::{EnvConfig, Shop, ShopEnv};

use crate::episode::EpisodeCoordinates;
use crate::episode::prefix::EpisodePrefix;

/// One episode to run.
#[derive(Clone, Debug)]
pub struct Task {
    /// The shop.
    pub shop: Arc<Shop>,
    /// The goal, and the address of the random draws.
    pub coordinates: EpisodeCoordinates,
    /// The turns that are taken over from another episode for the same goal of the same shop.
    pub prefix: Option<EpisodePrefix>,
}

impl Task {
    /// An episode from its start.
    pub fn new(shop: Arc<Shop>, coordinates: EpisodeCoordinates) -> Self {
        Self { shop, coordinates, prefix: None }
    }

    /// An episode that continues `prefix` with the draws of this step and sample.
    pub fn fork(prefix: &EpisodePrefix, step: u64, sample: u64) -> Self {
        let coordinates = EpisodeCoordinates { step, sample, ..prefix.coordinates() };
        Self { shop: prefix.shop().clone(), coordinates, prefix: Some(prefix.clone()) }
    }

    /// The environment at the start of the task's goal.
    pub(crate) fn env(&self, max_steps: u32) -> ShopEnv {
        let config = EnvConfig { max_steps, ..EnvConfig::default() };
        let mut env = ShopEnv::new(Arc::clone(&self.shop), config);
        env.reset(self.coordinates.goal);
        env
    }
}
