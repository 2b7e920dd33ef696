//! Self-certainty: how far the model's distribution of a token is from the uniform one.
//!
//! With p the distribution over V ids before temperature, U the uniform distribution and z the logits, in
//! nats:
//!
//! ```text
//! kl_p_u         KL(p‖U) = Σᵢ pᵢ ln(V pᵢ)                the default
//! paper_literal  KL(p‖U) / V                           close to 0 for a large vocabulary
//! normalized     KL(p‖U) / ln V                        from 0 to 1
//! kl_u_p         KL(U‖p) = −ln V − (1/V) Σᵢ ln pᵢ        Kang et al. (arXiv 2502.18581)
//! intuitor_lse   logsumexp z − mean z = KL(U‖p) + ln V
//! top_k          1 − H(q) / ln |q|                     q: the k most probable ids, and the rest as one more
//! ```
//!
//! A [`Certainty`] computes in f64 from `ln p`, so that logits may be as large as f32 allows. An id of
//! probability 0 adds 0 to KL(p‖U); KL(U‖p) is then infinite, which is an error. Each value belongs to one
//! token; the caller averages them.

use serde::{Deserialize, Serialize};

use crate::error::LmError;

/// A measure of self-certainty; the formulas are in the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CertaintyKind {
    /// KL(p‖U), 0 to ln V.
    #[default]
    KlPU,
    /// KL(p‖U) / V.
    PaperLiteral,
    /// KL(p‖U) / ln V, 0 to 1; 0 if V is 1.
    Normalized,
    /// KL(U‖p), 0 or more.
    KlUP,
    /// logsumexp z − mean z, ln V or more.
    #[serde(alias = "logsumexp")]
    IntuitorLse,
    /// 1 minus the normalized entropy of the k most probable ids and the rest, 0 to 1.
    TopK,
}

/// A measure with its parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certainty {
    /// The measure.
    pub kind: CertaintyKind,
    /// k of [`CertaintyKind::TopK`].
    pub top_k: usize,
}

/// Tolerance of the sum of given probabilities, for values printed with three digits.
const SUM_TOLERANCE: f64 = 1e-2;
/// Least probability of the rest to count as a bucket, and lower bound of each bucket's probability.
const LEAST_REST: f64 = 1e-8;
const LEAST_PROBABILITY: f64 = 1e-12;

impl Certainty {
    /// The certainty of a token sampled from these logits, before temperature. An excluded id has the logit
    /// −∞.
    ///
    /// # Errors
    /// If there are no logits, if they are not a distribution, or if the certainty is infinite.
    ///
    /// ```
    /// use webshop_lm::{Certainty, CertaintyKind};
    /// let certainty = Certainty { kind: CertaintyKind::KlPU, top_k: 5 };
    /// // Two of four ids have probability 1/2: ln 4 − ln 2.
    /// let s = certainty.of_logits(&[7.0, 7.0, f32::NEG_INFINITY, f32::NEG_INFINITY]).unwrap();
    /// assert!((s - 2_f64.ln()).abs() < 1e-15);
    /// ```
    pub fn of_logits(self, logits: &[f32]) -> Result<f64, LmError> {
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        if logits.iter().any(|z| z.is_nan()) || !largest.is_finite() {
            return Err(refused("the logits are not a distribution"));
        }
        let above = |z: &f32| f64::from(*z) - f64::from(largest);
        let log_sum = libm::log(logits.iter().map(|z| libm::exp(above(z))).sum());
        self.of_log_probabilities(&logits.iter().map(|z| above(z) - log_sum).collect::<Vec<_>>())
    }

    /// The certainty of a token sampled with these probabilities, one for each id.
    ///
    /// # Errors
    /// If a probability is outside [0, 1], if the sum differs from 1 by more than 0.01, or if the certainty
    /// is infinite.
    pub fn of_probabilities(self, probabilities: &[f64]) -> Result<f64, LmError> {
        if !probabilities.iter().all(|p| (0.0..=1.0 + SUM_TOLERANCE).contains(p)) {
            return Err(refused("a probability is outside [0, 1]"));
        }
        let sum = probabilities.iter().fold(0.0, |sum, p| sum + p);
        if (sum - 1.0).abs() > SUM_TOLERANCE {
            return Err(refused(&format!("the probabilities sum to {sum} instead of 1")));
        }
        self.of_log_probabilities(&probabilities.iter().map(|p| libm::log(*p)).collect::<Vec<_>>())
    }

