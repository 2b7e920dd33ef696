//! Memory of a run before it starts.
//!
//! [`estimate_memory`] opens what the run would open on the host and counts the bytes of its peaks ([`MemoryNeed`]),
//! assuming episodes as long as demonstrations. It writes nothing, changes no weight, needs no GPU to count for one, and
//! says nothing about time.

mod need;
mod system;

pub use crate::estimate::need::MemoryNeed;

use webshop_lm::device::{Compute, ComputeDtype};

use crate::config::{Config, RlMode};
use crate::data::demonstrations::Demonstrations;
use crate::data::task_set::TaskSet;
use crate::data::trajectory::Trajectory;
use crate::error::{Result, TrainingError};
use crate::estimate::need::Run;
use crate::model::policy::PolicyModel;

/// Number of demonstrations that stand for the episodes of a batch.
const EXAMPLES: usize = 128;

/// The backend of a run that is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The CPU backend, in f32.
    Cpu,
    /// The GPU backend with its tensors in the memory of the host, as tests use it.
    GpuOnHost {
        /// Of weights and activations.
        dtype: ComputeDtype,
        /// Limit of its KV caches in bytes.
        cache_bytes: usize,
    },
    /// The GPU backend on a GPU.
    Gpu {
        /// Of weights and activations.
        dtype: ComputeDtype,
        /// Bytes of the GPU's memory; `None` if it is not known.
        memory: Option<u64>,
    },
}

impl Backend {
    /// That of an open device. Fails if the driver does not tell the GPU's memory.
    pub fn of(compute: &Compute) -> Result<Self> {
        let dtype = compute.dtype();
        Ok(match compute.describe()? {
            Some((_, memory)) => Self::Gpu { dtype, memory: Some(memory as u64) },
            None if compute.uses_cpu_backend() => Self::Cpu,
            None => Self::GpuOnHost { dtype, cache_bytes: compute.cache_bytes() },
        })
    }
}

/// The memory that a run needs and the memory that is there.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryEstimate {
    /// Parameters of the model; with an adapter, its own included.
    pub n_parameters: usize,
    /// Parameters that are trained.
    pub n_learnable: usize,
    /// Tokens of the few-shot examples in front of every prompt.
    pub n_example_tokens: usize,
    /// Bytes in the memory of the host, part by part.
    pub host: MemoryNeed,
    /// Available bytes of the host; `None` if the system does not say.
    pub available: Option<u64>,
    /// Bytes in the memory of the GPU; `None` if the run has none.
    pub gpu: Option<MemoryNeed>,
    /// Bytes of the GPU's memory; `None` if it is not known.
    pub gpu_memory: Option<u64>,
}

impl MemoryEstimate {
    /// Whether the run fits with a tenth of its peaks to spare, since estimates have been 8 % too low; `true` where the
    /// memory that is there is not known.
    pub fn fits(&self) -> bool {
        let fits = |need: &MemoryNeed, there: Option<u64>| {
            there.is_none_or(|bytes| need.peak() + need.peak() / 10 <= bytes)
        };
        fits(&self.host, self.available) && self.gpu.is_none_or(|gpu| fits(&gpu, self.gpu_memory))
    }
}

/// Estimates the memory of the run of `config` on `backend`. Refuses single-step mode, whose prompts are not episodes.
pub fn estimate_memory(config: &Config, backend: Backend) -> Result<MemoryEstimate> {
    if config.rl.mode == RlMode::SingleStep {
        let problem = "must be `multi_turn` here: the memory of single steps is not estimated".into();
        return Err(TrainingError::InvalidValue { key: "rl.mode".into(), problem });
    }
    let task_set = TaskSet::open(config)?;
    let shops = system::resident_bytes();
    let policy = PolicyModel::begin(config, &task_set)?;
    let episodes = demonstrations(config, &task_set, &policy)?;
    let elements = |parameters: &[(String, candle_core::Var)]| -> usize {
        parameters.iter().map(|(_, var)| var.elem_count()).sum()
    };
    let run = Run { config, model: &policy.model, trajectories: &episodes, shops: shops.unwrap_or_default() };
    let (host, gpu, gpu_memory) = match backend {
        Backend::Cpu => (run.on_cpu(), None, None),
        Backend::GpuOnHost { dtype, cache_bytes } => {
            (run.beside_device().plus(&run.on_device(dtype, cache_bytes)), None, None)
        }
        Backend::Gpu { dtype, memory } => {
            let cache_bytes = memory.map_or(usize::MAX, |bytes| Compute::cache_bytes_of_gpu(bytes as usize));
            (run.beside_device(), Some(run.on_device(dtype, cache_bytes)), memory)
        }
    };
    Ok(MemoryEstimate {
        n_parameters: elements(policy.model.parameters()),
        n_learnable: elements(policy.model.learnable()),
        n_example_tokens: policy.n_example_tokens()?,
        host,
        gpu,
        gpu_memory,
        // The run will hold what this process holds now.
        available: system::available_bytes()
            .map(|bytes| bytes + system::resident_bytes().unwrap_or_default()),
    })
}

