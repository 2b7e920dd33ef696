//! Counts the bytes of a run, part by part.

use webshop_lm::Qwen2;
use webshop_lm::device::{ComputeDtype, DeviceMemory};

use crate::config::{Config, Method};
use crate::data::trajectory::{MicroBatch, Trajectory};
use crate::loss::AdvantageSource;
use crate::model::gradient::WAVE;
use crate::optimizer::bytes_of_moments;
use crate::setup::limits::{LANES, lanes_within};

/// Bytes of a run in one memory, part by part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryNeed {
    /// The shops with their indexes, measured.
    pub shops: u64,
    /// The weights that passes read, and on the CPU an adapter's matrices.
    pub weights: u64,
    /// Beside weights of another dtype the f32 masters; of an adapter on a device, its matrices and the weights without it.
    pub masters: u64,
    /// The frozen reference: nothing where it shares the weights, but for its adapter.
    pub reference: u64,
    /// The optimizer's averages.
    pub moments: u64,
    /// The sum of the gradients, and those on the way to it.
    pub gradients: u64,
    /// What passes keep for the gradient, side by side where the model is small.
    pub activations: u64,
    /// Of gradients and activations, what the allocator does not give back between passes, so that rollouts
    /// find it taken: all of it where the model is small and so its blocks are.
    pub kept: u64,
    /// The weights as they are packed to generate; on a device, activations and logits of rollouts.
    pub decoder: u64,
    /// Keys and values of all lanes, full.
    pub cache: u64,
    /// Copies while the reference is loaded or a checkpoint is written.
    pub copies: u64,
}

/// A run whose bytes are counted.
#[derive(Clone, Copy)]
pub(super) struct Run<'r> {
    pub(super) config: &'r Config,
    pub(super) model: &'r Qwen2,
    /// Like those that it learns from.
    pub(super) trajectories: &'r [Trajectory],
    /// Bytes of its shops.
    pub(super) shops: u64,
}

/// Bytes of f32 values.
fn floats(n: usize) -> u64 {
    (n * size_of::<f32>()) as u64
}

impl Run<'_> {
    /// All of it on the CPU backend.
    pub(super) fn on_cpu(&self) -> MemoryNeed {
        let Self { config, model, trajectories, shops } = *self;
        let (all, learnable, adapter) = (self.n_weights(), self.n_learnable(), self.n_adapter());
        let packed = MicroBatch::pack(trajectories, config.rl.micro_batch_tokens);
        let pass = |micro: &MicroBatch| model.pass_bytes(micro.ids.len(), micro.targets.len());
        let activations = packed.iter().map(pass).max().unwrap_or(0);
        let side_by_side = packed.len().min(WAVE).min(rayon::current_num_threads());
        // A gradient is made of a whole matrix, and then taken to those of its adapter.
        let (n_passes, on_the_way) = match model.is_wide() {
            true => (1, self.largest_learning()),
            false => (side_by_side, packed.len().min(WAVE) * learnable),
        };
        let gradients = floats(self.n_sums() * learnable + on_the_way);
        let activations = activations * n_passes as u64;
        MemoryNeed {
            shops,
            weights: floats(all + adapter),
            masters: 0,
            reference: floats(if adapter > 0 { adapter } else { all }),
            moments: self.moments(),
            gradients,
            activations,
            kept: if model.is_wide() { 0 } else { gradients + activations },
            decoder: floats(all),
            cache: (self.n_lanes() * self.capacity() * model.config().cache_bytes_per_token()) as u64,
            copies: self.moments(),
        }
    }

    /// What the GPU backend has on its device, with weights of `dtype` and at most `cache_bytes` of keys and values.
    pub(super) fn on_device(&self, dtype: ComputeDtype, cache_bytes: usize) -> MemoryNeed {
        let Self { config, model, trajectories, .. } = *self;
        let memory = DeviceMemory::new(model.config(), dtype);
        let (all, learnable) = (self.n_weights(), self.n_learnable());
        let packed = MicroBatch::pack(trajectories, config.rl.micro_batch_tokens);
        let pass = |micro: &MicroBatch| memory.pass(&micro.lengths, micro.targets.len());
        let longest = trajectories.iter().map(|trajectory| trajectory.ids.len()).max().unwrap_or(0);
        let max_context = config.prompt.max_context;
        let n_lanes = self.n_lanes().min(lanes_within(cache_bytes, memory.cached_token(), max_context));
        let (masters, gradients) = match model.adapter() {
            Some(_) => {
                let adapted = n_values(model, |name| self.learns(name));
                // Gradients of all weights, those of the adapter, and three f32 matrices while W + s · B A is made.
                let gradients = self.n_sums() * all + learnable + 3 * self.largest_learning();
                (memory.values(adapted) + floats(learnable), floats(gradients))
            }
            None if dtype == ComputeDtype::F32 => (0, floats(self.n_sums() * all)),
            None => (floats(all), floats(self.n_sums() * all)),
        };
        MemoryNeed {
            weights: memory.values(all),
            masters,
            reference: memory.values(all),
            moments: self.moments(),
            gradients,
            activations: packed.iter().map(pass).max().unwrap_or(0),
            decoder: memory.decoding(n_lanes * longest, n_lanes, self.capacity()),
            cache: (n_lanes * self.capacity() * memory.cached_token()) as u64,
            ..MemoryNeed::default()
        }
    }

    /// What the GPU backend has in the memory of the host.
    pub(super) fn beside_device(&self) -> MemoryNeed {
        MemoryNeed {
            shops: self.shops,
            weights: floats(self.n_weights() + self.n_adapter()),
            copies: floats(self.n_weights()).max(self.moments()),
            ..MemoryNeed::default()
        }
    }

    /// Values of the model without an adapter.
    fn n_weights(&self) -> usize {
        n_values(self.model, |_| true)
    }

    fn n_learnable(&self) -> usize {
        self.model.learnable().iter().map(|(_, var)| var.elem_count()).sum()
    }

    /// Values of the adapter, if there is one.
    fn n_adapter(&self) -> usize {
        if self.model.adapter().is_some() { self.n_learnable() } else { 0 }
    }

    /// Whether this parameter is trained, or has a module of the adapter.
    fn learns(&self, name: &str) -> bool {
        self.model.adapter().is_none_or(|lora| lora.modules().iter().any(|m| m.parameter == name))
    }

    /// Values of the largest parameter that is trained.
    fn largest_learning(&self) -> usize {
        let learning = self.model.parameters().iter().filter(|(name, _)| self.learns(name));
        learning.map(|(_, var)| var.elem_count()).max().unwrap_or(0)
    }

    /// Sums of gradients at a time: that of demonstrations is mixed with that of the loss.
    fn n_sums(&self) -> usize {
        if self.config.rl.demonstration_share > 0.0 { 2 } else { 1 }
    }

    fn moments(&self) -> u64 {
        let methods: [Method; 2] = [self.config.warm_start.optimizer, self.config.rl.optimizer];
        let moments = methods.map(|method| bytes_of_moments(method, self.model.learnable()));
        moments.into_iter().max().unwrap_or(0)
    }

    /// Episodes at a time.
    fn n_lanes(&self) -> usize {
        let config = self.config;
        let measured = config.evaluation.episodes.max(config.judgement.episodes);
        let has_values = config.loss().advantage_source() == AdvantageSource::Value;
        let referred = if has_values { config.rl.goals_per_step() * config.value.samples } else { 0 };
        LANES.min(config.rl.batch_episodes.max(measured).max(referred))
    }

    /// Tokens of a lane.
    fn capacity(&self) -> usize {
        self.config.prompt.max_context.min(self.model.config().max_position_embeddings)
    }
}

