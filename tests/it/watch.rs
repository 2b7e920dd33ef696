//! `watch` shows what a running experiment has recorded so far.

use std::fs;
use std::path::Path;

use crate::common::command::{answer, path, temporary};
use crate::common::in_area;
use webshop_training::config::Config;
use webshop_training::metrics::{Metric, MetricsPosition, MetricsWriter, Phase, Record, Timing};
use webshop_training::{RunFolder, RunSummary};

/// A run of 20 steps of warm start and 40 of RL, of which some are recorded: success rises, the loss falls.
pub(crate) fn record_run(root: &Path, steps: u64) -> RunFolder {
    let overrides = ["copy_task_steps=5", "warm_start.steps=15", "rl.steps=40"].map(String::from);
    let config = Config::resolve("a test", "", &overrides).expect("a valid experiment");
    let run = RunFolder::create(root, &config).expect("an empty folder");
    let mut writer = MetricsWriter::open(root, "validation", MetricsPosition::default()).expect("new files");
    for step in 0..=steps {
        let phase = if step <= 20 { Phase::WarmStart } else { Phase::Learn };
        let mut record = Record::new(phase, step);
        let share = step as f64 / 60.0;
        if step > 0 {
            record.set(Metric::TrainLoss, 4.0 * (1.0 - share));
        }
        if step.is_multiple_of(10) {
            record.set(Metric::EvalSuccessRate, share * share).set(Metric::EvalTaskScore, share);
        }
        if phase == Phase::Learn {
            let wave = f64::from(u8::from(step.is_multiple_of(2)));
            record.set(Metric::RolloutSuccessRate, share).set(Metric::TrainApproxKl, share + 0.2 * wave);
        }
        writer.write(&record, &Timing::new(phase, step, step as f64)).expect("written lines");
    }
    run
}

/// What `watch` prints of `folder`, which is written RUN.
fn shown(folder: &Path) -> String {
    answer(&["watch", path(folder)]).replace(path(folder), "RUN")
}

#[test]
fn a_run_is_shown_with_its_curves() {
    let dir = temporary();
    record_run(dir.path(), 50);
    in_area("watch", || insta::assert_snapshot!("run", shown(dir.path())));
}

#[test]
fn a_comparison_is_shown_run_by_run() {
    let dir = temporary();
    record_run(&dir.path().join("warm-start/seed-0"), 20);
    let finished = record_run(&dir.path().join("runs/apo/seed-0"), 60);
    let summary = serde_json::to_string(&RunSummary::default()).expect("JSON");
    fs::write(finished.summary(), summary).expect("a written file");
    record_run(&dir.path().join("runs/weighted-sft-at-batch-64/seed-0"), 30);
    // A run that is being copied from its warm start is not shown yet.
    fs::create_dir_all(dir.path().join("runs/wsft/.partial-seed-0")).expect("a folder");
    in_area("watch", || insta::assert_snapshot!("comparison", shown(dir.path())));
}

#[test]
fn a_run_without_a_measurement_is_shown() {
    let dir = temporary();
    RunFolder::create(&dir.path().join("run"), &Config::default()).expect("an empty folder");
    assert!(shown(&dir.path().join("run")).ends_with("no metrics recorded yet\n"));
}
