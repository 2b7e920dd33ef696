//! Goals, rewards and fingerprints of an experiment.

use std::collections::BTreeSet;
use std::sync::Arc;

use webshop_agent::{EpisodeCoordinates, OraclePolicy, PromptFormat, RolloutConfig, rollout};
use webshop_lm::device::{DeviceRequest, KernelChoice};
use webshop_products::GoalId;

use super::*;
use crate::config::{CurriculumConfig, TaskReward};
use crate::metrics::{Phase, Record};
use crate::setup::open_shop::open_shop;
use crate::trainer::frozen::FrozenPolicy;
use crate::trainer::multi_turn::MultiTurn;
use crate::trainer::reference::value_key;
use crate::trainer::task_source::{RolloutRequest, TaskSource};
use crate::value::{ReferenceRollout, ValueTable};

#[test]
fn only_goals_whose_v_star_is_estimated_are_limited() {
    let keys = |loss| {
        let keys = format!(
            "catalog.size=30 auxiliary_shops=1 auxiliary_products=10 vocab_size=300 value.goals=8 {loss}"
        );
        keys.split_whitespace().map(String::from).collect::<Vec<_>>()
    };
    let compute = Compute::choose(DeviceRequest::Cpu, None, KernelChoice::Custom).unwrap();
    for (loss, is_limited) in [
        ("loss=apo", true),
        ("loss=ppo", false),
        ("loss=raft", false),
        ("loss=raft keep_spread=0.5", true),
        ("loss=raft goals_per_product=1", false),
    ] {
        let config = Config::resolve("test", "", &keys(loss)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::create(&folder.path().join("run"), &config).unwrap();
        let (ex, ..) = Experiment::open(&compute, &config, &run, TrainOptions::default()).unwrap();
        let n_training = ex.tasks.training().len();
        let source = MultiTurn { ex: &ex, tasks: ex.tasks.clone() };
        let per_product = config.rl.goals_per_product;
        let n_balanced = ex.tasks.clone().balanced(ex.seed(), per_product).training().len();
        assert!(n_balanced > 8 && (n_balanced == n_training) == (per_product == 0));
        let expected = if is_limited { 8 } else { n_balanced };
        assert_eq!(source.goals(0).unwrap().len(), expected, "{loss}");
    }
}

/// A new run in a temporary folder, with few goals, a small vocabulary, and further keys.
pub(in crate::trainer) fn small_run(keys: &str) -> (tempfile::TempDir, Config, RunFolder, Compute) {
    let small = "catalog.size=30 auxiliary_shops=1 auxiliary_products=10 vocab_size=300";
    let keys: Vec<String> =
        [small, keys].iter().flat_map(|keys| keys.split_whitespace()).map(String::from).collect();
    let config = Config::resolve("test", "", &keys).unwrap();
    let compute = Compute::choose(DeviceRequest::Cpu, None, KernelChoice::Custom).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = RunFolder::create(&folder.path().join("run"), &config).unwrap();
    (folder, config, run, compute)
}

#[test]
fn the_parts_that_changed_are_named_when_a_run_is_resumed() {
    let (_folder, config, run, compute) = small_run("");
    Experiment::open(&compute, &config, &run, TrainOptions::default()).unwrap();
    let path = run.fingerprint();
    let mut begun: Fingerprint = read_json(&path).unwrap();
    begun.rewards.push('x');
    begun.compute.push('x');
    write_json(&path, &begun).unwrap();
    let Err(error) = Experiment::open(&compute, &config, &run, TrainOptions::default()) else {
        panic!("the fingerprint differs")
    };
    let problem = "these changed since the run began, so that it cannot be resumed: `rewards`, the version of the \
                   rewards; `compute`, the device, dtype and kernels; start a new run";
    assert_eq!(error.to_string(), format!("`{}` cannot be used: {problem}", path.display()));
}

#[test]
fn no_two_episodes_of_a_step_are_equal() {
    let (_folder, config, run, compute) = small_run("");
    let (ex, ..) = Experiment::open(&compute, &config, &run, TrainOptions::default()).unwrap();
    let source = MultiTurn { ex: &ex, tasks: ex.tasks.clone() };
    // A step that draws its first goal twice.
    let goals = [0, 1, 0].map(|place| source.tasks.training()[place]);
    let tasks = source.tasks_of(&goals, 7, 2);
    let samples: Vec<u64> = tasks.iter().map(|task| task.coordinates.sample).collect();
    assert_eq!(samples, [0, 1, 0, 1, 2, 3]);
    for (place, task) in tasks.iter().enumerate() {
        let TaskId { shop, goal } = goals[place / 2];
        assert_eq!((task.coordinates.shop, task.coordinates.goal), (shop.into(), goal));
    }
    let different: BTreeSet<_> = tasks.iter().map(|task| task.coordinates).collect();
    assert_eq!(different.len(), tasks.len());
}

#[test]
fn a_curriculum_stage_without_goals_is_refused_before_any_work() {
    let mut config = Config::default();
    config.catalog.auxiliary_shops = 0;
    config.catalog.train_on_source = true;
    let tasks = TaskSet::open(&config).unwrap();
    let n_requirements = |goal: &TaskId| tasks.shop_of(*goal).goals().get(goal.goal).n_requirements();
    let least = tasks.training().iter().map(n_requirements).min().unwrap();
    config.curriculum = CurriculumConfig {
        requirements: vec![least, least - 1],
        thresholds: vec![0.5, 0.5],
        ..CurriculumConfig::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let run = RunFolder::create(&folder.path().join("run"), &config).unwrap();
    let compute = Compute::choose(DeviceRequest::Cpu, None, KernelChoice::Custom).unwrap();
    let Err(error) = Experiment::open(&compute, &config, &run, TrainOptions::default()) else {
        panic!("the last stage has no goal")
    };
    assert_eq!(
        error.to_string(),
        format!(
            "configuration key `curriculum.requirements` must leave a training goal: none has {} requirements or \
             fewer",
            least - 1
        )
    );
    assert!(!run.root().join("metrics.jsonl").exists(), "files of the run were opened");
}

#[test]
fn the_reward_is_the_configured_one_minus_the_penalty() {
    let mut config = Config::default();
    let shop = Arc::new(open_shop(&config.catalog).unwrap());
    let task = Task::new(shop, EpisodeCoordinates::of_goal(GoalId(0)));
    let how = RolloutConfig { max_steps: 15, lanes: 1 };
    let success = rollout(&mut OraclePolicy, &[task], how, &mut |_, _| ()).unwrap().remove(0);
    let mut partial = success.clone();
    partial.reward = 0.4;
    partial.breakdown.as_mut().expect("a purchase").price_ok = false;
    let mut malformed = partial.clone();
    malformed.turns[..2].iter_mut().for_each(|turn| turn.agent.is_well_formed = false);

    config.rl.malformed_penalty = 0.125;
    for (reward, of_success, of_partial) in [
        (TaskReward::Score, 1.0, 0.4),
        (TaskReward::Success, 1.0, 0.0),
        (TaskReward::Blend, 1.0, 0.2),
        (TaskReward::Zero, 0.0, 0.0),
    ] {
        config.rl.reward = reward;
        config.prompt.format = PromptFormat::VerlAgent;
        let rewards = [&success, &partial, &malformed].map(|episode| config.reward(episode));
        assert_eq!(rewards, [of_success, of_partial, of_partial - 2.0 * 0.125], "{reward:?}");
        config.prompt.format = PromptFormat::Compact;
        assert_eq!(config.reward(&malformed), of_partial, "{reward:?}: no chat, no penalty");
    }
}

/// The policy as the reference, with V* of `goals` by the rewards of these rollouts of each.
pub(in crate::trainer) fn frozen(
    ex: &Experiment<'_>,
    goals: &[TaskId],
    rewards: impl Fn(usize) -> Vec<f64>,
) -> FrozenPolicy {
    let model = &ex.policy.model;
    let mut values = ValueTable::new(value_key(ex, model, 0, String::new()).unwrap(), 0.5);
    for (place, goal) in goals.iter().enumerate() {
        let rollout =
            |reward| ReferenceRollout { reward, is_success: false, n_tokens: 1, states: Vec::new() };
        let rollouts: Vec<ReferenceRollout> = rewards(place).into_iter().map(rollout).collect();
        values.insert(goal.shop, goal.goal.0, &rollouts);
    }
    FrozenPolicy { network: Network::new(model, ex.compute).unwrap(), since: 0, values }
}

#[test]
fn every_rollout_has_the_group_and_the_v_star_of_its_goal() {
    let (_folder, config, run, compute) = small_run("loss=grpo group_size=2 max_steps=2 max_turn_tokens=8");
    let (ex, mut progress, _) = Experiment::open(&compute, &config, &run, TrainOptions::default()).unwrap();
    let source = MultiTurn { ex: &ex, tasks: ex.tasks.clone() };
    let goals = [4, 0, 9].map(|place| source.tasks.training()[place]);
    // Not in the order of the goals.
    let v_stars = [0.25, 0.75, 0.5];
    let reference = frozen(&ex, &goals, |place| vec![v_stars[place]]);
    let request =
        RolloutRequest { step: 0, goals: &goals, network: &reference.network, reference: &reference };
    let mut record = Record::new(Phase::Learn, 0);
    let rollouts = source.collect(&request, &mut progress, &mut record).unwrap();
    assert_eq!(rollouts.scored.len(), 6, "random weights sample tokens");
    for (place, scored) in rollouts.scored.iter().enumerate() {
        assert_eq!(scored.group, place / 2);
        assert!((scored.v_star - v_stars[place / 2]).abs() < 1e-12, "{place}: {scored:?}");
    }
}
