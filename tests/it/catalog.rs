//! The embedded catalogs make goals that can be reached, and not by buying the first result.

use std::fmt::Write;

use crate::common::in_area;
use crate::difficulty::FIRST_RESULT;
use webshop_env::{MATCH_ABOVE, Shop, normalize_color, token_set_ratio};
use webshop_products::{
    Catalog, CatalogReport, EmbeddedCatalog, Goal, GoalKind, GoalSet, OptionGroup, Product, ProductIdx,
    RawData, Seed, Selection, Split,
};

const BOTH: [(EmbeddedCatalog, &str); 2] =
    [(EmbeddedCatalog::Hundred, "100"), (EmbeddedCatalog::Thousand, "1000")];

fn load(which: EmbeddedCatalog) -> (Catalog, GoalSet) {
    let data = RawData::embedded(which);
    let catalog = Catalog::from_raw(&data, Seed(0)).expect("embedded catalogs are sound");
    let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).expect("and so are their goals");
    (catalog, goals)
}

fn shop(which: EmbeddedCatalog) -> Shop {
    let (catalog, goals) = load(which);
    Shop::new(catalog, goals).expect("embedded catalogs make a shop")
}

/// The options of a goal: each wanted value in the group that offers it.
fn wanted(goal: &Goal, product: &Product) -> Selection {
    let group_of = |value: &str| {
        let offers = |group: &&OptionGroup| group.values.iter().any(|one| *one.text == *value);
        product.options.iter().find(offers).map_or("", |group| &group.name)
    };
    goal.options.iter().map(|option| (group_of(&option.value), &*option.value)).collect()
}

#[test]
fn every_goal_is_fulfilled_by_its_own_product() {
    for (which, _) in BOTH {
        let shop = shop(which);
        for goal in shop.goals().goals() {
            let selection = wanted(goal, shop.catalog().get(goal.product));
            let reward = shop.reward(goal, goal.product, &selection);
            assert!(reward.is_success(), "{}: {reward}", goal.instruction);
        }
    }
}

/// The share of ways to choose one value in each group that has a wanted one, with which all wanted options are met.
fn chance(goal: &Goal, product: &Product) -> f64 {
    let met = |wanted: &str, value: &str| {
        token_set_ratio(normalize_color(value), normalize_color(wanted)) > MATCH_ABOVE
    };
    let in_its_group = |wanted: &str| {
        let has = |group: &&OptionGroup| group.values.iter().any(|value| *value.text == *wanted);
        let group = product.options.iter().find(has).expect("its product offers it");
        let n_met = group.values.iter().filter(|value| met(wanted, &value.text)).count();
        n_met as f64 / group.values.len() as f64
    };
    goal.options.iter().map(|option| in_its_group(&option.value)).product()
}

#[test]
fn options_are_seldom_right_by_chance() {
    for (which, name) in BOTH {
        let (catalog, goals) = load(which);
        let with_options = goals.goals().iter().filter(|goal| !goal.options.is_empty());
        let chances: Vec<f64> = with_options.map(|goal| chance(goal, catalog.get(goal.product))).collect();
        let mean = chances.iter().sum::<f64>() / chances.len() as f64;
        // A group of five values with one that counts is a fifth; near values count too, two groups multiply.
        assert!(mean < 0.2, "{name}: {mean:.3} of {}", chances.len());
    }
}

#[test]
fn buying_the_first_hit_of_the_whole_instruction_rarely_succeeds() {
    for (which, name) in BOTH {
        let shop = shop(which);
        let test = shop.goals().split(Split::Test);
        let (mut n_successes, mut score) = (0, 0.0);
        for &id in test {
            let goal = shop.goals().get(id);
            let first = shop.search(&goal.instruction)[0].product;
            let reward = shop.reward(goal, first, &Selection::new());
            n_successes += usize::from(reward.is_success());
            score += reward.total();
        }
        let (success, score) = (n_successes as f64 / test.len() as f64, score / test.len() as f64);
        assert!(FIRST_RESULT.0.contains(&success), "{name}: success {success:.3}");
        assert!(FIRST_RESULT.1.contains(&score), "{name}: score {score:.3}");
    }
}

#[test]
fn the_catalogs_in_numbers() {
    for (which, name) in BOTH {
        let (catalog, goals) = load(which);
        let report = CatalogReport::new(&catalog, &goals);
        in_area("catalog", || insta::assert_snapshot!(format!("report_{name}"), report));
    }
}

/// The products that share kind and brand with the first that has two things to choose.
fn family(catalog: &Catalog) -> Vec<ProductIdx> {
    let brand = |product: &Product| product.title.split(' ').next().map(str::to_owned);
    let products = catalog.products();
    let first = products.iter().find(|product| product.options.len() == 2).expect("many have two");
    let alike = |product: &Product| product.query == first.query && brand(product) == brand(first);
    let all = products.iter().enumerate().filter(|(_, product)| alike(product));
    all.map(|(at, _)| ProductIdx(at as u32)).collect()
}

fn listing(product: &Product) -> String {
    let mut text = format!("{}  {}  {}\n", product.id, product.title, product.price.tag);
    for group in &product.options {
        let values: Vec<_> = group.values.iter().map(|value| &*value.text).collect();
        writeln!(text, "    {}: {}", group.name, values.join(", ")).expect("memory");
    }
    for line in product.bullets.iter().map(|bullet| &**bullet).chain([&*product.description]) {
        writeln!(text, "    {line}").expect("memory");
    }
    writeln!(text, "    attributes: {}", product.attributes.join(", ")).expect("memory");
    text
}

#[test]
fn a_family_of_near_duplicates() {
    let (catalog, _) = load(EmbeddedCatalog::Hundred);
    let products: Vec<_> =
        family(&catalog).into_iter().map(|position| listing(catalog.get(position))).collect();
    in_area("catalog", || insta::assert_snapshot!("family", products.join("\n")));
}

#[test]
fn the_goals_of_one_product() {
    let (catalog, goals) = load(EmbeddedCatalog::Hundred);
    let product = family(&catalog)[0];
    let mut text = format!("{}\n", catalog.get(product).title);
    for goal in goals.goals().iter().filter(|goal| goal.product == product) {
        let options: Vec<_> = goal.options.iter().map(|option| &*option.value).collect();
        let wants = [goal.attributes.join(", "), options.join(", ")].join("; ");
        write!(text, "\n{}\n    {wants}\n", goal.instruction).expect("memory");
    }
    in_area("catalog", || insta::assert_snapshot!("goals", text));
}

#[test]
fn instructions_vary() {
    let (_, goals) = load(EmbeddedCatalog::Thousand);
    // A prime step walks through the catalog without favouring a place in a product's list.
    let sample = goals.goals().iter().step_by(397).map(|goal| &*goal.instruction);
    let sample: Vec<_> = sample.collect();
    in_area("catalog", || insta::assert_snapshot!("instructions", sample.join("\n")));
}
