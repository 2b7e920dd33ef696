//! Sampling the next token from logits.
//!
//! A [`Sampler`] turns a row of logits `z` and the [`Allowed`] tokens into the sampled distribution, and
//! makes one [`Draw`] from it:
//!
//! ```text
//! p(i) ∝ exp(zᵢ / temperature)     over the allowed tokens,
//! restricted to the smallest set of most probable tokens with mass top_p (ties by the lower id), renormalized
//! ```
//!
//! Log-probability and entropy are those of this final distribution, after constraint, temperature and
//! nucleus. The random number of a draw is a function of the seed and of [`SamplingCoordinates`], so a lane's
//! tokens do not depend on other lanes. Sums run in id order in f64.
//!
//! There are no repetition penalties: a policy gradient needs the probability of each token under a fixed
//! distribution. Training scores tokens under the same distribution (`scoring`), with the same code for the
//! nucleus (`nucleus`).

mod nucleus;
mod scoring;
#[cfg(test)]
mod tests;

use rand_chacha::rand_core::RngCore;
use webshop_products::Seed;

use crate::purpose;

use crate::error::LmError;
use crate::generation::constraint::Allowed;
use crate::generation::sampler::nucleus::NucleusEnd;
use webshop_kernels::cpu::rows::exp_all;

/// The parameters of the sampled distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    temperature: f32,
    top_p: f32,
}

/// The coordinates of one draw; together with the seed they determine its random number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SamplingCoordinates {
    /// The training step, or another number that distinguishes phases of a run.
    pub step: u64,
    /// The environment, if there are several.
    pub environment: u64,
    /// The task within the environment.
    pub task: u64,
    /// The sample among several for the task.
    pub sample: u64,
    /// The turn of the episode, from 0.
    pub turn: u64,
    /// The token of the turn, from 0.
    pub token: u64,
}

/// A sampled token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    /// The token.
    pub id: u32,
    /// Its log-probability in nats under the sampled distribution, at most 0.
    pub log_prob: f32,
    /// Entropy of that distribution in nats, at least 0.
    pub entropy: f32,
}

impl Draw {
    /// A token with probability 1.
    pub fn certain(id: u32) -> Self {
        Self { id, log_prob: 0.0, entropy: 0.0 }
    }
}

impl Sampler {
    /// A sampler with `temperature` ≥ 0 and nucleus `top_p` in (0, 1]. Temperature 0 takes the most probable
    /// token, ties by the lower id; `top_p` 1 keeps all tokens.
    pub fn new(temperature: f32, top_p: f32) -> Result<Self, LmError> {
        if !(temperature >= 0.0 && temperature.is_finite()) {
            return Err(LmError::Sampling(format!(
                "temperature `{temperature}` must be finite and at least 0"
            )));
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            return Err(LmError::Sampling(format!("top_p `{top_p}` must be above 0 and at most 1")));
        }
        Ok(Self { temperature, top_p })
    }

    /// The most probable token.
    pub const GREEDY: Self = Self { temperature: 0.0, top_p: 1.0 };

    /// The model's own distribution: temperature 1, all tokens.
    pub const UNTEMPERED: Self = Self { temperature: 1.0, top_p: 1.0 };

    /// The divisor of the logits; 0 means greedy.
    pub fn temperature(&self) -> f32 {
        self.temperature
    }

    /// Probability mass of the nucleus.
    pub fn top_p(&self) -> f32 {
        self.top_p
    }

    /// Draws one of the `allowed` tokens, given the logits of all V.
    ///
    /// Fails if a logit is not finite, if nothing is allowed, or if an allowed id has no logit.
    ///
    /// ```
    /// use webshop_lm::{Allowed, Sampler, SamplingCoordinates};
    /// use webshop_products::Seed;
    ///
    /// // The two allowed tokens have the odds e⁰ : e⁰, so either has the log-probability -ln 2.
    /// let draw = Sampler::UNTEMPERED.sample(&[0.0, 9.0, 0.0], Allowed::Only(&[0, 2]), Seed(1), Default::default())?;
    /// assert_ne!(draw.id, 1);
    /// assert!((draw.log_prob + 2f32.ln()).abs() < 1e-6);
    /// # Ok::<(), webshop_lm::LmError>(())
    /// ```
    pub fn sample(
        &self,
        logits: &[f32],
        allowed: Allowed<'_>,
        seed: Seed,
        at: SamplingCoordinates,
    ) -> Result<Draw, LmError> {
        let distribution = self.distribution(logits, allowed)?;
        let place = distribution.place_of(uniform(seed, at));
        Ok(Draw {
            id: distribution.id_of(place),
            log_prob: distribution.log_prob(place) as f32,
            entropy: distribution.entropy() as f32,
        })
    }

    /// Log-probability of `id` under the distribution that [`Sampler::sample`] would draw from; minus
    /// infinity if it would never draw it.
    pub fn log_prob(&self, logits: &[f32], allowed: Allowed<'_>, id: u32) -> Result<f32, LmError> {
        let distribution = self.distribution(logits, allowed)?;
        let place = (0..distribution.weights.len()).find(|place| distribution.id_of(*place) == id);
        Ok(place.map_or(f32::NEG_INFINITY, |place| distribution.log_prob(place) as f32))
    }

