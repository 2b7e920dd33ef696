//! Memory of a run on the CPU, before it starts. GPU memory is not counted.
//!
//! [`estimate_memory`] opens what the run would open and counts the bytes of its peaks ([`MemoryNeed`]),
//! assuming episodes as long as demonstrations. It writes nothing, changes no weight, and says nothing about
//! time.

mod need;
mod system;

pub use crate::estimate::need::MemoryNeed;

use webshop_products::Seed;

use crate::config::{Config, RlMode};
use crate::data::demonstrations::Demonstrations;
use crate::data::task_set::TaskSet;
use crate::data::trajectory::Trajectory;
use crate::error::{Result, TrainingError};
use crate::model::policy::PolicyModel;

/// Number of demonstrations that stand for the episodes of a batch.
const EXAMPLES: usize = 128;

/// The memory that a run needs and the memory that is there.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryEstimate {
    /// Parameters of the model; with an adapter, its own included.
    pub n_parameters: usize,
    /// Parameters that are trained.
    pub n_learnable: usize,
    /// Tokens of the worked examples in front of every prompt.
    pub n_example_tokens: usize,
    /// Bytes, part by part.
    pub need: MemoryNeed,
    /// Available bytes; `None` if the system does not say.
    pub available: Option<u64>,
}

impl MemoryEstimate {
    /// Bytes at the peak of the run.
    pub(crate) fn peak(&self) -> u64 {
        self.need.peak()
    }

    /// Whether the run fits with a tenth of its peak to spare, since estimates have been 8 % too low; `true` if the
    /// available memory is not known.
    pub fn fits(&self) -> bool {
        self.available.is_none_or(|available| self.peak() + self.peak() / 10 <= available)
    }
}

/// Estimates the memory of the run of `config` on this machine. Refuses single-step mode, whose prompts are
/// not episodes.
pub fn estimate_memory(config: &Config) -> Result<MemoryEstimate> {
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
    Ok(MemoryEstimate {
        n_parameters: elements(policy.model.parameters()),
        n_learnable: elements(policy.model.learnable()),
        n_example_tokens: policy.n_example_tokens()?,
        need: MemoryNeed::of(config, &policy.model, &episodes, shops.unwrap_or_default()),
        // The run will hold what this process holds now.
        available: system::available_bytes()
            .map(|bytes| bytes + system::resident_bytes().unwrap_or_default()),
    })
}

/// Demonstrations as the run would draw them.
fn demonstrations(config: &Config, task_set: &TaskSet, policy: &PolicyModel) -> Result<Vec<Trajectory>> {
    let demonstrations = Demonstrations {
        task_set,
        tokenizer: &policy.tokenizer,
        demonstrator: policy.demonstrator(config)?,
        results_shown: config.prompt.results_shown,
        max_context: config.prompt.max_context,
        max_turn_tokens: config.prompt.max_turn_tokens,
        max_steps: config.run.max_steps,
        config: &config.warm_start,
        only_successful: false,
        seed: Seed(config.seed),
    };
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
        let estimate = estimate_memory(&config(&[])).unwrap();
        assert_eq!(estimate.n_parameters, estimate.n_learnable);
        assert_eq!(estimate.need.weights, 4 * estimate.n_parameters as u64);
    }

    #[test]
    fn single_step_mode_is_refused() {
        let steps = config(&["prompt.format=\"shop-r1-minimal\"", "rl.mode=\"single_step\""]);
        let error = estimate_memory(&steps).unwrap_err().to_string();
        assert!(error.contains("`rl.mode` must be `multi_turn` here"), "{error}");
    }

    #[test]
    fn a_run_fits_if_its_peak_and_a_tenth_are_available() {
        let need = MemoryNeed { weights: 100, reference: 100, ..MemoryNeed::default() };
        let known = MemoryEstimate {
            n_parameters: 25,
            n_learnable: 25,
            n_example_tokens: 0,
            need,
            available: Some(219),
        };
        assert!(!known.fits());
        assert!(MemoryEstimate { available: Some(220), ..known.clone() }.fits());
        assert!(MemoryEstimate { available: None, ..known }.fits());
    }
}
