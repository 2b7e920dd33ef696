//! The terms of the losses: weighted log-likelihoods, clipped ratios, and KL estimates.
//!
//! All are sums or means over the sampled tokens of one episode, scalars. lp — log π(yₜ), differentiable; old
//! — the same when the tokens were sampled; ref — the same under the reference. `[T]`, T ≥ 1.

use candle_core::{DType, Result, Tensor};
use serde::{Deserialize, Serialize};

use crate::math::{exp, mean_all, sum_all};

/// Log-probabilities of the sampled tokens of an episode. `[T]`
#[derive(Debug, Clone)]
pub struct LogProbs {
    /// Under the policy; differentiable.
    pub policy: Tensor,
    /// Under the frozen reference.
    pub reference: Tensor,
    /// Under the policy that sampled them, at sampling time.
    pub behaviour: Tensor,
}

impl LogProbs {
    /// Number of tokens.
    pub fn n_tokens(&self) -> Result<usize> {
        self.policy.dim(0)
    }

    /// log ρₜ: how far each token's log-probability has moved since it was sampled.
    pub(crate) fn log_ratios(&self) -> Result<Vec<f64>> {
        (&self.policy - &self.behaviour)?.to_dtype(DType::F64)?.to_vec1()
    }

    /// The `len` tokens from `start` on.
    pub fn narrow(&self, start: usize, len: usize) -> Result<Self> {
        let part = |tensor: &Tensor| tensor.narrow(0, start, len);
        Ok(Self {
            policy: part(&self.policy)?,
            reference: part(&self.reference)?,
            behaviour: part(&self.behaviour)?,
        })
    }
}

/// How the KL to the reference is estimated from a sampled token, with d = log π − log π_ref
/// (Schulman, "Approximating KL divergence", 2020).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KlEstimator {
    /// ½ d²; on policy, its expected gradient is the gradient of the KL (arXiv 2510.01555).
    K2,
    /// exp(−d) − 1 + d, as in the GRPO paper; its gradient is biased.
    K3,
}

/// A KL term of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KlTerm {
    /// Its weight, ≥ 0; 0 disables the term.
    #[serde(rename = "kl_coefficient")]
    pub coefficient: f64,
    /// Its estimator.
    #[serde(rename = "kl")]
    pub estimator: KlEstimator,
}

impl KlTerm {
    /// No KL term.
    pub(crate) const NONE: Self = Self { coefficient: 0.0, estimator: KlEstimator::K2 };

    /// Weight of a segment with this advantage: 0 if the advantage and the KL coefficient are both 0, else 1.
    pub(crate) fn weight_beside(self, advantage: f64) -> f64 {
        f64::from(u8::from(advantage != 0.0 || self.coefficient > 0.0))
    }

    /// coefficient · mean over tokens of the estimate; `None` if the coefficient is 0.
    pub(crate) fn of(self, log_probs: &LogProbs) -> Result<Option<Tensor>> {
        if self.coefficient == 0.0 {
            return Ok(None);
        }
        let d = (&log_probs.policy - &log_probs.reference)?; // [T]
        let estimate = match self.estimator {
            KlEstimator::K2 => (d.sqr()? * 0.5)?,
            KlEstimator::K3 => ((exp(&d.neg()?)? - 1.0)? + d)?,
        };
        Ok(Some((mean_all(&estimate)? * self.coefficient)?))
    }
}

/// `values` as a constant tensor with the dtype and device of `like`. `[T]`
pub(crate) fn constant(values: &[f64], like: &Tensor) -> Result<Tensor> {
    Tensor::from_slice(values, values.len(), like.device())?.to_dtype(like.dtype())
}

/// Σₜ cₜ · lpₜ.
pub(crate) fn weighted_likelihood(factors: &[f64], log_probs: &LogProbs) -> Result<Tensor> {
    sum_all(&(&log_probs.policy * constant(factors, &log_probs.policy)?)?)
}

/// Bounds of the probability ratio, beyond which a token has no gradient.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 2]", into = "[f64; 2]")]
pub struct Clip {
    /// ε below 1, in 0..1.
    pub low: f64,
    /// ε above 1, ≥ 0.
    pub high: f64,
}

impl From<[f64; 2]> for Clip {
    fn from([low, high]: [f64; 2]) -> Self {
        Self { low, high }
    }
}

impl From<Clip> for [f64; 2] {
    fn from(Clip { low, high }: Clip) -> Self {
        [low, high]
    }
}

impl Default for Clip {
    fn default() -> Self {
        Self { low: 0.2, high: 0.28 }
    }
}

/// A clip, or none: `[]` in configurations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct OptionalClip(pub Option<Clip>);

impl TryFrom<Vec<f64>> for OptionalClip {
    type Error = String;

    fn try_from(bounds: Vec<f64>) -> std::result::Result<Self, String> {
        match bounds[..] {
            [] => Ok(Self(None)),
            [low, high] => Ok(Self(Some(Clip { low, high }))),
            _ => Err("expected two bounds, or `[]` for none".into()),
        }
    }
}

