//! The critic of PPO: a linear function of the policy's hidden states, with an optimizer of its own.
//!
//! ```text
//! V(s) = b + (1/D) Σ_j w_j h_j(s)                       `ValueHead::values`
//! L    = Σ_k c_k ( V(s_k) − R_k )²                      `ValueHead::squared_error`; c_k — `ValueTarget::share`
//! ∂L/∂h(s_k) = 2 c_k ( V(s_k) − R_k ) w / D
//! ```
//!
//! h(s) — the final hidden state of the policy, after the last norm, at the token before the first one of a turn,
//! `[D]`. The factor 1/D is the output multiplier of "Tensor Programs V", arXiv 2203.03466, table 8: with it a step of
//! the optimizer changes a value by about the learning rate, whatever the width. w and b are 0 at the beginning, so
//! every value is 0 until a reward has been seen.
//!
//! A [`ValueHead`] holds the weights on the host on both backends and computes in f64, in order. A [`Critic`] is the
//! head with its moments. It is saved beside the policy in a checkpoint and belongs to no model folder. Returns and
//! advantages are computed by [`crate::loss::Ppo`].

use std::collections::HashMap;
use std::path::Path;

use candle_core::{Device, Tensor, Var, safetensors};
use rayon::prelude::*;

use crate::config::{Method, OptimizerConfig};
use crate::data::trajectory::{MicroBatch, Trajectory};
use crate::error::{Result, TrainingError};
use crate::model::network::Network;
use crate::optimizer::{Optimizer, StepOutcome, UpdateConfig};

/// Names of the parameters, `[D]` and `[1]`.
const NAMES: [&str; 2] = ["value_head.weight", "value_head.bias"];
/// The files of a critic in its folder.
const WEIGHTS: &str = "value_head.safetensors";
const MOMENTS: &str = "optimizer.safetensors";

/// The weights of a critic.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValueHead {
    weight: Vec<f32>,
    bias: f32,
}

/// What the value of one turn is trained on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueTarget {
    /// R, the return.
    pub(crate) value_return: f64,
    /// c, its weight in the loss.
    pub(crate) share: f64,
}

/// The squared error of the values of some turns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SquaredError {
    /// L.
    pub(crate) loss: f64,
    /// ∂L/∂w and ∂L/∂b.
    pub(crate) gradient: HeadGradient,
    /// ∂L/∂h of each turn, concatenated. `[K, D]`
    pub(crate) d_hidden: Vec<f32>,
}

/// The gradient of a head's weights.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeadGradient {
    weight: Vec<f64>,
    bias: f64,
}

impl HeadGradient {
    /// Adds another.
    pub(crate) fn add(&mut self, other: &Self) {
        self.weight.iter_mut().zip(&other.weight).for_each(|(sum, term)| *sum += term);
        self.bias += other.bias;
    }
}

impl ValueHead {
    /// V of each hidden state of `hidden` `[K, D]`.
    pub(crate) fn values(&self, hidden: &[f32]) -> Vec<f64> {
        let width = self.weight.len();
        let value = |state: &[f32]| {
            let products = state.iter().zip(&self.weight).map(|(h, w)| f64::from(*h) * f64::from(*w));
            f64::from(self.bias) + products.sum::<f64>() / width as f64
        };
        hidden.chunks_exact(width).map(value).collect()
    }

    /// The squared error of the values of `hidden` `[K, D]`, where `targets` has K elements.
    pub(crate) fn squared_error(&self, hidden: &[f32], targets: &[ValueTarget]) -> SquaredError {
        let width = self.weight.len();
        let mut gradient = HeadGradient { weight: vec![0.0; width], bias: 0.0 };
        let (mut loss, mut d_hidden) = (0.0, Vec::with_capacity(hidden.len()));
        let turns = hidden.chunks_exact(width).zip(self.values(hidden)).zip(targets);
        for ((state, value), target) in turns {
            let error = value - target.value_return;
            loss += target.share * error * error;
            let d_value = 2.0 * target.share * error;
            let d_product = d_value / width as f64;
            gradient.bias += d_value;
            gradient.weight.iter_mut().zip(state).for_each(|(d_w, h)| *d_w += d_product * f64::from(*h));
            d_hidden.extend(self.weight.iter().map(|w| (d_product * f64::from(*w)) as f32));
        }
        SquaredError { loss, gradient, d_hidden }
    }
}

