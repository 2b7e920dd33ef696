//! Tests of comparisons as they are configured.

use super::*;
use crate::config::SplitName;

const TWO: &str = r#"
    seeds = [0, 3]
    baseline = "wsft"
    set = ["rl.steps=7"]

    [[arm]]
    name = "apo"

    [[arm]]
    name = "wsft"
    set = ["rl.loss.kind=wsft", "rl.steps=8"]
"#;

fn load(text: &str) -> Result<Comparison> {
    load_with(text, Changes::default())
}

fn load_with(text: &str, changes: Changes) -> Result<Comparison> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.toml");
    fs::write(&file, text).unwrap();
    Comparison::load(&file, &changes)
}

#[test]
fn an_arm_overrides_the_common_configuration() {
    let two = load(TWO).unwrap();
    let steps = |arm: &Arm| (arm.config(3).seed, arm.config(3).rl.steps);
    assert_eq!(two.arms.iter().map(steps).collect::<Vec<_>>(), [(3, 7), (3, 8)]);
    assert_eq!((two.baseline, two.seeds.as_slice()), (1, &[0, 3][..]));
    assert_eq!(
        two.command(&two.arms[1], 3),
        "webshop train --set rl.steps=7 --set rl.loss.kind=wsft --set rl.steps=8 --seed 3"
    );
}

#[test]
fn overrides_come_after_values_of_all_arms_and_before_those_of_one() {
    let set = vec!["rl.steps=9".into(), "rl.lr=0.5".into()];
    let two = load_with(TWO, Changes { set, ..Changes::default() }).unwrap();
    let values = |arm: &Arm| (arm.config(0).rl.steps, arm.config(0).rl.lr);
    assert_eq!(two.arms.iter().map(values).collect::<Vec<_>>(), [(9, 0.5), (8, 0.5)]);
    assert!(two.whole_command().ends_with("two.toml --set rl.steps=9 --set rl.lr=0.5"));
}

#[test]
fn a_key_that_varies_makes_arms_of_each_arm() {
    let vary = Some("rl.lr=1e-4,1e-3".parse().unwrap());
    let four = load_with(TWO, Changes { seeds: vec![7], vary, ..Changes::default() }).unwrap();
    let arms: Vec<(&str, f64, u64)> =
        four.arms.iter().map(|arm| (&*arm.name, arm.config(0).rl.lr, arm.config(0).rl.steps)).collect();
    assert_eq!(
        arms,
        [("apo-1e-4", 1e-4, 7), ("apo-1e-3", 1e-3, 7), ("wsft-1e-4", 1e-4, 8), ("wsft-1e-3", 1e-3, 8)]
    );
    assert_eq!((four.baseline, four.seeds.as_slice()), (2, &[7][..]));
    assert!(four.whole_command().ends_with("two.toml --seeds 7 --vary rl.lr=1e-4,1e-3"));
    assert!("rl.lr".parse::<Variation>().is_err());
}

#[test]
fn the_shipped_comparisons_are_valid() {
    let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    for (file, n_arms, n_seeds, is_recorded) in [
        ("gain.toml", 5, 5, false),
        ("learner_rates.toml", 29, 1, false),
        ("learners.toml", 15, 3, false),
        ("single_steps.toml", 5, 3, false),
        ("single_step_rates.toml", 8, 1, false),
        ("two_habits_learners.toml", 11, 3, true),
        ("nothing.toml", 10, 3, true),
        ("shop_r1_arms.toml", 7, 3, true),
        ("shop_r1_ablations.toml", 13, 1, true),
    ] {
        let comparison = Comparison::load(&configs.join(file), &Changes::default()).unwrap();
        assert_eq!((comparison.arms.len(), comparison.seeds.len()), (n_arms, n_seeds), "{file}");
        // Results recorded earlier were trained on the catalog, and evaluated on its test goals.
        let recorded = (true, SplitName::Test, 0);
        let expected = if is_recorded { recorded } else { (false, SplitName::Validation, 4) };
        for Config { catalog, evaluation, .. } in comparison.arms.iter().map(|arm| &arm.config) {
            let goals = (catalog.train_on_source, evaluation.split, evaluation.shops);
            assert_eq!(goals, expected, "{file}");
        }
    }
}

