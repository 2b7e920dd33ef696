//! A finished run is judged on test goals and on shops of its own seed, and evaluations during training may have goals of several
//! shops.

use std::collections::BTreeMap;

use webshop_evaluation::{Baseline, JudgedSet, Judgement};

use super::browsing::browsing;
use super::*;
use crate::common::command::{answer, path};

/// The policies that know no more than the pages, and those that know the goal.
const RULES: [&str; 7] =
    ["random", "rule", "all-options", "named-options", "named-pairs", "named-features", "stated-options"];
const KNOWING: [&str; 2] = ["expert", "oracle"];

/// The small experiment with a judgement, from the common warm start.
fn judged(more: &[&str]) -> (TempDir, RunFolder, Config) {
    let config = toy(&[&["rl.steps=1", "judgement.episodes=7", "judgement.shops=2"], more].concat());
    let (keep, run) = branch(&config);
    (keep, run, config)
}

fn judgement(run: &RunFolder) -> Judgement {
    read_json(&run.judgement()).expect("a judgement")
}

fn names(set: &JudgedSet) -> Vec<&str> {
    set.policies.iter().map(|of| of.policy.as_str()).collect()
}

#[test]
fn a_run_is_judged_beside_its_warm_start_and_the_baselines_on_the_same_goals() {
    let (_keep, run, config) = judged(&[]);
    train(&config, &run, TrainOptions::default()).expect("a run to the end");
    let judgement = judgement(&run);
    let sets: Vec<(&str, usize)> = judgement.sets.iter().map(|set| (&*set.name, set.shops)).collect();
    assert_eq!(sets, [("test", 1), ("fresh", 2)]);
    let of_run = ["learned", "learned (greedy)", "warm start", "warm start (greedy)"];
    for set in &judgement.sets {
        // The demonstrations are of experts that know the goal.
        assert_eq!(names(set), [&of_run[..], &RULES, &KNOWING].concat());
        let (first, others) = set.policies.split_first().expect("some policies");
        assert_eq!(first.difference, None);
        for Baseline { policy, summary, difference, .. } in others {
            assert_eq!((summary.episodes, summary.products), (7, first.summary.products), "{policy}");
            let mean = difference.expect("the goals are the same").mean;
            let expected = first.summary.success_rate - summary.success_rate;
            assert!((mean - expected).abs() < 1e-12, "{policy}: {mean}");
        }
        assert_eq!(others.last().expect("the oracle").summary.success_rate, 1.0);
    }
}

#[test]
fn a_judgement_that_was_stopped_is_made_again_with_the_same_bytes() {
    let (_keep, whole, config) = judged(&[]);
    train(&config, &whole, TrainOptions::default()).expect("a run to the end");
    let (_keep_too, run, config) = judged(&[]);
    let stop = AtomicBool::new(false);
    // After V* and the only step, the second episode of the judgement.
    let stopped = train(&config, &run, watched(&StopAfter::new(VALUE_EPISODES + 1 + 2, &stop), &stop));
    assert!(matches!(stopped, Err(TrainingError::Interrupted { .. })), "{:?}", stopped.err());
    assert!(!run.judgement().exists() && !run.summary().exists(), "the run is not finished");
    // `warm_up` in this folder would have left a summary without the last evaluation.
    fs::copy(WARM_START.1.summary(), run.summary()).expect("a summary");
    let threads = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("threads");
    threads.install(|| Run::resumed(run.root()));
    assert!(
        fs::read(run.summary()).expect("a summary") != fs::read(WARM_START.1.summary()).expect("another")
    );
    let read = |run: &RunFolder| fs::read(run.judgement()).expect("a judgement");
    assert!(read(&run) == read(&whole), "it is another judgement");
}

#[test]
fn a_clone_is_judged_once() {
    let (_keep, run, config) = judged(&["rl.steps=0", "judgement.shops=0", "evaluation.temperature=0"]);
    train(&config, &run, TrainOptions::default()).expect("a run to the end");
    let judgement = judgement(&run);
    assert_eq!(judgement.sets.len(), 1, "without fresh shops there are test goals only");
    // Evaluations are greedy here, so that there is nothing else to judge.
    assert_eq!(names(&judgement.sets[0]), [&["warm start"][..], &RULES, &KNOWING].concat());
}

#[test]
fn evaluations_of_several_shops_are_clustered_by_shop_and_replayed() {
    let more = [
        "catalog.train_on_source=false",
        "evaluation.split=validation",
        "evaluation.shops=2",
        "evaluation.episodes=12",
        "judgement.episodes=4",
        "judgement.shops=1",
    ];
    let run = Run::whole(&browsing(&more), 2);
    let folder = RunFolder::open(&run.folder).expect("a run").0;
    let last = run.folder.join("episodes/step-000013.jsonl");
    let lines = fs::read_to_string(&last).expect("the last episodes");
    let mut products: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    let config = browsing(&more);
    let goals = TaskSet::open(&config).expect("a task set").evaluation_goals(&config.evaluation);
    for (line, goal) in lines.lines().zip(&goals) {
        let episode: serde_json::Value = serde_json::from_str(line).expect("an episode");
        let shop = episode["coordinates"]["shop"].as_u64().expect("a number");
        assert_eq!((shop, &episode["goal"]), (goal.shop_number(), &goal.goal.0.into()));
        assert_eq!(episode["goal_fingerprint"], goal.shop.goals().fingerprint());
        let asin = goal.shop.goals().get(goal.goal).asin.to_string();
        products.entry(shop).or_default().insert(asin);
    }
    assert!(products.len() > 1, "all goals are of one shop: {products:?}");
    let n_products: usize = products.values().map(BTreeSet::len).sum();
    let summary: serde_json::Value = read_json(&folder.summary()).expect("a summary");
    assert_eq!(summary["learned"]["summary"]["products"], n_products);
    let baselines: Vec<Baseline> = read_json(&folder.baselines()).expect("baselines");
    let policies: Vec<&str> = baselines.iter().map(|of| of.policy.as_str()).collect();
    assert_eq!(policies, [&RULES[..], &["browsing-expert"], &KNOWING].concat());
    assert!(baselines.iter().all(|of| of.summary.products == Some(n_products)));
    for set in judgement(&folder).sets {
        assert!(names(&set).contains(&"browsing-expert"), "{set:?}");
    }
    let replayed = answer(&["replay", path(&last), "--size", "30"]);
    assert!(replayed.starts_with("12 episodes, "), "{replayed}");
    assert!(replayed.contains("no difference"), "{replayed}");
    // Nothing of the configured catalog was trained on.
    let values: serde_json::Value = read_json(&folder.value()).expect("V* of the training goals");
    let values = values["goals"].as_array().expect("goals");
    assert!(!values.is_empty() && values.iter().all(|goal| goal["shop"] != 0), "{values:?}");
}