/// Values of the parameters of `model` with these names.
fn n_values(model: &Qwen2, counts: impl Fn(&str) -> bool) -> usize {
    let counted = model.parameters().iter().filter(|(name, _)| counts(name));
    counted.map(|(_, var)| var.elem_count()).sum()
}

impl MemoryNeed {
    /// While episodes are made.
    pub fn rollout(&self) -> u64 {
        self.held() + self.kept + self.decoder + self.cache
    }

    /// While gradients are made.
    pub fn training(&self) -> u64 {
        self.held() + self.gradients + self.activations
    }

    /// While the reference is loaded or a checkpoint is written.
    pub fn saving(&self) -> u64 {
        self.held() + self.copies
    }

    /// Both in the same memory.
    pub(super) fn plus(&self, other: &Self) -> Self {
        Self {
            shops: self.shops + other.shops,
            weights: self.weights + other.weights,
            masters: self.masters + other.masters,
            reference: self.reference + other.reference,
            moments: self.moments + other.moments,
            gradients: self.gradients + other.gradients,
            activations: self.activations + other.activations,
            kept: self.kept + other.kept,
            decoder: self.decoder + other.decoder,
            cache: self.cache + other.cache,
            copies: self.copies + other.copies,
        }
    }

    /// The largest of these.
    pub(crate) fn peak(&self) -> u64 {
        self.rollout().max(self.training()).max(self.saving())
    }

    fn held(&self) -> u64 {
        self.shops + self.weights + self.masters + self.reference + self.moments
    }
}

#[cfg(test)]
mod tests {
    use webshop_lm::lora::{Lora, LoraConfig};
    use webshop_lm::{Qwen2, Qwen2Config};
    use webshop_products::Seed;

    use super::*;

    fn trajectories() -> Vec<Trajectory> {
        let mut trajectory = Trajectory::new();
        trajectory.push_observation(&[1; 90]);
        trajectory.push_completion(&[2; 10], &[0.0; 10]);
        vec![trajectory]
    }