/// Demonstrations as the run would draw them, with failed ones, which are longer.
fn demonstrations(config: &Config, task_set: &TaskSet, policy: &PolicyModel) -> Result<Vec<Trajectory>> {
    let demonstrations =
        Demonstrations { only_successful: false, ..Demonstrations::of_run(config, task_set, policy, 0)? };
    let batch = demonstrations.batch(0, EXAMPLES.min(config.rl.batch_episodes))?;
    if batch.is_empty() { Err(TrainingError::NothingToClone { step: 0 }) } else { Ok(batch) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(more: &[&str]) -> Config {
        let tiny = r#"
            catalog = { size = 30, auxiliary_shops = 1, auxiliary_products = 10 }
            rl = { batch_episodes = 8 }
            model = { from = "", hidden_size = 16, layers = 1, heads = 2, kv_heads = 1, head_dim = 8, intermediate_size = 16, vocab_size = 700 }
        "#;
        let more: Vec<String> = more.iter().map(|text| text.to_string()).collect();
        Config::resolve("test", tiny, &more).unwrap()
    }

    #[test]
    fn all_parameters_of_a_new_model_are_trained() {
        let estimate = estimate_memory(&config(&[]), Backend::Cpu).unwrap();
        assert_eq!(estimate.n_parameters, estimate.n_learnable);
        assert_eq!(estimate.host.weights, 4 * estimate.n_parameters as u64);
        assert_eq!(estimate.gpu, None);
    }

    #[test]
    fn a_gpu_holds_what_the_same_backend_holds_on_the_host() {
        let dtype = ComputeDtype::Bf16;
        let gpu = estimate_memory(&config(&[]), Backend::Gpu { dtype, memory: None }).unwrap();
        let on_host =
            estimate_memory(&config(&[]), Backend::GpuOnHost { dtype, cache_bytes: usize::MAX }).unwrap();
        let device = gpu.gpu.unwrap();
        assert_eq!(device.weights, 2 * gpu.n_parameters as u64);
        assert_eq!(on_host.host.cache, device.cache);
        assert_eq!(on_host.host.weights, gpu.host.weights + device.weights);
        assert!(gpu.fits(), "no memory is known that it does not fit into");
        let small = MemoryEstimate { gpu_memory: Some(device.peak()), ..gpu };
        assert!(!small.fits());
    }

    #[test]
    fn single_step_mode_is_refused() {
        let steps = config(&["prompt.format=\"shop-r1-minimal\"", "rl.mode=\"single_step\""]);
        let error = estimate_memory(&steps, Backend::Cpu).unwrap_err().to_string();
        assert!(error.contains("`rl.mode` must be `multi_turn` here"), "{error}");
    }

    #[test]
    fn a_run_fits_if_its_peak_and_a_tenth_are_available() {
        let need = MemoryNeed { weights: 100, reference: 100, ..MemoryNeed::default() };
        let known = MemoryEstimate {
            n_parameters: 25,
            n_learnable: 25,
            n_example_tokens: 0,
            host: need,
            available: Some(219),
            gpu: None,
            gpu_memory: None,
        };
        assert!(!known.fits());
        assert!(MemoryEstimate { available: Some(220), ..known.clone() }.fits());
        assert!(MemoryEstimate { available: None, ..known }.fits());
    }
}