    fn of_log_probabilities(self, log_p: &[f64]) -> Result<f64, LmError> {
        let n_ids = log_p.len() as f64;
        let ln_n = libm::log(n_ids);
        // An id of probability 0 adds the limit of p ln p, which is 0.
        let kl_p_u = || {
            let terms = log_p.iter().filter(|ln_p| **ln_p > f64::NEG_INFINITY);
            terms.map(|ln_p| libm::exp(*ln_p) * (ln_p + ln_n)).sum::<f64>()
        };
        let surprise = || -log_p.iter().sum::<f64>() / n_ids;
        let certainty = match self.kind {
            CertaintyKind::KlPU => kl_p_u(),
            CertaintyKind::PaperLiteral => kl_p_u() / n_ids,
            CertaintyKind::Normalized if log_p.len() == 1 => 0.0,
            CertaintyKind::Normalized => kl_p_u() / ln_n,
            CertaintyKind::KlUP => surprise() - ln_n,
            CertaintyKind::IntuitorLse => surprise(),
            CertaintyKind::TopK => certainty_of_top_k(&most_probable(log_p, self.top_k)),
        };
        if certainty.is_finite() {
            Ok(certainty)
        } else {
            Err(refused(
                "an id has probability 0, so that KL(U‖p) is infinite; use logits or another measure",
            ))
        }
    }
}

fn refused(problem: &str) -> LmError {
    LmError::Certainty(problem.into())
}

/// The k largest probabilities in descending order.
fn most_probable(log_p: &[f64], k: usize) -> Vec<f64> {
    let mut found = log_p.to_vec();
    let descending = |a: &f64, b: &f64| b.total_cmp(a);
    if k < found.len() {
        found.select_nth_unstable_by(k, descending);
        found.truncate(k);
    }
    found.sort_unstable_by(descending);
    found.into_iter().map(libm::exp).collect()
}

