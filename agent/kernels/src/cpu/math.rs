//! The exponential and the reductions shared by all CPU kernels.
//!
//! [`exp`] is a polynomial without branches. Loops over it compile to vector code, and it gives the same bits
//! on every machine, unlike the exponential of the C library. [`sum_of`], [`dot`] and [`max`] reduce in
//! [`LANES`] interleaved partial results that are combined in a fixed order. The domain is limited to the
//! inputs of softmax and sigmoid.

/// Number of interleaved partial results of a reduction: one 512-bit register of `f32`.
pub const LANES: usize = 16;

/// Below this, `exp` returns 0: the true value is under 1.7e-38, close to the smallest normal number.
const EXP_LOWEST: f32 = -87.0;
/// Above this, `exp` is constant (1.7e38) instead of overflowing.
const EXP_HIGHEST: f32 = 88.0;
/// Adding this number (1.5 · 2²³) rounds a small float to an integer held in its low bits.
const ROUNDER: f32 = 12_582_912.0;
/// ln 2 in two parts: the first has few enough bits that a small integer times it is exact.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// e to the power of `x`, relative error under 2e-7 between -87 and 88, 0 below, constant above.
///
/// NaN gives NaN.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let bounded = if x > EXP_HIGHEST { EXP_HIGHEST } else { x };
    let bounded = if bounded < EXP_LOWEST { EXP_LOWEST } else { bounded };
    // x = n ln 2 + r with |r| ≤ ln 2 / 2, and e^x = 2^n e^r.
    let shifted = bounded.mul_add(std::f32::consts::LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, bounded));
    // e^r by its Taylor series to r^7/5040, whose next term is under 5e-9 on this interval.
    let mut p = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = r.mul_add(p, coefficient);
    }
    let power_of_two = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    let value = p * power_of_two;
    if x < EXP_LOWEST { 0.0 } else { value }
}

/// Combines the partial results of a reduction pairwise, in a fixed order.
#[inline(always)]
fn fold(mut lanes: [f32; LANES], combine: impl Fn(f32, f32) -> f32) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = combine(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// Sum over `x` of `term`, in interleaved lanes.
#[inline(always)]
pub fn sum_of(x: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let mut chunks = x.chunks_exact(LANES);
    for chunk in &mut chunks {
        for i in 0..LANES {
            lanes[i] += term(chunk[i]);
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(chunks.remainder()) {
        *lane += term(value);
    }
    fold(lanes, |a, b| a + b)
}

/// Σ aᵢ bᵢ over the common length.
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let mut left = a.chunks_exact(LANES);
    let mut right = b.chunks_exact(LANES);
    for (a, b) in (&mut left).zip(&mut right) {
        for i in 0..LANES {
            lanes[i] = a[i].mul_add(b[i], lanes[i]);
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(left.remainder().iter().zip(right.remainder())) {
        *lane = a.mul_add(*b, *lane);
    }
    fold(lanes, |a, b| a + b)
}

/// The largest value; minus infinity for an empty slice. NaN values are ignored.
#[inline(always)]
pub fn max(x: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let mut chunks = x.chunks_exact(LANES);
    for chunk in &mut chunks {
        for i in 0..LANES {
            lanes[i] = larger(lanes[i], chunk[i]);
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(chunks.remainder()) {
        *lane = larger(*lane, value);
    }
    fold(lanes, larger)
}

/// Replaces the values of `x` by their exponentials relative to the largest value, the numerators of a softmax.
/// Returns the largest value and the sum of the numerators.
#[inline(always)]
pub(crate) fn softmax_numerators(x: &mut [f32]) -> (f32, f32) {
    let highest = max(x);
    for value in x.iter_mut() {
        *value = exp(*value - highest);
    }
    (highest, sum_of(x, |p| p))
}

/// Natural logarithm with the same bits on every machine; not vectorized.
pub fn ln(x: f32) -> f32 {
    libm::log(f64::from(x)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_agrees_with_double_precision() {
        let mut worst = 0.0_f64;
        for i in 0..=174_900 {
            let x = -87.0 + i as f32 * 0.001;
            let truth = f64::from(x).exp();
            worst = worst.max((f64::from(exp(x)) - truth).abs() / truth);
        }
        assert!(worst < 2e-7, "relative error {worst:e}");
    }

    #[test]
    fn exp_at_the_edges() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-87.5), 0.0);
        assert!(exp(f32::INFINITY).is_finite());
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn reductions_cover_the_remainder() {
        // 1 + 2 + … + 37 = 703; 1² + … + 37² = 17575.
        let x: Vec<f32> = (1..=37).map(|i| i as f32).collect();
        assert_eq!(sum_of(&x, |v| v), 703.0);
        assert_eq!(dot(&x, &x), 17575.0);
        assert_eq!(max(&x), 37.0);
        assert_eq!(max(&[]), f32::NEG_INFINITY);
    }
}
