//! Training in single-step mode: exact, resumable, on completions of the current weights, and no step is dropped without
//! being counted.

use std::collections::BTreeSet;
use std::fs;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use crate::common::experiment::{begin, toy};
use crate::common::stop::{StopAfter, watched};
use tempfile::TempDir;
use webshop_agent::{PromptFormat, next_action::Example, next_action::ExampleSource};
use webshop_evaluation::Judgement;
use webshop_evaluation::{next_action::StepResult, next_action::score_steps, next_action::scores_of};
use webshop_products::{GoalId, Seed, Split};
use webshop_training::config::{Config, LossKind};
use webshop_training::metrics::{Metric, Phase, Record, read_records};
use webshop_training::{
    RunFolder, RunSummary, StepSampler, TaskSet, TrainOptions, TrainingError, branch_run, read_json, train,
    warm_up,
};

const WARM_STEPS: u64 = 105;
const RL_STEPS: u64 = 4;

/// The small experiment, in single steps.
const IN_STEPS: [&str; 11] = [
    "warm_start.steps=100",
    "prompt.format=shop-r1-minimal",
    "prompt.max_context=768",
    "prompt.max_turn_tokens=48",
    "rl.mode=single_step",
    "rl.loss.kind=grpo",
    "rl.batch_episodes=32",
    "rl.group_size=4",
    "rl.temperature=0.8",
    "shop_r1.eval_examples=24",
    "value.goals=40",
];

pub(super) fn config(more: &[&str]) -> Config {
    toy(&[&IN_STEPS, more].concat())
}

/// The warm start in single steps from which all runs branch.
static WARM_START: LazyLock<(TempDir, RunFolder)> = LazyLock::new(|| {
    let (keep, run) = begin(&config(&[]));
    warm_up(&config(&[]), &run, TrainOptions::default()).expect("a warm start");
    (keep, run)
});

/// A folder for the steps after the warm start.
fn branched(config: &Config) -> (TempDir, RunFolder) {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let run = branch_run(&WARM_START.1, &keep.path().join("run"), config).expect("a branch");
    (keep, run)
}

/// A run with a warm start of its own.
fn whole(config: &Config) -> webshop_training::Result<(TempDir, RunSummary)> {
    let (keep, run) = begin(config);
    let summary = train(config, &run, TrainOptions::default())?;
    Ok((keep, summary))
}

/// The steps after the warm start.
fn learn(config: &Config) -> (TempDir, RunSummary) {
    let (keep, run) = branched(config);
    let summary = train(config, &run, TrainOptions::default());
    (keep, summary.expect("a run to the end"))
}

fn last_step() -> String {
    format!("step-{:06}", WARM_STEPS + RL_STEPS)
}

static GRPO: LazyLock<(TempDir, RunSummary)> = LazyLock::new(|| learn(&config(&[])));

fn records(keep: &TempDir) -> Vec<Record> {
    read_records(&keep.path().join("run"), "test").expect("what was recorded")
}

fn learned(records: &[Record]) -> Vec<&Record> {
    records
        .iter()
        .filter(|record| record.phase == Phase::Learn && record.get(Metric::RolloutReward).is_some())
        .collect()
}

