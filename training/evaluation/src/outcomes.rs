//! Success on each goal of an evaluation, to compare two policies on the same goals.

use webshop_products::ProductIdx;

use crate::clustered::{Difference, clustered_difference};

/// Success on each goal, in the order of the goals, with the goal's product.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcomes {
    /// 1 for a success, else 0.
    successes: Vec<f64>,
    products: Vec<u32>,
}

impl Outcomes {
    /// Adds the next goal.
    pub fn push(&mut self, product: ProductIdx, is_success: bool) {
        self.successes.push(f64::from(u8::from(is_success)));
        self.products.push(product.0);
    }

    /// The success rate of `other` minus that of `self`, paired by goal and clustered by product. `None` if the
    /// products differ, so that the goals cannot be the same.
    pub fn difference_to(&self, other: &Self) -> Option<Difference> {
        (self.products == other.products)
            .then(|| clustered_difference(&self.successes, &other.successes, &self.products))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(of: &[(u32, bool)]) -> Outcomes {
        let mut outcomes = Outcomes::default();
        of.iter().for_each(|(product, success)| outcomes.push(ProductIdx(*product), *success));
        outcomes
    }

    #[test]
    fn outcomes_of_the_same_goals_are_compared() {
        let before = outcomes(&[(1, false), (1, false), (2, true)]);
        let after = outcomes(&[(1, true), (1, true), (2, true)]);
        let difference = before.difference_to(&after).unwrap();
        assert!((difference.mean - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(difference, clustered_difference(&[0.0, 0.0, 1.0], &[1.0; 3], &[1, 1, 2]));
        assert_eq!(before.difference_to(&outcomes(&[(1, true), (2, true), (2, true)])), None);
    }
}
