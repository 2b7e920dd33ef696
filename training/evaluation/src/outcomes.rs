//! Success on each goal of an evaluation, to compare two policies on the same goals.

use webshop_products::ProductIdx;

use crate::clustered::{Difference, clustered_difference, product_means};

/// A product of one of several shops: the unit of intervals. Products of different shops are different.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShopProduct {
    /// The number of the shop, as in [`EpisodeCoordinates`](webshop_agent::EpisodeCoordinates).
    pub shop: u64,
    /// The product in that shop.
    pub product: ProductIdx,
}

/// Success on each goal, in the order of the goals, with the goal's product.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcomes {
    /// 1 for a success, else 0.
    successes: Vec<f64>,
    products: Vec<ShopProduct>,
}

impl Outcomes {
    /// Adds the next goal.
    pub fn push(&mut self, product: ShopProduct, is_success: bool) {
        self.successes.push(f64::from(u8::from(is_success)));
        self.products.push(product);
    }

    /// The success rate of `other` minus that of `self`, paired by goal and clustered by product. `None` if the
    /// products differ, so that the goals cannot be the same.
    pub fn difference_to(&self, other: &Self) -> Option<Difference> {
        (self.products == other.products)
            .then(|| clustered_difference(&self.successes, &other.successes, &self.products))
    }

    /// The same with every product counting the same, however many goals it has.
    pub fn difference_by_product_to(&self, other: &Self) -> Option<Difference> {
        (self.products == other.products).then(|| {
            let (before, products) = product_means(&self.successes, &self.products);
            clustered_difference(&before, &product_means(&other.successes, &other.products).0, &products)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outcomes of goals of shop 0, by product.
    fn outcomes(of: &[(u32, bool)]) -> Outcomes {
        outcomes_of(&of.iter().map(|&(product, success)| (0, product, success)).collect::<Vec<_>>())
    }

    /// Outcomes of goals, by shop and product.
    fn outcomes_of(of: &[(u64, u32, bool)]) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for &(shop, product, success) in of {
            outcomes.push(ShopProduct { shop, product: ProductIdx(product) }, success);
        }
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

    #[test]
    fn by_product_each_product_counts_the_same() {
        let before = outcomes(&[(1, false), (2, true), (1, false), (1, false)]);
        let after = outcomes(&[(1, true), (2, true), (1, true), (1, false)]);
        let difference = before.difference_by_product_to(&after).unwrap();
        // Product 1 gains 2/3, product 2 nothing; by goals the mean is 1/2.
        assert_eq!(difference, clustered_difference(&[0.0, 1.0], &[2.0 / 3.0, 1.0], &[1, 2]));
        assert!((difference.mean - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(before.difference_by_product_to(&outcomes(&[(1, true)])), None);
    }

    #[test]
    fn equal_numbers_of_two_shops_are_two_products() {
        let before = outcomes_of(&[(0, 1, false), (0, 1, false), (7, 1, true), (7, 1, true)]);
        let after = outcomes_of(&[(0, 1, true), (0, 1, true), (7, 1, true), (7, 1, true)]);
        let difference = before.difference_to(&after).unwrap();
        assert_eq!(difference, clustered_difference(&[0.0, 0.0, 1.0, 1.0], &[1.0; 4], &[1, 1, 2, 2]));
        let in_one_shop = outcomes(&[(1, true), (1, true), (1, true), (1, true)]);
        assert_eq!(before.difference_to(&in_one_shop), None, "these are other goals");
    }
}
