//! A sweep on another engine than the CPU backend.

use webshop_lm::device::{Compute, DeviceRequest, KernelChoice};

use super::*;
use crate::common::experiment::on;

#[test]
fn a_comparison_on_another_engine_is_of_runs_of_that_engine() {
    let engine = |kernels| Compute::choose(DeviceRequest::Cpu, None, kernels).expect("the CPU");
    let steps = r#"["warm_start.steps=35", "rl.steps=3", "rl.batch_episodes=16", "judgement.episodes=6", "judgement.shops=1"]"#;
    assert!(TWO.contains(steps), "they are there to be replaced");
    let fewer = [
        "run.max_steps=6",
        "warm_start.batch_episodes=1",
        "copy_task_steps=1",
        "warm_start.steps=1",
        "rl.steps=1",
        "rl.batch_episodes=4",
        "value.goals=2",
        "value.samples=1",
        "evaluation.episodes=2",
        "evaluation.warm_start_every=0",
        "judgement.episodes=2",
        "judgement.shops=0",
    ];
    let (keep, ..) = begin(&TWO.replace(steps, &format!("{fewer:?}")));
    let device_flags = " --kernels reference".to_owned();
    let changes = Changes { seeds: vec![0], device_flags, ..Changes::default() };
    let comparison = Comparison::load(&keep.path().join("two.toml"), &changes).expect("a valid comparison");
    let folder = ComparisonFolder::new(&keep.path().join("out"));
    let made = |kernels| {
        let engine = engine(kernels);
        let options = CompareOptions { compute: Some(&engine), ..CompareOptions::new(&write_report) };
        compare(&comparison, &folder, options)
    };
    made(KernelChoice::Reference).expect("all runs");
    let branched = folder.run("wsft", 0);
    let config = comparison.arms[1].config(0);
    let run = RunFolder::create(&keep.path().join("alone"), &config).expect("an empty folder");
    train(&config, &run, on(&engine(KernelChoice::Reference))).expect("a run to the end");
    for part in ["metrics.jsonl", "value.json", "judgement.json", "fingerprint.json"] {
        let bytes = |folder: &Path| fs::read(folder.join(part)).expect(part);
        assert!(bytes(run.root()) == bytes(&branched), "`{part}` differs");
    }
    let command = fs::read_to_string(branched.join("cmdline.txt")).expect("a command");
    assert!(command.contains(" --kernels reference "), "{command}");
    assert!(comparison.whole_command().ends_with(" --seeds 0 --kernels reference"));

    let refused = made(KernelChoice::Custom).expect_err("they are of the other engine").to_string();
    let refused = refused.replace(&folder.root().display().to_string(), "OUT");
    assert_eq!(
        refused,
        "`OUT/warm-start/seed-0` cannot be used: it was made with `CPU, F32, reference kernels`, and this comparison says \
         the CPU backend; remove it, or use another folder"
    );
}
