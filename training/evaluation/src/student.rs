//! Student's t distribution with a whole number of degrees of freedom.
//!
//! The probability is the finite sum of Abramowitz and Stegun (1964), "Handbook of Mathematical Functions", 26.7.3
//! and 26.7.4. With `θ = atan(t / √ν)`, `P(|T| < t)` is
//!
//! ```text
//! ν odd:   2/π · (θ + sin θ · (cos θ + 2/3 cos³ θ + 2·4/(3·5) cos⁵ θ + … up to cos^(ν−2) θ))
//! ν even:  sin θ · (1 + 1/2 cos² θ + 1·3/(2·4) cos⁴ θ + … up to cos^(ν−2) θ)
//! ```

use std::f64::consts::PI;

/// `P(|T| > t)` for a `t` of at least 0 and `df` degrees of freedom, the p-value of a two-sided test. 1 without
/// a degree of freedom. Below about 1e-12 it is rounding error, and at least 0.
pub(crate) fn two_sided_p(t: f64, df: usize) -> f64 {
    if df == 0 {
        return 1.0;
    }
    let angle = libm::atan(t / (df as f64).sqrt());
    let (sin, cos) = libm::sincos(angle);
    let is_odd = !df.is_multiple_of(2);
    let mut term = if is_odd { cos } else { 1.0 };
    let mut sum = if is_odd && df == 1 { 0.0 } else { term };
    // The exponents of the cosine: 1, 3, … or 0, 2, …, up to ν − 2.
    let mut exponent = if is_odd { 1 } else { 0 };
    while exponent + 2 + 2 <= df {
        exponent += 2;
        term *= cos * cos * (exponent as f64 - 1.0) / exponent as f64;
        sum += term;
    }
    let inside = if is_odd { 2.0 / PI * (angle + sin * sum) } else { sin * sum };
    (1.0 - inside).clamp(0.0, 1.0)
}

/// The `t` with `P(|T| > t) = 0.05` for `df` degrees of freedom: the 97.5 % quantile. Infinite without a degree
/// of freedom.
pub(crate) fn quantile_975(df: usize) -> f64 {
    if df == 0 {
        return f64::INFINITY;
    }
    // The quantile of one degree of freedom, 12.7, is the greatest.
    let (mut low, mut high) = (1.9, 13.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        match two_sided_p(middle, df) > 0.05 {
            true => low = middle,
            false => high = middle,
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_published_tables() {
        // Abramowitz and Stegun, table 26.10, column A = 0.95.
        let table = [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (10, 2.228), (29, 2.045), (120, 1.980)];
        for (df, expected) in table {
            let found = quantile_975(df);
            assert!((found - expected).abs() < 6e-4, "{df}: {found} is not {expected}");
        }
        assert!((quantile_975(100_000) - 1.959_96).abs() < 5e-5);
        assert_eq!(quantile_975(0), f64::INFINITY);
    }

    #[test]
    fn probabilities_are_those_of_the_closed_forms() {
        // ν = 1: 1 − 2/π · atan 1 = 1/2. ν = 2: 1 − t/√(2 + t²) = 1 − 1/√3. ν = 3, θ = atan(√3/√3) = π/4:
        // 1 − 2/π · (π/4 + 1/2) = 1/2 − 1/π. ν = 4, t = 2, θ = π/4: 1 − 1/√2 · (1 + 1/4).
        let expected = [
            (1.0, 1, 0.5),
            (1.0, 2, 1.0 - 1.0 / 3.0_f64.sqrt()),
            (3.0_f64.sqrt(), 3, 0.5 - 1.0 / PI),
            (2.0, 4, 1.0 - 1.25 / 2.0_f64.sqrt()),
        ];
        for (t, df, p) in expected {
            assert!((two_sided_p(t, df) - p).abs() < 1e-12, "{t} {df}");
        }
        assert_eq!((two_sided_p(0.0, 5), two_sided_p(3.0, 0)), (1.0, 1.0));
    }
}
