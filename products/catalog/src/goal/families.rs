//! Families of products that must not be cut by a split.
//!
//! Two products are of one family if they have the same title, or the same query and the same first word of
//! the title, which is the brand; and if a third product joins them. So families are found in any catalog,
//! whoever wrote it: generated families have a brand of their own, and in the original's first 1,000 products
//! 46 share query and brand with another, at most three of them with each other.
//!
//! A split looks at the products with goals only; [`family_members`] at all products of a catalog.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use foldhash::fast::FixedState;

use crate::catalog::Catalog;
use crate::catalog::product::ProductIdx;
use crate::goal::Goal;

/// Products with the ASIN of each.
pub(crate) type Family<'a> = BTreeMap<ProductIdx, &'a str>;

/// The products of `goals` by family, in the order of their first products.
pub(crate) fn families(goals: &[Goal]) -> Vec<Family<'_>> {
    let mut union = Union::default();
    let mut first_with: HashMap<Mark, ProductIdx, FixedState> = HashMap::default();
    let mut products = Family::new();
    for goal in goals {
        if products.insert(goal.product, goal.asin.as_str()).is_some() {
            continue;
        }
        for mark in Mark::both(&goal.query, &goal.title) {
            match first_with.entry(mark) {
                Entry::Vacant(entry) => _ = entry.insert(goal.product),
                Entry::Occupied(entry) => union.join(*entry.get(), goal.product),
            }
        }
    }
    let mut families: BTreeMap<ProductIdx, Family<'_>> = BTreeMap::new();
    for (product, asin) in products {
        families.entry(union.root(product)).or_default().insert(product, asin);
    }
    families.into_values().collect()
}

/// `products` and all products of `catalog` with the title, or with the query and the first word of the title, of one
/// of them, whether or not they have goals.
pub fn family_members(catalog: &Catalog, products: &BTreeSet<ProductIdx>) -> BTreeSet<ProductIdx> {
    let marks = |product: &ProductIdx| {
        let product = catalog.get(*product);
        Mark::both(&product.query, &product.title)
    };
    let known: HashSet<Mark, FixedState> = products.iter().flat_map(marks).collect();
    let all = (0..catalog.products().len() as u32).map(ProductIdx);
    all.filter(|product| marks(product).iter().any(|mark| known.contains(mark))).collect()
}

/// What the products of a family have in common.
#[derive(PartialEq, Eq, Hash)]
enum Mark {
    /// Query and first word of the title.
    Brand(String, String),
    Title(String),
}

impl Mark {
    fn both(query: &str, title: &str) -> [Self; 2] {
        let title = title.to_lowercase();
        let brand = title.split_whitespace().next().unwrap_or_default().to_owned();
        [Self::Brand(query.to_owned(), brand), Self::Title(title)]
    }
}

/// Disjoint sets; the root of a set is its first product.
#[derive(Default)]
struct Union {
    /// An earlier product of the same set; none for a root.
    earlier: BTreeMap<ProductIdx, ProductIdx>,
}

impl Union {
    fn root(&self, product: ProductIdx) -> ProductIdx {
        let mut root = product;
        while let Some(&earlier) = self.earlier.get(&root) {
            root = earlier;
        }
        root
    }

    fn join(&mut self, one: ProductIdx, other: ProductIdx) {
        let (one, other) = (self.root(one), self.root(other));
        if one != other {
            self.earlier.insert(one.max(other), one.min(other));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalog, GoalKind, GoalSet, RawData, RawHumanInstruction, RawItem, Seed};

    /// Products with these queries and titles, each with a goal.
    fn data(products: &[(&str, &str)]) -> RawData {
        let mut data = RawData::default();
        for (at, (query, title)) in products.iter().enumerate() {
            let asin = format!("B{at}");
            let instruction = RawHumanInstruction {
                instruction: "i need it".into(),
                instruction_attributes: vec!["red".into()],
                instruction_options: Vec::new(),
            };
            data.human.insert(asin.clone(), vec![instruction]);
            let images = vec!["a".into()];
            data.items.push(RawItem {
                asin,
                name: (*title).into(),
                query: (*query).into(),
                images,
                ..RawItem::default()
            });
        }
        data
    }

    /// Checks the families of products with these queries and titles.
    fn check(products: &[(&str, &str)], expected: &[&[u32]]) {
        let data = data(products);
        let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).unwrap();
        let found: Vec<Vec<u32>> = families(goals.goals())
            .iter()
            .map(|family| family.keys().map(|product| product.0).collect())
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_brand_is_a_family_within_a_query() {
        check(&[("lamps", "Acme Oak"), ("lamps", "acme Pine"), ("rugs", "Acme Wool")], &[&[0, 1], &[2]]);
    }

    #[test]
    fn products_without_goals_have_families_too() {
        let products =
            [("lamps", "Acme Oak"), ("lamps", "acme Pine"), ("rugs", "Acme Wool"), ("rugs", "ACME oak")];
        let mut data = data(&products);
        data.human.retain(|asin, _| asin == "B0");
        let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
        let members = family_members(&catalog, &BTreeSet::from([ProductIdx(0)]));
        assert_eq!(members, BTreeSet::from([0, 1, 3].map(ProductIdx)));
        assert!(family_members(&catalog, &BTreeSet::new()).is_empty());
    }

    #[test]
    fn equal_titles_join_families() {
        let products =
            [("lamps", "Acme Oak"), ("rugs", "Best Rug"), ("lights", "acme oak"), ("lights", "Acme Pine")];
        check(&products, &[&[0, 2, 3], &[1]]);
    }

    #[test]
    fn products_without_a_title_are_one_family_by_title() {
        check(&[("lamps", ""), ("rugs", "")], &[&[0, 1]]);
    }
}
