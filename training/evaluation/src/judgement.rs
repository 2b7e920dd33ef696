//! How the policies of a finished run did on test goals, and on goals of shops that no other run has.
//!
//! A [`Judgement`] has a [`JudgedSet`] for each set of goals: the test goals of the evaluated shop, which are the same for
//! every run, and goals of shops that were generated for the run's seed, on which nothing can have been tuned. The first
//! policy of a set is the one that is judged; each other policy comes with the paired difference to it. The trainer runs
//! the episodes.

use serde::{Deserialize, Serialize};

use crate::baselines::{Baseline, baselines_table, by_product_table};
use crate::table::Table;

/// The figures of a run's policies on test goals and on fresh ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The test goals, then the fresh ones. A set without goals is left out.
    pub sets: Vec<JudgedSet>,
}

/// The figures of all policies on the same goals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedSet {
    /// `test` for test goals of the evaluated shop, `fresh` for goals of shops generated for the run's seed.
    pub name: String,
    /// Number of shops that the goals are of.
    pub shops: usize,
    /// The judged policy, which has no difference; then the run's other policies and those without a model, each with
    /// the success rate of the judged one minus its own.
    pub policies: Vec<Baseline>,
}

impl JudgedSet {
    /// The set in words, for a heading: `300 goals of 5 fresh shops`.
    pub fn title(&self) -> String {
        let n_goals = self.policies.first().map_or(0, |judged| judged.summary.episodes);
        match self.name.as_str() {
            "fresh" if self.shops == 1 => format!("{n_goals} goals of a fresh shop"),
            "fresh" => format!("{n_goals} goals of {} fresh shops", self.shops),
            _ => format!("{n_goals} test goals of the catalog"),
        }
    }

    /// One row for each policy. Empty without policies.
    pub fn table(&self) -> Table {
        let Some((judged, others)) = self.policies.split_first() else {
            return Table { head: Vec::new(), rows: Vec::new() };
        };
        baselines_table(&[(&judged.policy, &judged.summary)], others)
    }

    /// The success rates with every product counting the same, one row for each policy; `None` if they were not counted.
    pub fn by_product_table(&self) -> Option<Table> {
        let (judged, others) = self.policies.split_first()?;
        judged.summary.by_product?;
        Some(by_product_table(&[(&judged.policy, &judged.summary)], others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clustered::Difference;
    use crate::summary::summarize_at_site;

    #[test]
    fn each_policy_has_a_row_with_the_difference_of_the_judged_one() {
        let of = |policy: &str, difference| Baseline {
            policy: policy.into(),
            summary: summarize_at_site(&[]),
            difference,
            difference_by_product: None,
        };
        let difference = Difference { mean: 0.25, ci95: [0.125, 0.375], p: 0.5 };
        let policies = vec![of("learned", None), of("warm start", Some(difference))];
        let set = JudgedSet { name: "fresh".into(), shops: 5, policies };
        let table = set.table();
        assert_eq!(table.head[4], "learned minus this, points");
        let cells = |row: usize| (table.rows[row][0].as_str(), table.rows[row][4].as_str());
        assert_eq!(cells(0), ("learned", ""));
        assert_eq!(cells(1), ("warm start", "+25.0 [+12.5, +37.5]"));
        assert_eq!(set.title(), "0 goals of 5 fresh shops");
        let json = serde_json::to_string(&Judgement { sets: vec![set.clone()] }).unwrap();
        assert_eq!(serde_json::from_str::<Judgement>(&json).unwrap().sets, [set]);
    }
}