impl From<OptionalClip> for Vec<f64> {
    fn from(OptionalClip(clip): OptionalClip) -> Self {
        clip.map_or_else(Self::new, |Clip { low, high }| vec![low, high])
    }
}

impl Default for KlTerm {
    fn default() -> Self {
        Self { coefficient: 0.02, estimator: KlEstimator::K2 }
    }
}

/// A scalar of the loss and the number of clipped tokens in it.
#[derive(Debug, Clone)]
pub struct Term {
    /// The scalar.
    pub value: Tensor,
    /// Number of tokens whose gradient is 0 because of the clip.
    pub n_clipped: usize,
}

impl From<Tensor> for Term {
    fn from(value: Tensor) -> Self {
        Self { value, n_clipped: 0 }
    }
}

impl Clip {
    /// Whether a token with ρ = exp(`log_ratio`) is past the bound on the side to which `advantage` pushes it.
    pub(crate) fn is_past(self, log_ratio: f64, advantage: f64) -> bool {
        let ratio = libm::exp(log_ratio);
        (advantage > 0.0 && ratio > 1.0 + self.high) || (advantage < 0.0 && ratio < 1.0 - self.low)
    }

    /// Σᵢ min( ρᵢ Aᵢ, clip(ρᵢ, 1 − low, 1 + high) Aᵢ ) with ρᵢ = exp(`log_ratios`ᵢ) and Aᵢ = `advantages`ᵢ.
    ///
    /// A term whose minimum is the clipped value adds that value and has a gradient of 0.
    pub(crate) fn surrogate(self, log_ratios: &Tensor, advantages: &[f64]) -> Result<Term> {
        let moved: Vec<f64> = log_ratios.to_dtype(DType::F64)?.to_vec1()?;
        let (mut factors, mut fixed, mut n_clipped) = (advantages.to_vec(), 0.0, 0);
        for (factor, log_ratio) in factors.iter_mut().zip(moved) {
            if self.is_past(log_ratio, *factor) {
                let bound = if *factor > 0.0 { 1.0 + self.high } else { 1.0 - self.low };
                fixed += bound * *factor;
                *factor = 0.0;
                n_clipped += 1;
            }
        }
        let free = sum_all(&(exp(log_ratios)? * constant(&factors, log_ratios)?)?)?;
        Ok(Term { value: (free + fixed)?, n_clipped })
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    #[test]
    fn a_clipped_ratio_has_a_value_but_no_gradient() {
        let ratios: [f64; 5] = [1.5, 1.5, 0.5, 0.5, 1.1];
        let log_ratios = ratios.map(f64::ln);
        let var = Var::new(&log_ratios, &Device::Cpu).unwrap();
        let clip = Clip { low: 0.2, high: 0.28 };
        let clipped = clip.surrogate(var.as_tensor(), &[1.0, -1.0, 1.0, -1.0, 2.0]).unwrap();
        // min(1.5, 1.28) + min(−1.5, −1.28) + min(.5, .8) + min(−.5, −.8) + 2.2 = 1.28 − 1.5 + .5 − .8 + 2.2
        let value = clipped.value.to_scalar::<f64>().unwrap();
        assert!((value - 1.68).abs() < 1e-12, "{value}");
        assert_eq!(clipped.n_clipped, 2);
        let gradient = clipped.value.backward().unwrap();
        let gradient = gradient.get(var.as_tensor()).unwrap().to_vec1::<f64>().unwrap();
        for (given, expected) in gradient.iter().zip([0.0, -1.5, 0.5, 0.0, 2.2]) {
            assert!((given - expected).abs() < 1e-12, "{gradient:?}");
        }
    }

    #[test]
    fn kl_estimates_follow_their_formulas() {
        let tensor = |values: &[f64]| {
            constant(values, &Tensor::zeros(1, candle_core::DType::F64, &Device::Cpu).unwrap())
        };
        let of = |estimator, coefficient| {
            let policy = tensor(&[-1.0, -2.0]).unwrap();
            let log_probs =
                LogProbs { behaviour: policy.clone(), policy, reference: tensor(&[-1.5, -1.0]).unwrap() };
            let term = KlTerm { coefficient, estimator }.of(&log_probs).unwrap();
            term.map(|term| term.to_scalar::<f64>().unwrap())
        };
        // d = .5 and −1: ½(.25 + 1)/2; (e^−.5 − 1 + .5 + e − 1 − 1)/2.
        assert!((of(KlEstimator::K2, 1.0).unwrap() - 0.3125).abs() < 1e-12);
        let k3 = ((-0.5_f64).exp() - 0.5 + 1.0_f64.exp() - 2.0) / 2.0;
        assert!((of(KlEstimator::K3, 2.0).unwrap() - 2.0 * k3).abs() < 1e-12);
        assert_eq!(of(KlEstimator::K3, 0.0), None);
    }
}
