//! The judgements of all runs over seeds: success on test goals, and on shops that no other seed has.

use webshop_evaluation::table::{Table, percent};
use webshop_evaluation::{Baseline, JudgedSet, mean};
use webshop_training::sweep::{ArmOutcome, RunOutcome};

use crate::sweep::over_seeds::{ArmDifference, differences, share_interval};
use crate::sweep::table::share_cell;

/// A policy that was judged once for each seed.
struct JudgedPolicy<'a> {
    name: String,
    /// Its figures for each seed.
    runs: Vec<&'a Baseline>,
}

/// A table with its title for each set of goals: the judged policy of each arm, sampled and greedy, then the other
/// policies of arm `baseline`, which are its warm start and the policies without a model. Empty if a run was not judged.
pub(super) fn tables(arms: &[ArmOutcome], baseline: usize) -> Vec<(String, Table)> {
    let n_sets = |run: &RunOutcome| run.judgement.as_ref().map_or(0, |judgement| judgement.sets.len());
    let n_sets = arms.iter().flat_map(|arm| &arm.runs).map(n_sets).min().unwrap_or(0);
    (0..n_sets).filter_map(|place| table(arms, baseline, place)).collect()
}

/// The table of the set at `place` of each judgement; `None` without arms or seeds.
fn table(arms: &[ArmOutcome], baseline: usize, place: usize) -> Option<(String, Table)> {
    let of_baseline = sets_at(arms.get(baseline)?, place)?;
    let first = of_baseline.first()?;
    let mut policies = Vec::new();
    let mut compared_with = 0;
    for (number, arm) in arms.iter().enumerate() {
        if number == baseline {
            compared_with = policies.len();
        }
        let sets = sets_at(arm, place)?;
        let names = [arm.name.clone(), format!("{} (greedy)", arm.name)];
        for (at, name) in names.into_iter().take(n_own(sets.first()?)).enumerate() {
            policies.push(JudgedPolicy { name, runs: runs(&sets, at)? });
        }
    }
    for (at, other) in first.policies.iter().enumerate().skip(n_own(first)) {
        policies.push(JudgedPolicy { name: other.policy.clone(), runs: runs(&of_baseline, at)? });
    }
    Some((format!("Judgement on {}", first.title()), rows(&policies, compared_with)))
}

/// The set at `place` of the judgement of each run; `None` if one does not have it.
fn sets_at(arm: &ArmOutcome, place: usize) -> Option<Vec<&JudgedSet>> {
    arm.runs.iter().map(|run| run.judgement.as_ref()?.sets.get(place)).collect()
}

/// The policy at `place` in each seed's set; `None` if one does not have it.
fn runs<'a>(sets: &[&'a JudgedSet], place: usize) -> Option<Vec<&'a Baseline>> {
    sets.iter().map(|set| set.policies.get(place)).collect()
}

/// The number of rows of the judged policy itself: sampled, and greedy if that is another.
fn n_own(set: &JudgedSet) -> usize {
    match &set.policies[..] {
        [judged, next, ..] if next.policy == format!("{} (greedy)", judged.policy) => 2,
        policies => policies.len().min(1),
    }
}

fn rows(policies: &[JudgedPolicy<'_>], compared_with: usize) -> Table {
    let rates: Vec<Vec<f64>> = policies
        .iter()
        .map(|policy| policy.runs.iter().map(|run| run.summary.success_rate).collect())
        .collect();
    let against = format!("against {}", policies[compared_with].name);
    let row = |((policy, rates), difference): ((&JudgedPolicy<'_>, &Vec<f64>), Option<ArmDifference>)| {
        let scores: Vec<f64> = policy.runs.iter().map(|run| run.summary.score).collect();
        let by_seed: Vec<String> = rates.iter().map(|share| percent(*share)).collect();
        vec![
            policy.name.clone(),
            share_cell(mean(rates), share_interval(rates)),
            by_seed.join(", "),
            difference.as_ref().map_or("baseline".into(), ArmDifference::cell),
            format!("{:.3}", mean(&scores)),
        ]
    };
    let compared = policies.iter().zip(&rates).zip(differences(&rates, compared_with));
    Table {
        head: ["policy", "success, %", "by seed", &against, "score"].map(String::from).into(),
        rows: compared.map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use webshop_evaluation::summarize_at_site;

    use super::*;

    fn judged(policies: &[(&str, f64)]) -> JudgedSet {
        let policy = |(name, success_rate): &(&str, f64)| {
            let mut summary = summarize_at_site(&[]);
            summary.success_rate = *success_rate;
            Baseline { policy: (*name).into(), summary, difference: None, difference_by_product: None }
        };
        JudgedSet { name: "test".into(), shops: 1, policies: policies.iter().map(policy).collect() }
    }

    #[test]
    fn a_judged_policy_has_a_greedy_row_if_it_was_judged_greedily() {
        assert_eq!(n_own(&judged(&[("learned", 0.5), ("learned (greedy)", 0.5), ("warm start", 0.5)])), 2);
        assert_eq!(n_own(&judged(&[("warm start", 0.5), ("random", 0.0)])), 1);
        assert_eq!(n_own(&judged(&[])), 0);
    }

    #[test]
    fn every_row_is_compared_with_the_baseline_by_seed() {
        let sets = [judged(&[("learned", 0.5), ("rule", 0.25)]), judged(&[("learned", 0.75), ("rule", 0.5)])];
        let sets: Vec<&JudgedSet> = sets.iter().collect();
        let policies = [("apo", 0), ("rule", 1)]
            .map(|(name, place)| JudgedPolicy { name: name.into(), runs: runs(&sets, place).unwrap() });
        let table = rows(&policies, 0);
        assert_eq!(table.head[3], "against apo");
        assert_eq!(table.rows[0][2..4], ["50.0, 75.0", "baseline"]);
        assert_eq!(table.rows[1][3], "−25.0");
        assert_eq!(runs(&sets, 2).map(|runs| runs.len()), None);
    }
}