    /// The `n` most probable tokens of the distribution over all tokens with their log-probabilities, in
    /// descending order, ties by the lower id; fewer if only fewer can be drawn.
    ///
    /// ```
    /// use webshop_lm::Sampler;
    /// // Odds 1 : 2 : 1.
    /// let top = Sampler::UNTEMPERED.top(&[0.0, 2f32.ln(), 0.0], 2)?;
    /// assert_eq!((top[0].0, top[1].0), (1, 0));
    /// assert!((top[0].1 - 0.5f32.ln()).abs() < 1e-6);
    /// # Ok::<(), webshop_lm::LmError>(())
    /// ```
    pub fn top(&self, logits: &[f32], n: usize) -> Result<Vec<(u32, f32)>, LmError> {
        let distribution = self.distribution(logits, Allowed::All)?;
        let weights = &distribution.weights;
        let mut places: Vec<usize> = (0..weights.len()).filter(|&place| weights[place] > 0.0).collect();
        let by_rank = |a: &usize, b: &usize| weights[*b].total_cmp(&weights[*a]).then(a.cmp(b));
        if n < places.len() {
            places.select_nth_unstable_by(n, by_rank);
            places.truncate(n);
        }
        places.sort_unstable_by(by_rank);
        let scored = |place| (distribution.id_of(place), distribution.log_prob(place) as f32);
        Ok(places.into_iter().map(scored).collect())
    }

    fn distribution<'a>(&self, logits: &[f32], allowed: Allowed<'a>) -> Result<Distribution<'a>, LmError> {
        let scores = scores(logits, allowed)?;
        let (best, highest) = scores
            .iter()
            .copied()
            .enumerate()
            .reduce(|best, next| if next.1 > best.1 { next } else { best })
            .filter(|(_, highest)| *highest > f32::NEG_INFINITY)
            .ok_or_else(|| LmError::Sampling("no token is allowed".into()))?;
        let mut weights = vec![0.0; scores.len()];
        let mut exponents = scores;
        if self.temperature == 0.0 {
            exponents.fill(0.0);
            weights[best] = 1.0;
        } else {
            for exponent in &mut exponents {
                *exponent = (*exponent - highest) / self.temperature;
            }
            exp_all(&exponents, &mut weights);
        }
        let total = sum(&weights);
        let mut distribution = Distribution { allowed, exponents, weights, total };
        if self.top_p < 1.0 {
            distribution.keep_nucleus(f64::from(self.top_p));
        }
        Ok(distribution)
    }
}

/// The random number in [0, 1) of a draw.
pub(crate) fn uniform(seed: Seed, at: SamplingCoordinates) -> f64 {
    let coordinates = [at.step, at.environment, at.task, at.sample, at.turn, at.token];
    let bits = seed.rng(purpose::DECODING, &coordinates).next_u64() >> 11;
    bits as f64 / (1u64 << 53) as f64
}

/// Unnormalized probabilities of the candidates, in id order.
struct Distribution<'a> {
    allowed: Allowed<'a>,
    /// ln of each weight before the nucleus is applied.
    exponents: Vec<f32>,
    /// 0 for excluded candidates.
    weights: Vec<f32>,
    total: f64,
}

impl Distribution<'_> {
    fn id_of(&self, place: usize) -> u32 {
        match self.allowed {
            Allowed::All | Allowed::BelowBut(..) => place as u32,
            Allowed::Only(ids) => ids[place],
        }
    }

    /// Sets the weights of candidates outside the nucleus to 0.
    fn keep_nucleus(&mut self, top_p: f64) {
        let Some(end) = NucleusEnd::find(&self.weights, self.total, top_p) else {
            return;
        };
        for (place, weight) in self.weights.iter_mut().enumerate() {
            if !end.holds(*weight, place) {
                *weight = 0.0;
            }
        }
        self.total = sum(&self.weights);
    }

    /// The candidate at `quantile` in [0, 1) of the cumulative probability.
    fn place_of(&self, quantile: f64) -> usize {
        let target = quantile * self.total;
        let mut passed = 0.0;
        let mut last = 0;
        for (place, weight) in self.weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            passed += f64::from(*weight);
            last = place;
            if passed > target {
                break;
            }
        }
        last
    }

    fn log_prob(&self, place: usize) -> f64 {
        if self.weights[place] == 0.0 {
            return f64::NEG_INFINITY;
        }
        (f64::from(self.exponents[place]) - libm::log(self.total)).min(0.0)
    }

    /// −Σ p ln p, with ln p = exponent − ln total.
    fn entropy(&self) -> f64 {
        let moment: f64 = self
            .weights
            .iter()
            .zip(&self.exponents)
            .filter(|(weight, _)| **weight > 0.0)
            .map(|(weight, exponent)| f64::from(*weight) * f64::from(*exponent))
            .sum();
        (libm::log(self.total) - moment / self.total).max(0.0)
    }
}

/// Logits of the candidates in id order; minus infinity for forbidden ones.
fn scores(logits: &[f32], allowed: Allowed<'_>) -> Result<Vec<f32>, LmError> {
    if let Some(id) = logits.iter().position(|logit| !logit.is_finite()) {
        return Err(LmError::Sampling(format!("logit of token `{id}` is {}", logits[id])));
    }
    let logit = |id: &u32| logits.get(*id as usize).copied();
    match allowed {
        Allowed::Only(ids) => match ids.iter().find(|id| logit(id).is_none()) {
            Some(id) => Err(LmError::Sampling(format!("token `{id}` is not in the model's vocabulary"))),
            None => Ok(ids.iter().filter_map(logit).collect()),
        },
        Allowed::All => Ok(logits.to_vec()),
        Allowed::BelowBut(n_ids, forbidden) => {
            let mut scores = logits.to_vec();
            scores.iter_mut().skip(n_ids as usize).for_each(|score| *score = f32::NEG_INFINITY);
            for id in forbidden {
                if let Some(score) = scores.get_mut(*id as usize) {
                    *score = f32::NEG_INFINITY;
                }
            }
            Ok(scores)
        }
    }
}

fn sum(weights: &[f32]) -> f64 {
    weights.iter().map(|weight| f64::from(*weight)).sum()
}
