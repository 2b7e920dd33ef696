//! Batched generation of turns, with a KV cache for each lane.
//!
//! A [`Generator`] holds the contexts of many lanes. A [`Request`] gives a lane its next prompt; the lane
//! prefills it, samples until a stop token, and returns a [`Completion`], which becomes part of the context.
//!
//! ```text
//! context of a lane = prompt₀ completion₀ prompt₁ completion₁ …          at most `capacity` tokens
//! ```
//!
//! No token is prefilled twice. The last token of a completion is prefilled together with the next prompt.
//! With [`Context::Fresh`], the KV cache of the longest common prefix of the old context and the new prompt
//! is reused; only the rest is prefilled.
//!
//! **Batching.** Lanes have different lengths, and a lane that has stopped leaves the batch. The lanes of a
//! small model form groups of at most `LANES_PER_GROUP`, each decoded by one thread. For a wide model all
//! lanes are one group and the matrix products are divided among the threads. On the CPU backend a completion
//! depends only on the lane's context, the sampler and the coordinates, not on other lanes or the number of
//! threads.
//!
//! **GPU backend.** All lanes are one group. Tokens are sampled on the device if only the temperature changes
//! the distribution; otherwise the logits are copied to the host.
//!
//! **Forced tokens.** If a constraint allows a single token, it is taken without running the model, with
//! log-probability 0.

use rayon::prelude::*;

use crate::engine::Engine;
use crate::error::LmError;
use crate::generation::group::Group;
use crate::generation::request::{Completion, Context, GeneratorConfig, Request};
use webshop_kernels::cpu::threads::Threads;

/// Maximum number of lanes in a group of a small model: enough rows for efficient matrix products, few enough
/// that there are groups for several threads.
const LANES_PER_GROUP: usize = 16;

/// The contexts of many lanes, and the engine that continues them.
#[derive(Debug)]
pub struct Generator {
    engine: Engine,
    config: GeneratorConfig,
    pub(super) groups: Vec<Group>,
    /// Lanes of each group; the last may have fewer.
    lanes_per_group: usize,
}

impl Generator {
    /// A generator with empty contexts. Fails if the KV caches do not fit into the memory of the device.
    pub fn new(engine: impl Into<Engine>, config: GeneratorConfig) -> Result<Self, LmError> {
        let engine = engine.into();
        let lanes_per_group = match engine.threads() {
            // With few lanes, one group for each thread.
            Threads::One => config.n_lanes.div_ceil(rayon::current_num_threads()).min(LANES_PER_GROUP),
            Threads::All => config.n_lanes,
        };
        let lanes_per_group = lanes_per_group.max(1);
        let groups = (0..config.n_lanes).step_by(lanes_per_group).map(|first_lane| {
            let n_lanes = lanes_per_group.min(config.n_lanes - first_lane);
            let cache = engine.cache(n_lanes, config.capacity)?;
            Ok(Group { first_lane, cache, contexts: vec![Vec::new(); n_lanes] })
        });
        let groups = groups.collect::<Result<_, LmError>>()?;
        Ok(Self { engine, config, groups, lanes_per_group })
    }

    /// Replaces the engine by one of the same shape on the same device, and clears all lanes: their caches
    /// belong to the old weights.
    pub fn set_engine(&mut self, engine: impl Into<Engine>) {
        self.engine = engine.into();
        (0..self.config.n_lanes).for_each(|lane| self.clear_lane(lane));
    }

    /// The settings.
    pub fn config(&self) -> &GeneratorConfig {
        &self.config
    }

    /// Number of tokens in the context of `lane`.
    ///
    /// # Panics
    /// If there is no such lane; [`Generator::clear_lane`] and [`Generator::extend_context`] panic too.
    pub fn context_len(&self, lane: usize) -> usize {
        self.groups[lane / self.lanes_per_group].contexts[lane % self.lanes_per_group].len()
    }

    /// Empties the context of `lane`.
    pub fn clear_lane(&mut self, lane: usize) {
        let group = &mut self.groups[lane / self.lanes_per_group];
        group.cache.truncate_lane(lane % self.lanes_per_group, 0);
        group.contexts[lane % self.lanes_per_group].clear();
    }

    /// Appends tokens to the context of `lane`, or replaces the context with [`Context::Fresh`], without
    /// running the model, which prefills them together with the next prompt.
    pub fn extend_context(&mut self, lane: usize, context: Context, ids: &[u32]) {
        if context == Context::Fresh {
            self.clear_lane(lane);
        }
        self.groups[lane / self.lanes_per_group].contexts[lane % self.lanes_per_group].extend_from_slice(ids);
    }

    /// Generates one completion for each request, in their order.
    ///
    /// Fails if a request names a lane that does not exist or that another request names, if a lane's context
    /// is empty, or if a logit is not finite. After a failure the contexts are not usable.
    pub fn generate(&mut self, requests: &[Request]) -> Result<Vec<Completion>, LmError> {
        let mut of_group = vec![Vec::new(); self.groups.len()];
        let mut is_requested = vec![false; self.config.n_lanes];
        for (place, request) in requests.iter().enumerate() {
            match is_requested.get_mut(request.lane) {
                Some(seen) if !*seen => *seen = true,
                Some(_) => {
                    return Err(LmError::Sampling(format!("lane `{}` is requested twice", request.lane)));
                }
                None => {
                    return Err(LmError::Sampling(format!("there is no lane `{}`", request.lane)));
                }
            }
            of_group[request.lane / self.lanes_per_group].push(place);
        }
        let (engine, config) = (&self.engine, &self.config);
        let by_group: Vec<Vec<Completion>> = self
            .groups
            .par_iter_mut()
            .zip(&of_group)
            .map(|(group, places)| {
                group.generate(engine, config, places.iter().map(|place| &requests[*place]))
            })
            .collect::<Result<_, LmError>>()?;
        let mut completions: Vec<_> =
            of_group.into_iter().flatten().zip(by_group.into_iter().flatten()).collect();
        completions.sort_by_key(|(place, _)| *place);
        Ok(completions.into_iter().map(|(_, completion)| completion).collect())
    }
}