/// The number, among the sampled tokens of consecutive turns, of the first token of each turn. `n_tokens` gives the
/// sampled tokens of each turn.
pub(crate) fn first_tokens(n_tokens: impl IntoIterator<Item = usize>) -> Vec<u32> {
    let start = |next: &mut usize, n| Some(std::mem::replace(next, *next + n) as u32);
    n_tokens.into_iter().scan(0, start).collect()
}

/// A value head in training.
#[derive(Debug)]
pub(crate) struct Critic {
    parameters: Vec<(String, Var)>,
    optimizer: Optimizer,
}

impl Critic {
    /// A critic of value 0 for hidden states of this width.
    pub(crate) fn new(width: usize, config: &OptimizerConfig) -> Result<Self> {
        let zeros = |(name, size): (&str, usize)| {
            Ok((name.to_owned(), Var::from_vec(vec![0.0_f32; size], size, &Device::Cpu)?))
        };
        let parameters = NAMES.into_iter().zip([width, 1]).map(zeros).collect::<Result<Vec<_>>>()?;
        let optimizer = Optimizer::new(Method::Adamw, config, &parameters);
        Ok(Self { parameters, optimizer })
    }

    /// The critic that [`Critic::save`] wrote to `folder`.
    pub(crate) fn load(width: usize, config: &OptimizerConfig, folder: &Path) -> Result<Self> {
        let Self { parameters, .. } = Self::new(width, config)?;
        let path = folder.join(WEIGHTS);
        let tensors =
            safetensors::load(&path, &Device::Cpu).map_err(|e| TrainingError::bad_file(&path, e))?;
        for (name, var) in &parameters {
            let tensor = tensors.get(name).filter(|tensor| tensor.dims() == var.dims());
            let missing =
                || TrainingError::bad_file(&path, format!("it has no `{name}` of {:?}", var.dims()));
            var.set(tensor.ok_or_else(missing)?)?;
        }
        let optimizer = Optimizer::load(Method::Adamw, config, &parameters, &folder.join(MOMENTS))?;
        Ok(Self { parameters, optimizer })
    }

    /// Writes weights and moments to `folder`, which it makes.
    pub(crate) fn save(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(|e| TrainingError::io("create", folder, e))?;
        let path = folder.join(WEIGHTS);
        let tensors = self.parameters.iter().map(|(name, var)| (name.clone(), var.as_tensor().clone()));
        let tensors: HashMap<String, Tensor> = tensors.collect();
        safetensors::save(&tensors, &path).map_err(|e| TrainingError::bad_file(&path, e))?;
        self.optimizer.save(&folder.join(MOMENTS))
    }

    /// The current weights.
    pub(crate) fn head(&self) -> Result<ValueHead> {
        let [weight, bias] = [0, 1].map(|place| self.parameters[place].1.to_vec1::<f32>());
        Ok(ValueHead { weight: weight?, bias: bias?[0] })
    }

    /// One step of AdamW at the rate `lr`, without clipping; a gradient that is not finite changes nothing.
    pub(crate) fn step(&mut self, gradient: &HeadGradient, lr: f64) -> Result<StepOutcome> {
        let weight = gradient.weight.iter().map(|slope| *slope as f32).collect();
        let mut gradients = [weight, vec![gradient.bias as f32]];
        self.optimizer.step(&self.parameters, &mut gradients, UpdateConfig { lr, grad_clip: 0.0 })
    }

