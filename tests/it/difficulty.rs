//! Shopping is as hard as in the original: the oracle never fails, the rule agent of its paper seldom
//! succeeds but earns a part of the reward, and chance gets nowhere.

use std::ops::RangeInclusive;

use webshop_agent::{
    EpisodeCoordinates, OraclePolicy, Policy, RandomPolicy, RolloutConfig, RulePolicy, Task, rollout,
};
use webshop_evaluation::{Summary, summarize};
use webshop_products::{Seed, Split};
use webshop_training::config::CatalogConfig;
use webshop_training::{TaskSet, open_shop};

/// Success and score of buying the first result of the whole instruction without options. The original's first 1,000
/// products give .7 % of 300 goals and its first 100 10.3 % (docs/results). The paper's rule agent scores .456 in the shop
/// of 1.18 million products; a score below .3 would mean that the first result is seldom of the wanted kind.
pub(crate) const FIRST_RESULT: (RangeInclusive<f64>, RangeInclusive<f64>) = (0.007..=0.103, 0.30..=0.50);

/// How `policy` does on every test goal of both embedded catalogs.
fn check(policy: &mut dyn Policy, expected: impl Fn(&Summary) -> bool) {
    for source in ["100", "1000"] {
        let catalog = CatalogConfig { source: source.into(), ..CatalogConfig::default() };
        let task_set = TaskSet::of_shop(open_shop(&catalog).expect("an embedded shop"));
        let goals = task_set.held_out(Split::Test, usize::MAX);
        let at = EpisodeCoordinates::of_goal;
        let task = |goal| Task::new(task_set.shop().clone(), at(goal));
        let tasks: Vec<Task> = goals.into_iter().map(task).collect();
        // The catalog of 100 has 664 goals, of which the families on the test side have three tenths.
        assert!(tasks.len() >= 200, "{} test goals of {source}", tasks.len());
        let limits = RolloutConfig { max_steps: 15, lanes: 128 };
        let episodes = rollout(policy, &tasks, limits, &mut |_, _| ()).expect("policies without a model");
        let summary = summarize(&episodes, task_set.shop().goals());
        assert!(expected(&summary), "{} on {source}: {summary}", policy.name());
    }
}

#[test]
fn the_oracle_always_succeeds() {
    check(&mut OraclePolicy, |summary| summary.success_rate == 1.0 && summary.inadmissible_rate == 0.0);
}

#[test]
fn the_rule_agent_does_as_in_the_paper() {
    check(&mut RulePolicy, |summary| {
        FIRST_RESULT.0.contains(&summary.success_rate) && FIRST_RESULT.1.contains(&summary.score)
    });
}

#[test]
fn chance_gets_nowhere() {
    check(&mut RandomPolicy::new(Seed(0)), |summary| summary.success_rate < 0.01);
}
