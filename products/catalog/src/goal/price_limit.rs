//! The price limit at the end of an instruction.

use std::fmt::Write;

use crate::catalog::price::Cents;
use crate::catalog::product::ProductIdx;
use crate::seed::{Purpose, Seed, below};
use webshop_pycompat::PythonRandom;

/// Limits are whole tens of dollars, from 10 to 990; in cents.
const STEP: i64 = 1_000;
const LAST: i64 = 99_000;

/// A limit is drawn among this many steps above the price.
const WINDOW: i64 = 4;

/// The limit that the original compares with if it draws none: a million dollars.
const UNSTATED: Cents = Cents(100_000_000);

/// The price limit of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PriceLimit {
    /// No limit.
    Free,
    /// A limit that the instruction does not state.
    Unstated(Cents),
    /// A limit that the instruction ends with.
    Stated(Cents),
}

impl PriceLimit {
    /// The larger of two distinct draws among the first four steps above `price`; no limit if fewer than two
    /// steps remain. The draw is addressed by product and instruction (0: synthetic).
    pub(crate) fn draw(price: Cents, seed: Seed, product: ProductIdx, instruction: usize) -> Self {
        let first = (price.0.div_euclid(STEP) + 1).max(1) * STEP;
        let n_steps = ((LAST - first).div_euclid(STEP) + 1).min(WINDOW);
        if n_steps < 2 {
            return Self::Free;
        }
        let coords = [u64::from(product.0), instruction as u64];
        let mut rng = seed.rng(Purpose::GOALS, &coords);
        let one = below(&mut rng, n_steps as usize);
        let other = below(&mut rng, n_steps as usize - 1);
        let other = if other < one { other } else { other + 1 };
        Self::Stated(Cents(first + one.max(other) as i64 * STEP))
    }

    /// Like [`PriceLimit::draw`], but with the original's generator and for a price that need not be whole
    /// cents; an unstated limit if fewer than two steps remain.
    pub(crate) fn draw_in_original(dollars: f64, random: &mut PythonRandom) -> Self {
        let above =
            (1..=LAST / STEP).map(|step| Cents(step * STEP)).filter(|limit| limit.dollars() > dollars);
        let window: Vec<Cents> = above.take(WINDOW as usize).collect();
        match random.sample(window.len() as u32, 2).as_deref() {
            Some(&[one, other]) => Self::Stated(window[one.max(other) as usize]),
            _ => Self::Unstated(UNSTATED),
        }
    }

    pub(crate) fn cents(self) -> Option<Cents> {
        match self {
            Self::Free => None,
            Self::Unstated(limit) | Self::Stated(limit) => Some(limit),
        }
    }

    /// The text appended to an instruction: `", and price lower than 40.00 dollars"` or nothing.
    pub(crate) fn text(self) -> String {
        let mut text = String::new();
        if let Self::Stated(Cents(cents)) = self {
            write!(text, ", and price lower than {}.{:02} dollars", cents / 100, cents % 100)
                .expect("writing to a string cannot fail");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All limits that 200 instructions draw for a price, in dollars.
    fn limits(price: i64) -> Vec<i64> {
        let mut limits: Vec<_> = (0..200)
            .filter_map(|at| PriceLimit::draw(Cents(price), Seed(0), ProductIdx(0), at).cents())
            .map(|limit| limit.0 / 100)
            .collect();
        limits.sort_unstable();
        limits.dedup();
        limits
    }

    #[test]
    fn a_limit_is_one_of_the_second_to_fourth_step_above_the_price() {
        assert_eq!(limits(1_234), [30, 40, 50]);
        assert_eq!(limits(1_000), [30, 40, 50]);
        assert_eq!(limits(999), [20, 30, 40]);
        assert_eq!(limits(0), [20, 30, 40]);
    }

    #[test]
    fn near_the_top_fewer_steps_remain_and_then_none() {
        assert_eq!(limits(96_000), [980, 990]);
        assert_eq!(limits(97_999), [990]);
        assert!(limits(98_000).is_empty());
        assert!(limits(200_000).is_empty());
    }

    #[test]
    fn the_text_is_that_of_the_original() {
        let limit = PriceLimit::Stated(Cents(4_000));
        assert_eq!(limit.text(), ", and price lower than 40.00 dollars");
        assert_eq!(PriceLimit::Free.text(), "");
        assert_eq!(PriceLimit::Unstated(UNSTATED).text(), "");
    }

    #[test]
    fn the_original_compares_fractions_of_a_cent_and_always_has_a_limit() {
        let limits = |dollars| -> Vec<i64> {
            let mut random = PythonRandom::new(0);
            let drawn = (0..200).map(|_| PriceLimit::draw_in_original(dollars, &mut random));
            let mut limits: Vec<i64> =
                drawn.filter_map(PriceLimit::cents).map(|limit| limit.0 / 100).collect();
            limits.sort_unstable();
            limits.dedup();
            limits
        };
        assert_eq!(
            limits(39.999),
            [50, 60, 70],
            "40, 50, 60 and 70 are above; the least is never the larger"
        );
        assert_eq!(limits(40.0), [60, 70, 80]);
        assert_eq!(limits(970.5), [990]);
        assert_eq!(limits(980.0), [1_000_000]);
    }
}
