//! Searches explain themselves: what is found, in what order, and why.

use std::fmt::Write;

use crate::common::corner_shop::{corner_shop, goal};
use crate::common::in_area;
use webshop_env::Shop;

/// Snapshots the ranking for a query, and the explanation of the rank of the product `explained`.
fn check(name: &str, query: &str, explained: &str) {
    let shop = corner_shop();
    let product = shop.catalog().find(explained).expect("a product of the corner shop");
    let explanation = shop.explain(query, product).expect("few terms");
    let ranking = ranking(&shop, query);
    in_area("search", || {
        insta::assert_snapshot!(name, format!("{query}\n\n{ranking}\n{explanation}"));
    });
}

fn ranking(shop: &Shop, query: &str) -> String {
    let mut text = String::new();
    for hit in shop.search(query) {
        let product = shop.catalog().get(hit.product);
        writeln!(text, "{:>7.4}  {}  {}", hit.score, product.id, product.title).expect("memory");
    }
    text
}

#[test]
fn the_best_match_explains_itself() {
    check("rubber_sole", "men's sneakers with rubber soles, rubber!", "B0SNEAK001");
}

#[test]
fn a_product_without_the_query_terms_says_so() {
    check("not_listed", "energy efficient desk lamp", "B0CREAM001");
}

#[test]
fn equal_scores_follow_the_product_id() {
    let shop = corner_shop();
    // The two mugs differ in nothing but their ids, and the second stands first in the catalog.
    let hits = shop.search("blue mug");
    let ids: Vec<&str> = hits.iter().map(|hit| shop.catalog().get(hit.product).id.as_str()).collect();
    assert_eq!(ids[..2], ["B0MUG00001", "B0MUG00002"]);
    assert_eq!(hits[0].score, hits[1].score);
    assert!(hits[0].product > hits[1].product);
}

#[test]
fn every_goal_can_be_fulfilled_exactly() {
    let shop = corner_shop();
    assert!(!goal(&shop, "B0SHEET001", &["twin [38x75]"]).instruction.is_empty());
    for goal in shop.goals().goals() {
        let best = shop.best_purchase(goal);
        assert!(best.breakdown.is_success(), "{}: {}", goal.instruction, best.breakdown);
    }
}
