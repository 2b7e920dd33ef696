//! The check of the search engine.

use rayon::prelude::*;
use webshop_env::{Hit, Shop};

use crate::env_checks::check::Check;
use crate::env_checks::episodes::spaced;

/// Number of instructions that are searched for, at most.
const MAX_QUERIES: usize = 10_000;

/// Searches for instructions, evenly spaced over the goals, and compares the hits with those of a search that scores
/// every document.
pub(super) fn search_exactness(shop: &Shop) -> Check {
    compare(shop, |query| shop.search(query))
}

fn compare(shop: &Shop, search: impl Fn(&str) -> Vec<Hit> + Sync) -> Check {
    let goals = spaced(shop.goals().goals(), MAX_QUERIES);
    let compared: Vec<Result<usize, String>> = goals
        .par_iter()
        .map(|&goal| {
            let query = &shop.goals().get(goal).instruction;
            let (found, expected) = (search(query), shop.search_exhaustively(query).unwrap_or_default());
            match bits(&found) == bits(&expected) {
                true => Ok(found.len()),
                false => Err(format!(
                    "goal {}: a search for the instruction does not find what scoring every document finds",
                    goal.0
                )),
            }
        })
        .collect();
    let counterexample = compared.iter().find_map(|result| result.clone().err());
    Check::unless("search_exactness", counterexample, || {
        let n_hits: usize = compared.iter().flatten().sum();
        format!(
            "{n_hits} hits for {} instructions, each in the place and with the score, to the last bit, that it has if every \
             document is scored",
            compared.len()
        )
    })
}

/// What is compared of hits; equal scores have equal bits.
fn bits(hits: &[Hit]) -> Vec<(u32, u32)> {
    hits.iter().map(|hit| (hit.product.0, hit.score.to_bits())).collect()
}

#[cfg(test)]
mod tests {
    use webshop_products::{Catalog, GoalKind, GoalSet, Seed, generate};

    use super::*;

    #[test]
    fn a_missing_hit_and_another_score_are_detected() {
        let raw = generate(Seed(2), 20);
        let catalog = Catalog::from_raw(&raw, Seed(0)).unwrap();
        let goals = GoalSet::from_raw(&raw, &catalog, GoalKind::Both, Seed(0)).unwrap();
        let shop = Shop::new(catalog, goals).unwrap();
        assert!(search_exactness(&shop).passed);
        let last_goal = shop.goals().goals().last().unwrap();
        let changed = |change: fn(&mut Vec<Hit>)| {
            compare(&shop, |query| {
                let mut hits = shop.search(query);
                if *query == *last_goal.instruction {
                    change(&mut hits);
                }
                hits
            })
        };
        let next_up = |hits: &mut Vec<Hit>| hits[0].score = hits[0].score.next_up();
        let missing = |hits: &mut Vec<Hit>| hits.truncate(hits.len() - 1);
        for check in [changed(missing), changed(next_up), changed(|hits| hits.swap(0, 1))] {
            assert!(!check.passed && check.measured.starts_with("goal "), "{check}");
        }
        assert!(changed(|_| ()).passed);
    }
}