    /// V before each turn of each trajectory under the weights of `policy`. `turns[i]` gives the sampled tokens of each
    /// turn of `batch[i]`.
    pub(crate) fn values(
        &self,
        policy: &Network,
        batch: &[Trajectory],
        turns: &[Vec<usize>],
        limit_tokens: usize,
    ) -> Result<Vec<Vec<f64>>> {
        let head = self.head()?;
        let of_micro = |micro: &MicroBatch| -> Result<Vec<f64>> {
            let first = first_tokens(micro.members.iter().flat_map(|&member| &turns[member]).copied());
            let positions: Vec<u32> = first.iter().map(|&token| micro.positions[token as usize]).collect();
            Ok(head.values(&policy.hidden_states(micro, &positions)?))
        };
        let packed = policy.pack(batch, limit_tokens);
        let parts: Vec<Result<Vec<f64>>> = match policy {
            Network::Cpu(_) => packed.par_iter().map(of_micro).collect(),
            Network::Device(_) => packed.iter().map(of_micro).collect(),
        };
        let all = parts.into_iter().collect::<Result<Vec<_>>>()?.concat();
        let mut rest = all.into_iter();
        Ok(turns.iter().map(|turns| rest.by_ref().take(turns.len()).collect()).collect())
    }
}

#[cfg(test)]
mod tests {
    use webshop_lm::device::{Compute, ComputeDtype, DeviceRequest, KernelChoice};
    use webshop_lm::{Qwen2, Qwen2Config};
    use webshop_products::Seed;

    use super::*;

    fn head() -> ValueHead {
        ValueHead { weight: vec![1.0, -2.0], bias: 0.5 }
    }

    #[test]
    fn the_gradient_of_the_squared_error_is_exact() {
        let targets = [(1.0, 0.5), (0.0, 0.25)];
        let targets = targets.map(|(value_return, share)| ValueTarget { value_return, share });
        let error = head().squared_error(&[3.0, 1.0, 1.0, 2.0], &targets);
        // V = .5 + (3 − 2)/2 = 1 and .5 + (1 − 4)/2 = −1: errors 0 and −1, loss .25 · 1.
        // ∂L/∂V₂ = 2 · .25 · −1 = −.5; ∂L/∂w = −.25 · (1, 2); ∂L/∂h₂ = −.25 · (1, −2).
        assert_eq!(head().values(&[3.0, 1.0, 1.0, 2.0]), [1.0, -1.0]);
        let gradient = HeadGradient { weight: vec![-0.25, -0.5], bias: -0.5 };
        assert_eq!(error, SquaredError { loss: 0.25, gradient, d_hidden: vec![0.0, 0.0, -0.25, 0.5] });
    }

    #[test]
    fn turns_begin_where_the_tokens_before_them_end() {
        assert_eq!(first_tokens([3, 1, 2]), [0, 3, 4]);
        assert!(first_tokens([]).is_empty());
    }

    /// Hidden states of the given width, all different, of either sign.
    fn states(n: usize, width: usize) -> Vec<f32> {
        (0..n * width).map(|i| ((i * 37 % 101) as f32 * 0.7).sin()).collect()
    }

    #[test]
    fn a_critic_learns_a_constant_at_every_width() {
        for width in [16, 256] {
            let mut critic = Critic::new(width, &OptimizerConfig::default()).unwrap();
            let hidden = states(5, width);
            assert_eq!(critic.head().unwrap().values(&hidden), [0.0; 5], "no value before a reward");
            let target = ValueTarget { value_return: 0.7, share: 0.2 };
            for _ in 0..500 {
                let error = critic.head().unwrap().squared_error(&hidden, &[target; 5]);
                critic.step(&error.gradient, 0.02).unwrap();
            }
            for value in critic.head().unwrap().values(&hidden) {
                assert!((value - 0.7).abs() < 0.01, "width {width}: {value}");
            }
        }
    }

