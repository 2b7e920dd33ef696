//! The trainer learns on the GPU backend as on the CPU backend, in the same files: here on the CPU, where that backend runs
//! as well, with candle's operations instead of its kernels.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use crate::common::cases;
use crate::common::experiment::{has_learned, on, toy};
use crate::common::stop::{StopAfter, watched};
use crate::fine_tuning::begun;
use candle_core::Var;
use tempfile::TempDir;
use webshop_lm::{
    Qwen2, checkpoint, device::Compute, device::ComputeDtype, device::DeviceRequest, device::KernelChoice,
    lora::Lora,
};
use webshop_products::Seed;
use webshop_training::config::Config;
use webshop_training::metrics::{Metric, Phase, read_records};
use webshop_training::{RunFolder, TrainOptions, TrainingError, qwen2_config, train};

/// Copy tasks and demonstrations.
const WARM_STEPS: u64 = 18;
/// Rollouts for V*: two goals, two samples each.
const VALUE_EPISODES: u64 = 4;

/// The small experiment, shorter, with more keys. After so few steps purchases are rare: every episode is imitated,
/// whatever its reward.
fn config(more: &[&str]) -> Config {
    let shorter = [
        "copy_task_steps=3",
        "warm_start.steps=15",
        "max_turn_tokens=24",
        "max_steps=6",
        "value.goals=2",
        "value.samples=2",
        "rl.steps=2",
        "rl.loss.kind=wsft",
        "rl.loss.guarded=false",
        "rl.batch_episodes=4",
        "rl.demonstration_share=0.2",
        "optimizer.grad_clip_quantile=0.5",
        "evaluation.episodes=2",
        "evaluation.every=0",
        "evaluation.warm_start_every=0",
    ];
    toy(&[&shorter, more].concat())
}

/// The GPU backend on the CPU.
fn second(dtype: ComputeDtype) -> Compute {
    Compute::choose(DeviceRequest::Cpu, Some(dtype), KernelChoice::Reference).expect("a CPU")
}

/// A run from its beginning to its end.
fn whole(compute: &Compute, config: &Config) -> (TempDir, RunFolder) {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let run = RunFolder::create(&keep.path().join("run"), config).expect("an empty folder");
    train(config, &run, on(compute)).expect("a run to the end");
    (keep, run)
}

static F32: LazyLock<(TempDir, RunFolder)> =
    LazyLock::new(|| whole(&second(ComputeDtype::F32), &config(&[])));
static BF16: LazyLock<(TempDir, RunFolder)> =
    LazyLock::new(|| whole(&second(ComputeDtype::Bf16), &config(&[])));

/// The files of a run that depend on nothing but the seed and where it is computed.
fn bytes(run: &RunFolder) -> Vec<(&'static str, Vec<u8>)> {
    let names = [
        "metrics.jsonl",
        "value.json",
        "fingerprint.json",
        "episodes/step-000018.jsonl",
        "episodes/step-000020.jsonl",
        "reference/model.safetensors",
        "checkpoints/last/model/model.safetensors",
        "checkpoints/last/optimizer.safetensors",
    ];
    names.map(|name| (name, fs::read(run.root().join(name)).expect(name))).into()
}

fn metrics(run: &RunFolder, phase: Phase, metric: Metric) -> Vec<f64> {
    let records = read_records(run.root(), "test").expect("metrics that read back");
    records.iter().filter(|record| record.phase == phase).filter_map(|record| record.get(metric)).collect()
}

/// The values of a model folder, parameter by parameter.
fn weights(folder: &Path) -> Vec<(String, Vec<f32>)> {
    values(&checkpoint::load(folder).expect("a model folder"))
}

fn values(model: &Qwen2) -> Vec<(String, Vec<f32>)> {
    model.parameters().iter().map(|(name, var)| (name.clone(), flat(var))).collect()
}

fn flat(var: &Var) -> Vec<f32> {
    var.flatten_all().and_then(|row| row.to_vec1()).expect("f32 values")
}

#[test]
fn losses_fall_as_on_the_cpu_backend() {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let first = RunFolder::create(&keep.path().join("run"), &config(&[])).expect("an empty folder");
    train(&config(&[]), &first, TrainOptions::default()).expect("a run to the end");
    let of = |run| metrics(run, Phase::WarmStart, Metric::TrainLoss);
    let (ours, theirs) = (of(&F32.1), of(&first));
    assert_eq!((ours.len(), theirs.len()), (WARM_STEPS as usize, WARM_STEPS as usize));
    // Demonstrations begin after three steps of copy tasks.
    assert!(ours[17] < 0.8 * ours[3], "{ours:?}");
    for (step, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert!((ours - theirs).abs() < 0.01 * theirs, "step {step}: {ours} against {theirs}");
    }
    let of = |run| metrics(run, Phase::WarmStart, Metric::TrainGradNorm)[0];
    assert!((of(&F32.1) - of(&first)).abs() < 1e-4 * of(&first));
}

