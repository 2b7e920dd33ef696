//! What the runs of a comparison share, and what an interruption leaves to do.

use std::sync::Arc;

use crate::common::experiment::TOY;
use webshop_report::write_report;
use webshop_training::sweep::{Changes, CompareOptions, Comparison, ComparisonFolder, compare};

use super::*;

/// Two arms that differ in `value.beta1` only, which the rewards of reference rollouts do not depend on.
const TWO_BETAS: &str = r#"
    title = "Two values of beta1"
    base = "base.toml"
    seeds = [0]
    baseline = "half"
    set = ["warm_start.steps=35", "rl.steps=2"]

    [[arm]]
    name = "half"

    [[arm]]
    name = "quarter"
    set = ["value.beta1=0.25"]
"#;

/// Records the stages that begin.
#[derive(Clone, Default)]
struct Stages(Arc<Mutex<Vec<String>>>);

impl Stages {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("one thread at a time"))
    }
}

impl Observer for Stages {
    fn begin(&self, stage: &str, _total: u64, _done: u64) {
        self.0.lock().expect("one thread at a time").push(stage.to_owned());
    }

    fn advance(&self, _units: u64, _note: &str) {}
    fn end(&self) {}
    fn log(&self, _line: &str) {}
}

#[test]
fn arms_share_reference_rollouts_and_reports_that_are_missing_are_written() {
    let keep = tempfile::tempdir().expect("a temporary folder");
    fs::write(keep.path().join("base.toml"), TOY).expect("a written file");
    let file = keep.path().join("betas.toml");
    fs::write(&file, TWO_BETAS).expect("a written file");
    let comparison = Comparison::load(&file, &Changes::default()).expect("a valid comparison");
    let folder = ComparisonFolder::new(&keep.path().join("out"));
    let stages = Stages::default();
    let observe = |_: &str| -> Box<dyn Observer> { Box::new(stages.clone()) };
    let all_runs = || {
        let options = CompareOptions { observe: &observe, ..CompareOptions::new(&write_report) };
        compare(&comparison, &folder, options).expect("all runs");
        stages.take()
    };
    let begun = all_runs();
    // Both arms draw the eight goals of the pool in their first step.
    assert_eq!(begun.iter().filter(|stage| *stage == "V*").count(), 1, "{begun:?}");

    // The values of the second arm are those of a run that makes its own rollouts.
    let config = toy(&["warm_start.steps=35", "rl.steps=2", "value.beta1=0.25"]);
    let alone = Run::whole(&config, 1);
    let quarter = folder.run("quarter", 0);
    for name in ["value.json", "metrics.jsonl", "checkpoints/last/model/model.safetensors"] {
        let [shared, own] = [&quarter, &alone.folder].map(|run| fs::read(run.join(name)).expect(name));
        assert!(shared == own, "`{name}` differs");
    }

    // As if it was killed before its report.
    let report = quarter.join("report.html");
    fs::remove_file(&report).expect("a report");
    assert_eq!(all_runs(), Vec::<String>::new(), "nothing is trained again");
    assert!(report.is_file());
}