    #[test]
    fn a_critic_tells_states_apart() {
        let mut critic = Critic::new(8, &OptimizerConfig::default()).unwrap();
        let hidden = states(3, 8);
        let targets = [1.0, 0.0, 0.5].map(|value_return| ValueTarget { value_return, share: 1.0 / 3.0 });
        let loss = |critic: &Critic| critic.head().unwrap().squared_error(&hidden, &targets).loss;
        let before = loss(&critic);
        for _ in 0..200 {
            let error = critic.head().unwrap().squared_error(&hidden, &targets);
            critic.step(&error.gradient, 0.02).unwrap();
        }
        assert!(loss(&critic) < 0.01 * before, "{} of {before}", loss(&critic));
    }

    #[test]
    fn a_saved_critic_goes_on_as_it_would_have() {
        let folder = tempfile::tempdir().unwrap();
        let config = OptimizerConfig::default();
        let mut critic = Critic::new(2, &config).unwrap();
        let gradient = HeadGradient { weight: vec![0.1, -0.2], bias: 0.3 };
        critic.step(&gradient, 0.1).unwrap();
        critic.save(folder.path()).unwrap();
        let mut loaded = Critic::load(2, &config, folder.path()).unwrap();
        for critic in [&mut critic, &mut loaded] {
            critic.step(&gradient, 0.1).unwrap();
        }
        assert_eq!(loaded.head().unwrap(), critic.head().unwrap());
        let error = Critic::load(3, &config, folder.path()).unwrap_err().to_string();
        assert!(error.contains("it has no `value_head.weight` of [3]"), "{error}");
    }

    #[test]
    fn values_are_read_before_the_first_token_of_each_turn_on_both_backends() {
        let model = Qwen2::random(&Qwen2Config::small(50), Seed(1)).unwrap();
        let width = model.config().hidden_size;
        let mut trajectory = Trajectory::new();
        for turn in 0..2 {
            trajectory.push_observation(&[1 + turn, 2, 3]);
            trajectory.push_completion(&[4, 5 + turn], &[0.0; 2]);
        }
        let completions = [7, 8].map(|id| Trajectory::completion(&[9, 10], &[id, id], &[0.0; 2]));
        let batch = [&[trajectory.clone()][..], &completions].concat();
        let turns = [vec![2, 2], vec![2], vec![2]];
        let mut critic = Critic::new(width, &OptimizerConfig::default()).unwrap();
        let gradient = HeadGradient { weight: (0..width).map(|i| (i as f64).sin()).collect(), bias: 1.0 };
        critic.step(&gradient, 1.0).unwrap();
        // What precedes the turns: positions 2 and 7 of the episode, the ends of the prompts.
        let at = |ids: &[u32], positions: &[u32]| {
            let tokens = webshop_lm::PackedTokens { ids, lengths: &[ids.len()], prefix_of: &[] };
            critic.head().unwrap().values(&model.hidden_states(&tokens, positions).unwrap())
        };
        let prompt = at(&[9, 10], &[1]);
        let expected = [at(&trajectory.ids, &[2, 7]), prompt.clone(), prompt];
        for choice in [KernelChoice::Custom, KernelChoice::Reference] {
            let compute = Compute::choose(DeviceRequest::Cpu, Some(ComputeDtype::F32), choice).unwrap();
            let network = Network::new(&model, &compute).unwrap();
            for limit_tokens in [4, 100] {
                let values = critic.values(&network, &batch, &turns, limit_tokens).unwrap();
                for (values, expected) in values.iter().zip(&expected) {
                    assert_eq!(values.len(), expected.len());
                    for (value, expected) in values.iter().zip(expected) {
                        assert!((value - expected).abs() < 1e-4, "{choice:?}: {value} for {expected}");
                    }
                }
            }
        }
        assert!((expected[0][0] - expected[0][1]).abs() > 1e-3, "the values of the turns differ");
    }
}