#[test]
fn a_comparison_on_a_users_catalog_needs_its_folder() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/verl_agent_gain.toml");
    let refusal = Comparison::load(&file, &Changes::default()).unwrap_err().to_string();
    assert!(refusal.contains("catalog.source"), "{refusal}");
    let set = vec!["catalog.source=100".into()];
    let comparison = Comparison::load(&file, &Changes { set, ..Changes::default() }).unwrap();
    assert_eq!((comparison.arms.len(), comparison.seeds.len()), (4, 3));
}

#[test]
fn invalid_comparisons_are_refused() {
    let refusal = |from: &str, to: &str| {
        assert!(TWO.contains(from), "the file has `{from}`");
        let error = load(&TWO.replacen(from, to, 1)).unwrap_err().to_string();
        error.split_once("two.toml` ").map_or(error.clone(), |(_, problem)| problem.to_owned())
    };
    for (from, to, problem) in [
        ("\"apo\"", "\"wsft\"", "cannot be used: two arms are named `wsft`"),
        ("\"apo\"", "\"../a\"", "cannot be used: arm `../a` must be named by letters, digits and `-_.+`"),
        ("[0, 3]", "[3, 0, 3]", "cannot be used: seed `3` is named twice"),
        ("[0, 3]", "[]", "cannot be used: `seeds` names none"),
        ("= \"wsft\"", "= \"grpo\"", "cannot be used: `baseline` names no arm: `grpo`"),
        (
            "\"rl.steps=8\"",
            "\"warm_start.lr=1\"",
            "cannot be used: arm `wsft` changes `warm_start.lr`, which the common warm start depends on; set \
             it for all arms, compare in another file, or give the arm a warm start of its own by `alone = true`",
        ),
        (
            "\"rl.steps=8\"",
            "\"seed=1\"",
            "cannot be used: arm `wsft` changes `seed`, which the common warm start depends on; set it for \
             all arms, compare in another file, or give the arm a warm start of its own by `alone = true`",
        ),
        ("rl.steps=8", "rl.lrr=8", "unknown configuration key `rl.lrr` (did you mean `rl.lr`?)"),
    ] {
        assert_eq!(refusal(from, to), problem);
    }
    assert!(refusal("seeds", "sseeds").contains("unknown field `sseeds`"));
    assert_eq!(
        refusal("\"rl.steps=8\"", "\"evaluation.episodes=7\"]\nalone = true #"),
        "cannot be used: arm `wsft` changes `evaluation.episodes`, which decides how all arms are evaluated; \
         set it for all arms"
    );
    // Validation shops and fresh shops are as large as auxiliary ones; test goals are of the catalog.
    let size = "\"catalog.auxiliary_products=7\"]\nalone = true #";
    let of_test_goals = |common: &str| {
        let common = format!("[\"evaluation.split=test\"{common}]");
        load(&TWO.replace("[\"rl.steps=7\"]", &common).replace("\"rl.steps=8\"", size))
    };
    assert!(refusal("\"rl.steps=8\"", size).contains("changes `catalog.auxiliary_products`"));
    assert!(of_test_goals("").is_err());
    assert!(of_test_goals(", \"judgement.shops=0\"").is_ok());
    let steps = "\"run.max_steps=7\"]\nalone = true #";
    assert!(refusal("\"rl.steps=8\"", steps).contains("changes `run.max_steps`"));
    // Held-out steps are the demonstrator's.
    let habit = "\"warm_start.reads_features=0.1\"]\nalone = true #";
    let with_steps = |n: u32| {
        let common = format!("[\"shop_r1.eval_examples={n}\"]");
        load(&TWO.replace("[\"rl.steps=7\"]", &common).replace("\"rl.steps=8\"", habit))
    };
    let problem = with_steps(3).unwrap_err().to_string();
    assert!(
        problem.contains("changes `warm_start.reads_features`, which decides how all arms are evaluated"),
        "{problem}"
    );
    assert!(with_steps(0).is_ok());
}