#[test]
fn every_parameter_learns() {
    let config = config(&[]);
    for (_, run) in [&*F32, &*BF16] {
        let warm = checkpoint::load(&run.root().join("reference")).expect("the warm start was kept");
        let shape = qwen2_config(&config.model, warm.config().vocab_size, config.prompt.max_context);
        let random = Qwen2::random(&shape, Seed(config.seed)).expect("a valid shape");
        let learned = weights(&run.root().join("checkpoints/last/model"));
        for pair in [values(&random), values(&warm), learned].windows(2) {
            for ((name, before), (_, after)) in pair[0].iter().zip(&pair[1]) {
                assert!(has_learned(before, after), "`{name}` stayed as it was");
            }
        }
    }
}

#[test]
fn a_run_that_was_stopped_and_resumed_leaves_the_same_bytes() {
    let compute = second(ComputeDtype::Bf16);
    let config = config(&[]);
    // In the warm start, during V*, after the first RL step.
    for n_advances in cases(&[7, WARM_STEPS + 1, WARM_STEPS + VALUE_EPISODES + 1], &[2]) {
        let keep = tempfile::tempdir().expect("a temporary folder");
        let run = RunFolder::create(&keep.path().join("run"), &config).expect("an empty folder");
        let stop = AtomicBool::new(false);
        let observer = StopAfter::new(n_advances, &stop);
        let stopped =
            train(&config, &run, TrainOptions { compute: Some(&compute), ..watched(&observer, &stop) })
                .expect_err("it was asked to stop");
        assert!(matches!(stopped, TrainingError::Interrupted { .. }), "{stopped}");
        let (run, config) = RunFolder::resume(run.root()).expect("a run was begun");
        train(&config, &run, on(&compute)).expect("the rest of the run");
        for ((name, found), (_, expected)) in bytes(&run).into_iter().zip(bytes(&BF16.1)) {
            assert!(found == expected, "stopped after {n_advances}: `{name}` differs");
        }
    }
}

#[test]
fn updates_below_the_precision_of_bf16_add_up_in_the_master_weights() {
    // Weights of about .02 are 1e-4 apart in bf16, and the gains of 1 are 4e-3.
    let more = ["copy_task_steps=0", "warm_start.steps=1", "rl.lr=1e-6", "optimizer.weight_decay=0"];
    let (_keep, run) = whole(&second(ComputeDtype::Bf16), &config(&more));
    let before = weights(&run.root().join("reference"));
    let after = weights(&run.root().join("checkpoints/last/model"));
    let rounded = |value: f32| value.to_bits().wrapping_add(0x7fff + (value.to_bits() >> 16 & 1)) >> 16;
    let (mut n_moved, mut n_visible, mut n_all) = (0, 0, 0);
    for (before, after) in before.iter().flat_map(|(_, row)| row).zip(after.iter().flat_map(|(_, row)| row)) {
        n_all += 1;
        n_moved += usize::from(before != after);
        n_visible += usize::from(rounded(*before) != rounded(*after));
    }
    assert!(n_moved * 2 > n_all, "{n_moved} of {n_all} moved");
    assert!(n_visible * 10 < n_moved, "{n_visible} of {n_moved} would have moved in bf16");
    // What is saved is not what is computed with.
    let is_bf16 = |value: &f32| value.to_bits() & 0xffff == 0;
    assert!(after.iter().flat_map(|(_, row)| row).filter(|value| is_bf16(value)).count() * 10 < n_all);
}

#[test]
fn the_sampler_and_the_trainer_agree_on_every_token() {
    // The same f32 numbers by other operations; in bf16 each of some rounded products moves a logit by some hundredths.
    for (run, most, mean) in [(&F32.1, 1e-4, 1e-5), (&BF16.1, 0.5, 0.05)] {
        let [gaps, means] = [Metric::TrainLogProbGap, Metric::TrainLogProbGapMean]
            .map(|metric| metrics(run, Phase::Learn, metric));
        assert!(!gaps.is_empty(), "no gap was recorded");
        assert!(gaps.iter().all(|gap| *gap < most), "{gaps:?}");
        assert!(means.iter().all(|gap| *gap < mean), "{means:?}");
    }
}

