//! Arithmetic with the same bits on every CPU: sums of losses in one order, exponentials, powers.

mod exp;
mod sum;

pub(crate) use crate::math::exp::exp;
pub(crate) use crate::math::sum::{mean_all, sum_all};

/// `base` to the power `n` by squaring in a fixed order; `powi` may round differently from one machine to
/// another.
pub(crate) fn power(base: f64, n: u64) -> f64 {
    match n {
        0 => 1.0,
        _ => {
            let half = power(base, n / 2);
            if n.is_multiple_of(2) { half * half } else { half * half * base }
        }
    }
}
