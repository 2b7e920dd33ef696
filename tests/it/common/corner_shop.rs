//! A shop of eleven products that a reader can keep in mind, in the original's three files.

use std::path::Path;
use webshop_env::Shop;
use webshop_products::{Catalog, Goal, GoalKind, GoalSet, RawData, Seed};

/// The corner shop of `tests/data/corner-shop`.
pub(crate) fn corner_shop() -> Shop {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/corner-shop");
    let data = RawData::read_dir(&dir, None).expect("the corner shop is sound");
    let catalog = Catalog::from_raw(&data, Seed(0)).expect("so are its products");
    let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).expect("and its goals");
    Shop::new(catalog, goals).expect("the shop opens")
}

/// The goal for a product that wants these option values, in any order.
pub(crate) fn goal<'a>(shop: &'a Shop, asin: &str, options: &[&str]) -> &'a Goal {
    let wants = |goal: &Goal| {
        let mut wanted: Vec<&str> = goal.options.iter().map(|option| &*option.value).collect();
        let mut asked = options.to_vec();
        wanted.sort_unstable();
        asked.sort_unstable();
        wanted == asked
    };
    let mut goals = shop.goals().goals().iter();
    goals.find(|goal| goal.asin.as_str() == asin && wants(goal)).expect("the corner shop has this goal")
}
