//! The policies that every result is compared with, on the same goals.
//!
//! [`baselines`] runs policies without a model and returns one [`Baseline`] each, from the least to the most that they
//! know: a random policy, three that read no more than the instruction and labels (`rule`, `all-options`,
//! `named-options`), three that read pages (`named-pairs`, `named-features`, `stated-options`), the demonstrator of a
//! clone, if it reads pages too (`browsing-expert`), and two that know the goal (`expert`, `oracle`). A learner that does
//! not pass the best of the three has learned less than a rule can say.

use serde::{Deserialize, Serialize};
use webshop_agent::{
    BrowsingHabits, CandidatePolicy, ExpertPolicy, ExploitPolicy, InOrder, NamedOptionsPolicy, OraclePolicy,
    Policy, RandomPolicy, RolloutConfig, RulePolicy, Task, rollout_each,
};
use webshop_products::Seed;

use crate::clustered::Difference;
use crate::error::Result;
use crate::outcomes::Outcomes;
use crate::summary::{ByProduct, Summary, Tally};
use crate::table::{Table, interval, percent};

/// Concurrent episodes.
const LANES: usize = 128;

/// A policy without a model and its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// The policy's name, as on the command line.
    pub policy: String,
    /// The figures of its episodes.
    pub summary: Summary,
    /// Success rate of the evaluated policy minus this one's, paired by goal and clustered by product; `None` if
    /// the evaluated policy has no outcome for each goal.
    pub difference: Option<Difference>,
    /// The same with every product counting the same.
    #[serde(default)]
    pub difference_by_product: Option<Difference>,
}

impl Baseline {
    /// The figures of a policy's episodes, and how the `evaluated` outcomes differ from them.
    pub fn new(policy: &str, episodes: &Tally, evaluated: Option<&Outcomes>) -> Self {
        let outcomes = episodes.outcomes();
        Self {
            policy: policy.into(),
            summary: episodes.summary(),
            difference: evaluated.and_then(|other| outcomes.difference_to(other)),
            difference_by_product: evaluated.and_then(|other| outcomes.difference_by_product_to(other)),
        }
    }
}

/// How baselines are run.
#[derive(Clone, Copy, Debug)]
pub struct BaselineConfig {
    /// Actions after which an episode is truncated.
    pub max_steps: u32,
    /// The products of a results page that the experts see.
    pub results_shown: usize,
    /// The habits of the browsing expert; `None` leaves it out.
    pub browsing: Option<BrowsingHabits>,
    /// The seed of the random policy, and of the browsing expert's habits.
    pub seed: Seed,
}

/// Runs every baseline on `tasks`, of one shop or of several, in a fixed order, and compares the outcomes of the
/// `evaluated` policy on the same tasks with it.
///
/// # Errors
/// If a policy cannot decide.
pub fn baselines(tasks: &[Task], config: BaselineConfig, evaluated: &Outcomes) -> Result<Vec<Baseline>> {
    let browsing = config.browsing.map(|habits| {
        let expert = ExpertPolicy::browsing(config.results_shown, habits, config.seed);
        Box::new(expert) as Box<dyn Policy>
    });
    let reading: [Box<dyn Policy>; 7] = [
        Box::new(RandomPolicy::new(config.seed)),
        Box::new(RulePolicy),
        Box::new(ExploitPolicy::AllOptions),
        Box::new(NamedOptionsPolicy),
        Box::new(CandidatePolicy::named_pairs()),
        Box::new(CandidatePolicy::named_features()),
        Box::new(ExpertPolicy::stated_options(config.results_shown)),
    ];
    let knowing: [Box<dyn Policy>; 2] =
        [Box::new(ExpertPolicy::thinking(config.results_shown)), Box::new(OraclePolicy)];
    let limits = RolloutConfig { max_steps: config.max_steps, lanes: LANES };
    let run = |mut policy: Box<dyn Policy>| {
        let (mut order, mut tally) = (InOrder::default(), Tally::default());
        let mut in_order = tasks.iter();
        rollout_each(policy.as_mut(), tasks, limits, &mut |place, episode| {
            for episode in order.take(place, episode) {
                let task = in_order.next().expect("each task has one episode");
                tally.count(&episode, task.shop.goals());
            }
            Ok(())
        })?;
        Ok(Baseline::new(policy.name(), &tally, Some(evaluated)))
    };
    reading.into_iter().chain(browsing).chain(knowing).map(run).collect()
}

/// The evaluated policies, then the baselines, one row each.
pub fn baselines_table(evaluated: &[(&str, &Summary)], baselines: &[Baseline]) -> Table {
    let head = ["policy", "success, %", "score", "actions", &against(evaluated)].map(String::from).into();
    let row = |name: &str, of: &Summary, difference: String| {
        let [low, high] = of.score_ci95;
        vec![
            name.to_owned(),
            format!("{} {}", percent(of.success_rate), interval(of.success_ci95)),
            format!("{:.3} [{low:.3}, {high:.3}]", of.score),
            format!("{:.1}", of.mean_turns),
            difference,
        ]
    };
    let of_baseline = |of: &Baseline| row(&of.policy, &of.summary, points(of.difference));
    let evaluated = evaluated.iter().map(|(name, summary)| row(name, summary, String::new()));
    Table { head, rows: evaluated.chain(baselines.iter().map(of_baseline)).collect() }
}