    #[test]
    fn an_adapter_needs_no_second_set_of_weights() {
        let overrides = ["rl.optimizer=adamw".to_owned()];
        let config = Config::resolve("test", "", &overrides).unwrap();
        let model = Qwen2::random(&Qwen2Config::small(300), Seed(0)).unwrap();
        let whole = Run { config: &config, model: &model, trajectories: &trajectories(), shops: 7 }.on_cpu();
        let n: usize = model.parameters().iter().map(|(_, var)| var.elem_count()).sum();
        assert_eq!(
            (whole.weights, whole.reference, whole.decoder),
            (4 * n as u64, 4 * n as u64, 4 * n as u64)
        );
        // The warm start's Muon has one average for a matrix, AdamW two of everything.
        assert_eq!(whole.moments, 8 * n as u64);
        assert_eq!(whole.kept, whole.gradients + whole.activations);
        assert_eq!(whole.rollout(), 7 + 4 * n as u64 * 5 + whole.kept + whole.cache);

        let lora = Lora::random(&model.matrices(), &LoraConfig::new(2, 4.0, &["q_proj"]), Seed(0)).unwrap();
        let adapted = model.adapted(lora).unwrap();
        let n_adapter: usize = adapted.learnable().iter().map(|(_, var)| var.elem_count()).sum();
        let run = Run { config: &config, model: &adapted, trajectories: &trajectories(), shops: 7 };
        let frugal = run.on_cpu();
        assert_eq!(frugal.weights, 4 * (n + n_adapter) as u64);
        assert_eq!((frugal.reference, frugal.moments), (4 * n_adapter as u64, 8 * n_adapter as u64));
        // One micro-batch: the sum and one gradient on its way.
        assert_eq!(frugal.gradients, 8 * n_adapter as u64);
        // On a device the frozen weights of the two matrices stand beside their sum with the adapter.
        let is_adapted = |(name, _): &&(String, _)| name.ends_with("q_proj.weight");
        let n_adapted: usize =
            adapted.parameters().iter().filter(is_adapted).map(|(_, var)| var.elem_count()).sum();
        let device = run.on_device(ComputeDtype::Bf16, usize::MAX);
        assert_eq!((device.weights, device.reference), (2 * n as u64, 2 * n as u64));
        assert_eq!(device.masters, (2 * n_adapted + 4 * n_adapter) as u64);
        assert_eq!(device.moments, 8 * n_adapter as u64);
        let mixed = Config::resolve("test", "", &["rl.demonstration_share=0.5".to_owned()]).unwrap();
        let mixed = Run { config: &mixed, ..run }.on_device(ComputeDtype::Bf16, usize::MAX);
        assert_eq!(mixed.gradients - device.gradients, 4 * n as u64, "two gradients of all weights");
    }

    #[test]
    fn a_device_has_masters_beside_bf16_weights_and_as_many_lanes_as_its_cache_holds() {
        let config = Config::resolve("test", "", &["rl.optimizer=adamw".to_owned()]).unwrap();
        let model = Qwen2::random(&Qwen2Config::small(300), Seed(0)).unwrap();
        let run = Run { config: &config, model: &model, trajectories: &trajectories(), shops: 7 };
        let n = run.n_weights() as u64;
        let [bf16, f32] =
            [ComputeDtype::Bf16, ComputeDtype::F32].map(|dtype| run.on_device(dtype, usize::MAX));
        assert_eq!([bf16.weights, bf16.masters, bf16.gradients, bf16.moments], [2 * n, 4 * n, 4 * n, 8 * n]);
        assert_eq!([f32.weights, f32.masters], [4 * n, 0]);
        assert_eq!(f32.cache, 2 * bf16.cache);
        let half = run.on_device(ComputeDtype::Bf16, bf16.cache as usize / 2);
        assert_eq!(2 * half.cache, bf16.cache);
        let host = run.beside_device();
        assert_eq!((host.shops, host.weights, host.peak()), (7, 4 * n, 7 + 4 * n + 8 * n));
        let together = host.plus(&bf16);
        assert_eq!(together.training(), 7 + (4 + 2 + 4 + 2 + 8 + 4) * n + bf16.activations);

        let mixed = Config::resolve("test", "", &["rl.demonstration_share=0.5".to_owned()]).unwrap();
        let mixed = Run { config: &mixed, ..run }.on_device(ComputeDtype::Bf16, usize::MAX);
        assert_eq!(mixed.gradients, 2 * bf16.gradients);
    }

    #[test]
    fn recomputation_needs_less_for_activations() {
        let config = Config::default();
        let model = Qwen2::random(&Qwen2Config { num_hidden_layers: 12, ..Qwen2Config::small(300) }, Seed(0));
        let model = model.unwrap();
        let trajectories = trajectories();
        let run = Run { config: &config, model: &model, trajectories: &trajectories, shops: 0 };
        let (kept, again) = (run.on_cpu().activations, model.clone().recomputing());
        let again = Run { model: &again, ..run }.on_cpu().activations;
        assert!(4 * again < kept, "{again} against {kept}");
    }
}