/// What depends on the seed alone.
fn bytes(keep: &TempDir) -> Vec<Vec<u8>> {
    let last = format!("completions/{}.jsonl", last_step());
    [
        "metrics.jsonl",
        "checkpoints/last/model/model.safetensors",
        "checkpoints/last/model/tokenizer.json",
        &last,
    ]
    .map(|name| {
        fs::read(keep.path().join("run").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    })
    .into()
}

#[test]
fn the_loop_learns_from_single_steps() {
    let all = records(&GRPO.0);
    let learned = learned(&all);
    assert_eq!(learned.len() as u64, RL_STEPS);
    for record in &learned {
        let get = |metric| record.get(metric).unwrap_or_else(|| panic!("{metric:?} is recorded"));
        assert!((0.0..=1.0).contains(&get(Metric::RolloutExactAction)));
        assert!(
            get(Metric::RolloutReward) > 0.3,
            "most completions have the format: {}",
            get(Metric::RolloutReward)
        );
        assert!(get(Metric::TrainGradNorm) > 0.0);
        assert_eq!(record.get(Metric::RolloutSuccessRate), None, "no episodes ran");
    }
    // 32 completions a step, 4 of each of 8 prompts; a token or more each.
    assert!(learned[0].get(Metric::RolloutTokensTotal) > Some(31.0));
}

#[test]
fn completions_are_sampled_from_the_current_weights() {
    // Were the sampler's weights those of an earlier step, its log-probabilities would be, too: after a step they are off by
    // what the step changed, which is what the KL to the reference measures.
    let all = records(&GRPO.0);
    let learned = learned(&all);
    let moved = learned.last().and_then(|record| record.get(Metric::TrainKlK3)).expect("a distance");
    assert!(moved > 1e-5, "the policy moved by {moved}");
    for record in learned {
        let gap = record.get(Metric::TrainLogProbGap).expect("compared at every step");
        assert!(gap < 1e-4, "sampler and trainer differ by {gap}");
    }
}

#[test]
fn a_stopped_run_resumes_to_the_same_bytes() {
    let (keep, run) = branched(&config(&[]));
    let stop = AtomicBool::new(false);
    let stopped = train(&config(&[]), &run, watched(&StopAfter::new(2, &stop), &stop));
    assert!(matches!(stopped, Err(TrainingError::Interrupted { .. })), "{:?}", stopped.err());
    let (run, _) = RunFolder::resume(&keep.path().join("run")).expect("the folder of the stopped run");
    train(&config(&[]), &run, TrainOptions::default()).expect("a run to the end");
    assert!(bytes(&keep) == bytes(&GRPO.0), "it is another run");
}

#[test]
fn every_loss_learns_from_single_steps() {
    for loss in LossKind::ALL {
        let is_by_group = matches!(
            loss,
            LossKind::ApoLagged
                | LossKind::Rloo
                | LossKind::Grpo
                | LossKind::DrGrpo
                | LossKind::Gspo
                | LossKind::Gigpo
        );
        let group_size = if is_by_group { 4 } else { 1 };
        let refresh = if loss == LossKind::ApoLagged { 1 } else { 0 };
        let setting = [
            &*format!("rl.loss.kind={loss}"),
            &*format!("rl.group_size={group_size}"),
            &*format!("value.refresh={refresh}"),
            // Unscaled, rewards of single steps go up to a thousand.
            "shop_r1.reward_scale=0.000999",
            "rl.steps=1",
            "rl.batch_episodes=16",
            "value.goals=8",
            "evaluation.episodes=2",
            "shop_r1.eval_examples=4",
        ];
        // Only RAFT has a threshold.
        let threshold: &[&str] = if loss == LossKind::Raft { &["rl.loss.threshold=0"] } else { &[] };
        let (keep, _) = learn(&config(&[&setting, threshold].concat()));
        let norms: Vec<f64> =
            learned(&records(&keep)).iter().filter_map(|record| record.get(Metric::TrainGradNorm)).collect();
        assert!(norms.len() == 1 && norms[0] > 0.0, "{loss}: {norms:?}");
        let all = records(&keep);
        let value_loss = all.iter().find_map(|record| record.get(Metric::TrainValueLoss));
        assert_eq!(value_loss.is_some_and(f64::is_finite), loss == LossKind::Ppo, "{loss}: {value_loss:?}");
    }
}

#[test]
fn the_loop_learns_from_single_steps_of_the_browsing_expert_in_a_layout() {
    let more = [
        "prompt.format=compact",
        "warm_start.demonstrations=browsing",
        "rl.steps=2",
        "evaluation.episodes=2",
        "evaluation.every=0",
    ];
    let (keep, summary) = whole(&config(&more)).expect("a run to the end");
    let all = records(&keep);
    let learned = learned(&all);
    assert_eq!(learned.len(), 2);
    for record in learned {
        let get = |metric| record.get(metric).unwrap_or_else(|| panic!("{metric:?} is recorded"));
        assert!(get(Metric::RolloutMalformedRate) < 0.5, "most completions are an action");
        assert!(get(Metric::TrainGradNorm) > 0.0);
        assert!(get(Metric::TrainLogProbGap) < 1e-4, "sampler and trainer see the same prompt");
    }
    let scores = summary.learned.and_then(|stage| stage.next_action).expect("held-out steps were scored");
    assert_eq!(scores.n, 24);
    assert!(scores.type_acc.value > 0.5, "{scores}");
}

#[test]
fn other_rewards_and_mixes_of_steps_are_learned_from() {
    let binary = learn(&config(&["shop_r1.score=binary", "rl.steps=1"]));
    let mixed = ["rl.loss.kind=reinforce", "rl.loss.baseline=batch", "shop_r1.mix=paper", "rl.steps=1"];
    let mixed = whole(&config(&mixed)).expect("a run to the end");
    for (keep, _) in [binary, mixed] {
        let all = records(&keep);
        let norms: Vec<f64> =
            learned(&all).iter().filter_map(|record| record.get(Metric::TrainGradNorm)).collect();
        assert!(!norms.is_empty() && norms.iter().all(|norm| *norm > 0.0), "{norms:?}");
    }
}

#[test]
fn scaled_rewards_of_a_thousand_have_finite_values() {
    let apo = ["rl.loss.kind=apo", "rl.group_size=1", "rl.steps=1"];
    // Unscaled, exp(r/β₁) is e²⁰⁰².
    let (keep, _) = learn(&config(&apo));
    let all = records(&keep);
    let value = learned(&all)[0].get(Metric::ValueMean).expect("V* was asked for");
    assert!(value.is_finite() && value > 1.0, "{value}");
}

#[test]
fn no_step_at_all_is_an_error_with_the_counts() {
    let too_small = config(&["prompt.max_context=60", "warm_start.copy_task_steps=0"]);
    let error = whole(&too_small).unwrap_err();
    assert!(matches!(error, TrainingError::NoSteps { step: 0, drawn: 8, .. }), "{error}");
    let message = error.to_string();
    assert!(message.starts_with("none of 8 examples of step 0 can be used: "), "{message}");
    assert!(
        message.contains("prompts leave no room for a completion; draw more goals")
            && message.ends_with("or raise `prompt.max_context`"),
        "{message}"
    );
}

#[test]
fn steps_that_are_too_long_are_left_out_and_counted() {
    // Some results pages of thirty products do not fit, the search page does.
    let (keep, stages) = whole(&config(&["prompt.max_context=440", "rl.steps=2"])).expect("a run to the end");
    let dropped = |records: &[Record]| -> f64 {
        let steps = learned(records).into_iter().take(2);
        steps.filter_map(|record| record.get(Metric::RolloutDroppedSteps)).sum()
    };
    // With more room only the goals are left out that have no demonstration.
    let (all, with_room) = (records(&keep), records(&GRPO.0));
    assert!(dropped(&all) > dropped(&with_room), "{} and {}", dropped(&all), dropped(&with_room));
    let learned = learned(&all);
    assert!(learned.iter().all(|record| record.get(Metric::RolloutTokens) > Some(0.0)), "something was left");
    let scores = stages.learned.and_then(|stage| stage.next_action).expect("held-out steps were scored");
    assert_eq!(scores.n, 24, "held-out steps without room count as invalid");
    assert!(scores.invalid_rate.value > 0.0);
}

#[test]
fn held_out_steps_are_of_held_out_goals_and_always_the_same() {
    let config = config(&[]);
    let tasks = TaskSet::open(&config).expect("a small task set");
    let held_out = || StepSampler::held_out(&tasks, 10, &config.shop_r1, Split::Test, 24);
    let steps = held_out();
    assert_eq!(steps.len(), 24);
    let test = tasks.shop().goals().split(Split::Test);
    assert!(
        steps.iter().all(|(goal, step)| goal.shop == 0 && test.contains(&goal.goal) && step.split == "test")
    );
    assert_eq!(steps, held_out());
    let met: BTreeSet<&str> = steps.iter().map(|(_, step)| step.id.as_str()).collect();
    assert_eq!(met.len(), steps.len(), "no step is evaluated twice");
    let file = GRPO.0.path().join(format!("run/completions/{}.jsonl", last_step()));
    let kept = fs::read_to_string(file).expect("the last completions");
    let results: Vec<StepResult> =
        kept.lines().map(|line| serde_json::from_str(line).expect("a completion")).collect();
    assert!(results.iter().map(|result| &result.id).eq(steps.iter().map(|(_, step)| &step.id)));
    // The evaluation of the run is that of these completions.
    let learned = GRPO.1.learned.as_ref().and_then(|stage| stage.next_action.as_ref());
    assert_eq!(learned, Some(&scores_of(&results, Seed(0))));
    let samples: Vec<Example> = steps.into_iter().map(|(_, step)| step).collect();
    let perfect: Vec<Option<String>> =
        samples.iter().map(|step| Some(PromptFormat::single_step_completion(step))).collect();
    assert_eq!(scores_of(&score_steps(&samples, &perfect), Seed(0)).exact_string.value, 1.0);
}

#[test]
fn terminate_examples_stay_within_their_split() {
    let config = config(&["shop_r1.terminate_share=1"]);
    let tasks = TaskSet::open(&config).expect("a small task set");
    let goals = tasks.shop().goals();
    for split in [Split::Train, Split::Test] {
        let steps = StepSampler::held_out(&tasks, 10, &config.shop_r1, split, 24);
        assert!(!steps.is_empty() && steps.iter().all(|(_, step)| step.source == ExampleSource::Terminate));
        // `terminate-goal-other-step`
        let others = steps.iter().map(|(_, step)| {
            let number = step.id.split('-').nth(2).expect("the other goal");
            GoalId(number.parse().expect("a number"))
        });
        assert!(others.clone().all(|other| goals.split(split).contains(&other)), "{split}");
        assert!(others.collect::<BTreeSet<_>>().len() > 1, "always the search of the same goal");
    }
}

#[test]
fn whole_episodes_are_judged_after_single_steps() {
    let more =
        ["rl.steps=1", "rl.batch_episodes=16", "value.goals=8", "judgement.episodes=2", "judgement.shops=1"];
    let (keep, _) = learn(&config(&more));
    let file = keep.path().join("run/judgement.json");
    let judgement: Judgement = read_json(&file).expect("a judgement");
    let sets: Vec<&str> = judgement.sets.iter().map(|set| set.name.as_str()).collect();
    assert_eq!(sets, ["test", "fresh"]);
    for set in &judgement.sets {
        let first: Vec<&str> = set.policies.iter().take(5).map(|of| of.policy.as_str()).collect();
        let of_run = ["learned", "learned (greedy)", "warm start", "warm start (greedy)"];
        assert_eq!(first, [&of_run[..], &["random"]].concat());
        assert!(set.policies.iter().all(|of| of.summary.episodes == 2));
    }
}

/// The losses of five batches of copy tasks and five of the warm start.
fn losses_of_cloning(more: &str) -> Vec<f64> {
    let (keep, _) = whole(&config(&[more, "warm_start.steps=10", "rl.steps=1"])).expect("a run to the end");
    let all = records(&keep);
    all.iter().filter_map(|record| record.get(Metric::TrainLoss)).take(10).collect()
}

#[test]
fn past_rationales_are_in_the_prompt_only_with_their_key() {
    // Copy tasks are the same; the prompts of the warm start are not.
    let [without, recalled] =
        ["shop_r1.history_rationales=false", "shop_r1.history_rationales=true"].map(losses_of_cloning);
    assert_eq!(without[..5], recalled[..5], "copy tasks come first");
    assert!(without[5..] != recalled[5..]);
}

#[test]
fn both_experts_are_cloned() {
    let [without, with] =
        ["warm_start.thinking_share=0", "warm_start.thinking_share=1"].map(losses_of_cloning);
    assert_eq!(without[..5], with[..5], "copy tasks come first");
    assert!(without[5..] != with[5..]);
}

#[test]
fn steps_of_a_file_are_trained_on() {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let file = keep.path().join("steps.jsonl");
    let tasks = TaskSet::open(&config(&[])).expect("a small task set");
    let steps = StepSampler::held_out(&tasks, 10, &config(&[]).shop_r1, Split::Train, 30);
    let lines = |split: &str| {
        let line = |(_, step): &(_, Example)| {
            serde_json::to_string(&Example { split: split.into(), ..step.clone() }).expect("JSON") + "\n"
        };
        steps.iter().map(line).collect::<String>()
    };
    fs::write(&file, lines("train") + &lines("test")).expect("a file");
    let data = format!("shop_r1.data={:?}", file.to_str().expect("a plain name"));
    let more = [&data, "warm_start.steps=40", "rl.steps=1", "value.goals=1000"];
    let (run, _) = whole(&config(&more)).expect("a run to the end");
    let all = records(&run);
    // 30 steps of the split `train`, each with its own completion: the model memorizes them.
    let losses: Vec<f64> = all.iter().filter_map(|record| record.get(Metric::TrainLoss)).collect();
    assert!(losses[40] < 0.5 * losses[6], "{losses:?}");
    fs::write(&file, lines("test")).expect("a file");
    let error = whole(&config(&more)).expect_err("nothing to learn from").to_string();
    assert!(error.ends_with("it has no example of the split `train`"), "{error}");
}
