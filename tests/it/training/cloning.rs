//! The control of reinforcement learning: as many steps more of cloning, from the same warm start.

use super::*;

/// The records of the learning phase of a run with these settings, from the common warm start, and its folder.
fn learned(settings: &[&str]) -> (TempDir, Vec<Record>) {
    let config = toy(settings);
    let (keep, run) = branch(&config);
    train(&config, &run, TrainOptions::default()).expect("a run to the end");
    let records = read_records(run.root(), "test").expect("metrics");
    let steps = records.into_iter().filter(|one| one.phase == Phase::Learn);
    (keep, steps.filter(|one| one.get(Metric::TrainLoss).is_some()).collect())
}

#[test]
fn cloning_alone_samples_nothing_and_lowers_the_cloning_loss() {
    let settings = ["rl.demonstration_share=1", "rl.batch_episodes=24", "rl.minibatches=4", "rl.lr=5e-3"];
    let (keep, steps) = learned(&settings);
    assert_eq!(steps.len() as u64, RL_STEPS);
    for step in &steps {
        assert_eq!(step.get(Metric::RolloutSuccessRate), None, "nothing was sampled");
    }
    assert!(!keep.path().join("run/value.json").exists(), "nothing needs V*");
    let losses: Vec<f64> = steps.iter().filter_map(|step| step.get(Metric::TrainLoss)).collect();
    assert!(losses[losses.len() - 1] < losses[0], "{losses:?}");
}

#[test]
fn completions_of_demonstrations_count_as_tokens() {
    let (_keep, steps) = learned(&["rl.demonstration_share=1", "rl.max_tokens=1"]);
    assert_eq!(steps.len(), 1, "the first step spends the budget");
    assert!(steps[0].get(Metric::RolloutTokensTotal).is_some_and(|total| total >= 1.0));
}
