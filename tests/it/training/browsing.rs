//! Training on demonstrations of the browsing expert, the default: exact, and of the habits that the configuration
//! states.

use super::*;

/// The small experiment with a few steps of browsing demonstrations.
pub(super) fn browsing(more: &[&str]) -> Config {
    let few = [
        "warm_start.demonstrations=browsing",
        "copy_task_steps=2",
        "warm_start.steps=10",
        "rl.steps=1",
        "rl.batch_episodes=16",
        "value.goals=4",
        "value.samples=2",
        "evaluation.episodes=4",
        "evaluation.every=0",
        "evaluation.warm_start_every=0",
    ];
    toy(&[&few, more].concat())
}

/// The losses of cloning, copy tasks left out.
fn losses(run: &Run) -> Vec<f64> {
    let records = run.records();
    let warm_start = records.iter().filter(|record| record.phase == Phase::WarmStart);
    warm_start.filter_map(|record| record.get(Metric::TrainLoss)).skip(2).collect()
}

#[test]
fn browsing_demonstrations_are_learned_exactly() {
    let runs = [1, 2].map(|n_threads| Run::whole(&browsing(&[]), n_threads));
    for part in ["metrics.jsonl", "checkpoints/last/model/model.safetensors"] {
        let [one, two] = [&runs[0], &runs[1]].map(|run| fs::read(run.folder.join(part)).expect(part));
        assert!(one == two, "`{part}` differs on two threads");
    }
    let losses = losses(&runs[0]);
    assert_eq!(losses.len(), 10);
    // Random weights begin near ln 700 = 6.6 nats per token.
    assert!(losses[9] < 0.8 * losses[0], "{losses:?}");
    let records = runs[0].records();
    let learned = records.iter().filter(|record| record.get(Metric::RolloutTokens) > Some(0.0));
    assert_eq!(learned.count(), 1, "the clone takes one step of reinforcement learning");
}

#[test]
fn the_habits_of_the_configuration_are_cloned() {
    // The tokenizer and the copy tasks are the same; what is demonstrated is not.
    let demonstrated = |habit: &str| losses(&Run::whole(&browsing(&[habit, "rl.steps=0"]), 2));
    let habits = ["by_pairs=0", "by_pairs=1", "reads_features=1", "filtered_share=1"].map(demonstrated);
    for (at, one) in habits.iter().enumerate() {
        assert!(habits[..at].iter().all(|other| other != one), "habit {at} clones what another does");
    }
}

#[test]
fn the_last_share_of_cloning_is_filtered() {
    let of_share = |share: &str| losses(&Run::whole(&browsing(&[share, "rl.steps=0"]), 2));
    let [none, last, all] = ["filtered_share=0", "filtered_share=0.4", "filtered_share=1"].map(of_share);
    assert_eq!(none[..6], last[..6], "6 of 10 steps are as without a filter");
    assert_ne!(none[6], last[6], "the seventh has other demonstrations");
    assert_ne!(none[..6], all[..6], "a share of 1 begins with filtered demonstrations");
}

#[test]
fn copy_tasks_beside_demonstrations_are_a_share_of_the_batch() {
    let of_share = |share: &str| losses(&Run::whole(&browsing(&[share, "rl.steps=0"]), 2));
    let [none, less_than_half_of_one, four] =
        ["copy_task_share=0", "copy_task_share=0.06", "copy_task_share=0.5"].map(of_share);
    assert_eq!(none, less_than_half_of_one, "a batch has 8 demonstrations");
    // The same weights and demonstrations; the loss is the mean over theirs and the random words beside them.
    assert_ne!(four[0], none[0]);
    assert_eq!(four.len(), none.len());
}

#[test]
fn the_model_begins_a_share_of_the_batch_on_any_number_of_threads() {
    let of_share = |share: &str, n_threads| losses(&Run::whole(&browsing(&[share, "rl.steps=0"]), n_threads));
    let [less_than_half_of_one, half] =
        ["dagger_share=0.06", "dagger_share=0.5"].map(|share| of_share(share, 2));
    assert_ne!(less_than_half_of_one[0], half[0], "a batch has 8 demonstrations");
    assert_eq!(half, of_share("dagger_share=0.5", 1));
}