#[test]
fn a_run_is_resumed_only_on_its_own_backend() {
    let config = config(&[]);
    let refusal =
        |compute: &Compute| train(&config, &BF16.1, on(compute)).expect_err("begun elsewhere").to_string();
    let f32 = refusal(&second(ComputeDtype::F32));
    assert!(f32.contains("`CPU, BF16, reference kernels`, not on `CPU, F32, reference kernels`"), "{f32}");
    let cpu = train(&config, &BF16.1, TrainOptions::default()).expect_err("begun elsewhere").to_string();
    assert!(
        cpu.contains("not on `CPU, F32, the cpu backend`")
            && cpu.contains("the same device, dtype and kernels"),
        "{cpu}"
    );
    let fingerprint = fs::read_to_string(BF16.1.fingerprint()).expect("a file");
    assert!(fingerprint.contains(r#""compute": "CPU, BF16, reference kernels""#), "{fingerprint}");
}

#[test]
fn an_adapter_learns_as_on_the_cpu_backend_and_resumes_to_the_same_bytes() {
    let (from, config) = begun(&[
        "lora_rank=4",
        "lora_alpha=8",
        "model.layers=1",
        "copy_task_steps=0",
        "warm_start.steps=4",
        "warm_start.batch_episodes=4",
        "max_turn_tokens=16",
        "max_steps=4",
        "value.goals=2",
        "value.samples=1",
        "rl.steps=1",
        "rl.batch_episodes=4",
        "rl.demonstration_share=0.2",
        "evaluation.episodes=2",
    ]);
    let cpu = Compute::choose(DeviceRequest::Cpu, Some(ComputeDtype::F32), KernelChoice::Custom);
    let base = checkpoint::load(from.path()).expect("the base");
    let (_keep_cpu, on_cpu) = whole(&cpu.expect("a CPU"), &config);
    for (dtype, tolerance) in [(ComputeDtype::F32, 1e-3), (ComputeDtype::Bf16, 0.03)] {
        let compute = second(dtype);
        let (_keep, run) = whole(&compute, &config);
        let losses = [&run, &on_cpu].map(|run| metrics(run, Phase::WarmStart, Metric::TrainLoss));
        assert_eq!(losses.each_ref().map(Vec::len), [4, 4]);
        for (step, (ours, theirs)) in losses[0].iter().zip(&losses[1]).enumerate() {
            assert!((ours - theirs).abs() < tolerance * theirs, "{dtype:?}, {step}: {ours} against {theirs}");
        }
        let lora = |folder: &str| {
            let folder = run.root().join(folder);
            assert!(!folder.join("model.safetensors").exists(), "weights that did not learn are saved");
            Lora::load(&folder, &base.matrices()).expect("an adapter in PEFT's layout")
        };
        let (warm, learned) = (lora("reference"), lora("checkpoints/last/model"));
        let first = Lora::random(&base.matrices(), learned.config(), Seed(config.seed)).expect("as it began");
        for pair in [&first, &warm, &learned].windows(2) {
            for (before, after) in pair[0].modules().iter().zip(pair[1].modules()) {
                let sides = [(&before.a, &after.a), (&before.b, &after.b)];
                let is_moved = sides.iter().all(|(before, after)| has_learned(&flat(before), &flat(after)));
                assert!(is_moved, "{dtype:?}: `{}` stayed as it was", after.parameter);
            }
        }
        let (keep, stop) = (tempfile::tempdir().expect("a temporary folder"), AtomicBool::new(false));
        let stopped = RunFolder::create(&keep.path().join("run"), &config).expect("an empty folder");
        let observer = StopAfter::new(2, &stop);
        train(&config, &stopped, TrainOptions { compute: Some(&compute), ..watched(&observer, &stop) })
            .expect_err("it was asked to stop");
        let (stopped, config) = RunFolder::resume(stopped.root()).expect("a run was begun");
        train(&config, &stopped, on(&compute)).expect("the rest of the run");
        for name in ["metrics.jsonl", "checkpoints/last/model/adapter_model.safetensors"] {
            let [found, expected] = [&stopped, &run].map(|run| fs::read(run.root().join(name)).expect(name));
            assert!(found == expected, "{dtype:?}: `{name}` differs");
        }
    }
}

#[test]
fn the_command_line_chooses_the_backend() {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let file = keep.path().join("experiment.toml");
    let short = config(&["copy_task_steps=1", "warm_start.steps=1", "rl.steps=1"]);
    fs::write(&file, short.to_toml()).expect("a written experiment");
    let train = |out: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_webshop"));
        command.arg("train").arg("--out").arg(keep.path().join(out)).args(more).env_remove("RUST_LOG");
        let output = command.output().expect("the binary runs");
        (output.status.code(), String::from_utf8(output.stderr).expect("text"))
    };
    let file = file.to_str().expect("a plain name");
    let (code, log) = train("run", &["--config", file, "--dtype", "bf16"]);
    assert!(code == Some(0) && log.contains("CPU, BF16, reference kernels"), "{log}");
    let (code, log) = train("run", &["--resume"]);
    assert!(code == Some(2) && log.contains("not on `CPU, F32, the cpu backend`"), "{log}");
    let (code, log) = train("run", &["--resume", "--device", "cpu", "--dtype", "bf16"]);
    assert_eq!(code, Some(0), "{log}");
    // No machine has a GPU of this number; nothing is begun that could not go on.
    let (code, log) = train("other", &["--config", file, "--device", "cuda:4711"]);
    assert!(code == Some(2) && log.contains("`cuda:4711`"), "{log}");
    assert!(!keep.path().join("other").exists());
}