/// The same policies' success rates with every product counting the same.
pub fn by_product_table(evaluated: &[(&str, &Summary)], baselines: &[Baseline]) -> Table {
    let head = ["policy", "success by product, %", &against(evaluated)].map(String::from).into();
    let row = |name: &str, of: &Summary, difference: String| {
        let rate = |of: ByProduct| format!("{} {}", percent(of.success_rate), interval(of.success_ci95));
        vec![name.to_owned(), of.by_product.map_or_else(String::new, rate), difference]
    };
    let of_baseline = |of: &Baseline| row(&of.policy, &of.summary, points(of.difference_by_product));
    let evaluated = evaluated.iter().map(|(name, summary)| row(name, summary, String::new()));
    Table { head, rows: evaluated.chain(baselines.iter().map(of_baseline)).collect() }
}

/// The title of the column of differences to the last evaluated policy.
fn against(evaluated: &[(&str, &Summary)]) -> String {
    evaluated.last().map_or_else(String::new, |(name, _)| format!("{name} minus this, points"))
}

/// A difference of shares in percentage points with its interval: `+4.0 [−1.2, +9.2]`.
fn points(difference: Option<Difference>) -> String {
    let signed = |share: f64| format!("{:+.1}", 100.0 * share).replace('-', "−");
    let with_interval =
        |of: Difference| format!("{} [{}, {}]", signed(of.mean), signed(of.ci95[0]), signed(of.ci95[1]));
    difference.map_or_else(String::new, with_interval)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use webshop_agent::EpisodeCoordinates;
    use webshop_env::Shop;
    use webshop_products::{Catalog, GoalKind, GoalSet, generate};

    use super::*;
    use crate::outcomes::ShopProduct;

    /// Twelve tasks of the generated shop of this number.
    fn tasks(number: u64) -> Vec<Task> {
        let data = generate(Seed(number), 30);
        let catalog = Catalog::from_raw(&data, Seed(number)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Human, Seed(number)).unwrap();
        let shop = Arc::new(Shop::new(catalog, goals).unwrap());
        let at = |goal| EpisodeCoordinates { step: 0, shop: number, goal, sample: 0 };
        let goals = shop.goals().goals().iter().step_by(5).take(12);
        goals.map(|goal| Task::new(shop.clone(), at(goal.id))).collect()
    }

    /// Outcomes of a policy that succeeds on each task.
    fn all_succeed(tasks: &[Task]) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for task in tasks {
            let EpisodeCoordinates { shop, goal, .. } = task.coordinates;
            outcomes.push(ShopProduct { shop, product: task.shop.goals().get(goal).product }, true);
        }
        outcomes
    }

    #[test]
    fn baselines_of_several_shops_have_the_products_of_each() {
        let [one, other] = [tasks(0), tasks(1)];
        let n_products = |tasks: &[Task]| {
            let product = |task: &Task| task.shop.goals().get(task.coordinates.goal).product;
            tasks.iter().map(product).collect::<BTreeSet<_>>().len()
        };
        let both = [one.clone(), other.clone()].concat();
        let habits = BrowsingHabits::default();
        let config =
            BaselineConfig { max_steps: 15, results_shown: 10, browsing: Some(habits), seed: Seed(0) };
        let found = baselines(&both, config, &all_succeed(&both)).unwrap();
        let names: Vec<&str> = found.iter().map(|of| of.policy.as_str()).collect();
        assert_eq!(names[6..], ["stated-options", "browsing-expert", "expert", "oracle"]);
        for of in &found {
            let products = n_products(&one) + n_products(&other);
            assert_eq!((of.summary.episodes, of.summary.products), (24, Some(products)), "{}", of.policy);
        }
        // The expert reads instructions and pages: it is between chance and the oracle.
        let rate = |at: usize| found[at].summary.success_rate;
        assert!(rate(0) < rate(7) && rate(7) < 1.0, "{}", rate(7));
    }

    #[test]
    fn baselines_are_compared_on_the_goals_of_the_evaluated_policy() {
        let tasks = tasks(0);
        let evaluated = all_succeed(&tasks);
        let config = BaselineConfig { max_steps: 15, results_shown: 10, browsing: None, seed: Seed(0) };
        let found = baselines(&tasks, config, &evaluated).unwrap();
        let names: Vec<&str> = found.iter().map(|of| of.policy.as_str()).collect();
        let expected = [
            "random",
            "rule",
            "all-options",
            "named-options",
            "named-pairs",
            "named-features",
            "stated-options",
            "expert",
            "oracle",
        ];
        assert_eq!(names, expected);
        let oracle = found.last().unwrap();
        assert_eq!((oracle.summary.success_rate, oracle.summary.episodes), (1.0, 12));
        assert_eq!(oracle.difference.unwrap().mean, 0.0);
        for of in &found {
            let difference = of.difference.unwrap().mean;
            assert!((difference + of.summary.success_rate - 1.0).abs() < 1e-12, "{}", of.policy);
        }
        let table = baselines_table(&[("clone", &oracle.summary)], &found).text();
        assert_eq!(table.lines().count(), 11);
        assert!(table.lines().last().unwrap().ends_with("+0.0 [+0.0, +0.0]"), "{table}");
        let by_product = by_product_table(&[("clone", &oracle.summary)], &found);
        assert_eq!(by_product.rows.len(), 10);
        for (row, of) in by_product.rows[1..].iter().zip(&found) {
            let (rate, difference) = (of.summary.by_product.unwrap(), of.difference_by_product.unwrap().mean);
            assert!(row[1].starts_with(&percent(rate.success_rate)), "{row:?}");
            assert!((difference + rate.success_rate - 1.0).abs() < 1e-12, "{row:?}");
        }
        let other = baselines(&tasks[1..], config, &evaluated).unwrap();
        assert!(other.iter().all(|of| of.difference.is_none()), "other goals cannot be compared");
    }
}