/// 1 − H / ln n of the given probabilities and the rest up to 1, n in all; 1 if n is 1.
pub fn certainty_of_top_k(probabilities: &[f64]) -> f64 {
    let rest = 1.0 - probabilities.iter().sum::<f64>().clamp(0.0, 1.0);
    let mut buckets = probabilities.to_vec();
    buckets.extend((rest > LEAST_REST).then_some(rest));
    if buckets.len() <= 1 {
        return 1.0;
    }
    let sum: f64 = buckets.iter().sum();
    let entropy: f64 =
        buckets.iter().map(|p| (p / sum).max(LEAST_PROBABILITY)).map(|p| -p * libm::log(p)).sum();
    (1.0 - entropy / libm::log(buckets.len() as f64)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [CertaintyKind; 6] = [
        CertaintyKind::KlPU,
        CertaintyKind::PaperLiteral,
        CertaintyKind::Normalized,
        CertaintyKind::KlUP,
        CertaintyKind::IntuitorLse,
        CertaintyKind::TopK,
    ];

    fn of(kind: CertaintyKind) -> Certainty {
        Certainty { kind, top_k: 2 }
    }

    #[track_caller]
    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-12, "{value} is not {expected}");
    }

    #[test]
    fn each_measure_by_hand() {
        // p = 1/2, 1/4, 1/8, 1/8: Σ p ln p = −(1/2 + 2/4 + 3/8 + 3/8) ln 2 = −7/4 ln 2, and
        // KL(p‖U) = ln 4 − 7/4 ln 2 = ln 2 / 4.
        // −mean ln p = (1 + 2 + 3 + 3)/4 ln 2 = 9/4 ln 2, so KL(U‖p) = ln 2 / 4 too.
        // The two most probable ids and the rest have 1/2, 1/4, 1/4: H = 3/2 ln 2.
        let p = [0.125, 0.5, 0.125, 0.25];
        let ln_2 = 2_f64.ln();
        let expected =
            [ln_2 / 4.0, ln_2 / 16.0, 0.125, ln_2 / 4.0, 2.25 * ln_2, 1.0 - 1.5 * ln_2 / 3_f64.ln()];
        for (kind, expected) in ALL.into_iter().zip(expected) {
            near(of(kind).of_probabilities(&p).unwrap(), expected);
            // The same distribution as logits, whatever is added to all of them.
            let logits = p.map(|p| (p.log2() * ln_2 - 40.0) as f32);
            let s = of(kind).of_logits(&logits).unwrap();
            assert!((s - expected).abs() < 1e-5, "{kind:?}: {s} is not {expected}");
        }
    }

    #[test]
    fn uniform_and_certain_distributions() {
        for kind in [CertaintyKind::KlPU, CertaintyKind::PaperLiteral, CertaintyKind::KlUP] {
            near(of(kind).of_logits(&[3.0; 8]).unwrap(), 0.0);
        }
        near(of(CertaintyKind::IntuitorLse).of_logits(&[3.0; 8]).unwrap(), 8_f64.ln());
        let sure = [1.0, 0.0, 0.0, 0.0];
        near(of(CertaintyKind::KlPU).of_probabilities(&sure).unwrap(), 4_f64.ln());
        near(of(CertaintyKind::Normalized).of_probabilities(&sure).unwrap(), 1.0);
        assert!(of(CertaintyKind::TopK).of_probabilities(&sure).unwrap() > 1.0 - 1e-9);
        near(of(CertaintyKind::Normalized).of_probabilities(&[1.0]).unwrap(), 0.0);
        near(of(CertaintyKind::TopK).of_probabilities(&[1.0]).unwrap(), 1.0);
    }

    #[test]
    fn extreme_logits_do_not_overflow() {
        let logits = [f32::MAX, -f32::MAX, f32::MAX, 0.0];
        // p = 1/2, 0, 1/2, 0.
        near(of(CertaintyKind::KlPU).of_logits(&logits).unwrap(), 2_f64.ln());
        near(of(CertaintyKind::Normalized).of_logits(&logits).unwrap(), 0.5);
        // logsumexp z − mean z = MAX + ln 2 − MAX/4, where ln 2 is lost beside MAX.
        let s = of(CertaintyKind::IntuitorLse).of_logits(&logits).unwrap();
        assert!((s / (0.75 * f64::from(f32::MAX)) - 1.0).abs() < 1e-12, "{s}");
        for kind in ALL {
            assert!(of(kind).of_logits(&[f32::MIN; 3]).is_ok(), "{kind:?}");
        }
    }

    #[test]
    fn invalid_distributions_are_refused() {
        let logits = |logits: &[f32]| of(CertaintyKind::KlPU).of_logits(logits).unwrap_err().to_string();
        let none = "self-certainty: the logits are not a distribution";
        for bad in [&[][..], &[f32::NAN, 0.0], &[f32::INFINITY, 0.0], &[f32::NEG_INFINITY; 2]] {
            assert_eq!(logits(bad), none, "{bad:?}");
        }
        let given = |p: &[f64]| of(CertaintyKind::KlPU).of_probabilities(p).unwrap_err().to_string();
        assert!(given(&[0.5, 0.4]).ends_with(": the probabilities sum to 0.9 instead of 1"));
        assert!(given(&[]).ends_with(": the probabilities sum to 0 instead of 1"));
        for bad in [[1.5, -0.5], [f64::NAN, 1.0], [f64::INFINITY, 0.0]] {
            assert!(given(&bad).ends_with(": a probability is outside [0, 1]"), "{bad:?}");
        }
        let zero = of(CertaintyKind::KlUP).of_probabilities(&[1.0, 0.0]).unwrap_err().to_string();
        assert!(zero.contains("an id has probability 0"), "{zero}");
        assert!(of(CertaintyKind::KlUP).of_logits(&[0.0, f32::NEG_INFINITY]).is_err());
    }

    #[test]
    fn kinds_parse_by_name_and_alias() {
        let read = |name: &str| serde_json::from_value::<CertaintyKind>(name.into()).unwrap();
        for (name, kind) in
            ["kl_p_u", "paper_literal", "normalized", "kl_u_p", "intuitor_lse", "top_k"].into_iter().zip(ALL)
        {
            assert_eq!(read(name), kind);
        }
        assert_eq!(read("logsumexp"), CertaintyKind::IntuitorLse);
    }
}
