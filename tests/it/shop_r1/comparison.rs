//! A comparison of single-step and multi-turn arms.

use std::fs;

use super::training::config;
use crate::common::EXHAUSTIVE;
use webshop_report::{write_comparison, write_report};
use webshop_training::sweep::{Changes, CompareOptions, Comparison, ComparisonFolder, compare};

#[test]
fn single_step_and_multi_turn_runs_are_compared_on_the_same_tasks() {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let base = keep.path().join("base.toml");
    fs::write(
        &base,
        config(&["warm_start.steps=20", "rl.steps=1", "evaluation.every=0", "evaluation.warm_start_every=0"])
            .to_toml(),
    )
    .expect("a file");
    let plan = keep.path().join("plan.toml");
    let text = r#"
        base = "base.toml"
        seeds = [0]
        baseline = "steps"
        [[arm]]
        name = "steps"
        [[arm]]
        name = "episodes"
        set = ["rl.mode=multi_turn", "rl.loss.kind=raft", "rl.loss.threshold=-1", "rl.group_size=1"]
        [[arm]]
        name = "session"
        alone = true
        set = ["prompt.format=shop-r1", "prompt.max_context=1024"]
    "#;
    fs::write(&plan, text).expect("a file");
    let comparison = Comparison::load(&plan, &Changes::default()).expect("a valid plan");
    let made = |name: &str| {
        let folder = ComparisonFolder::new(&keep.path().join(name));
        compare(&comparison, &folder, CompareOptions::new(&write_report)).expect("all runs");
        let page = write_comparison(&comparison, &folder).expect("a report");
        fs::read_to_string(page.with_file_name("table.md")).expect("tables")
    };
    let table = made("once");
    if EXHAUSTIVE {
        assert_eq!(table, made("twice"), "the same bytes");
    }
    let (_, answers) = table.split_once("## Next actions at held-out steps\n").expect("a table of answers");
    let first_cells: Vec<&str> =
        answers.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next()).take(8).collect();
    assert_eq!(
        first_cells,
        [
            "arm",
            "steps",
            "episodes",
            "session",
            "always terminate",
            "always click buy now",
            "most frequent action",
            "copied instruction"
        ]
    );
    let drawing = fs::read_to_string(keep.path().join("once/exact.svg")).expect("a drawing");
    assert!(first_cells[1..].iter().all(|name| drawing.contains(name)), "{drawing}");
}
