//! A run may begin with a given model and train an adapter instead of its weights: the weights stay as they were, the
//! adapter learns, and its checkpoints resume exactly.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::common::experiment::toy;
use crate::common::stop::{StopAfter, watched};
use tempfile::TempDir;
use webshop_lm::device::{Compute, DeviceRequest, KernelChoice};
use webshop_lm::{Qwen2, checkpoint, lora::Lora};
use webshop_products::Seed;
use webshop_training::config::Config;
use webshop_training::metrics::{Metric, Phase, read_records};
use webshop_training::{
    GenerationOptions, RunFolder, TaskSet, TrainOptions, TrainedModel, TrainingError, qwen2_config, train,
    train_tokenizer,
};

/// The small experiment, shorter and deeper, with more keys.
fn config(more: &[&str]) -> Config {
    let shorter = [
        "copy_task_steps=2",
        "warm_start.steps=8",
        "value.goals=4",
        "value.samples=2",
        "rl.steps=2",
        "rl.batch_episodes=8",
        "evaluation.episodes=4",
        "evaluation.every=0",
        "evaluation.warm_start_every=0",
        "model.layers=2",
    ];
    toy(&[&shorter, more].concat())
}

/// A model folder of random weights, and the configuration of a run that begins with it.
pub(crate) fn begun(more: &[&str]) -> (TempDir, Config) {
    let (config_of_base, folder) = (config(&[]), tempfile::tempdir().expect("a temporary folder"));
    let tasks = TaskSet::open(&config_of_base).expect("a small task set");
    let tokenizer = train_tokenizer(&tasks, &config_of_base).expect("a tokenizer");
    let shape = qwen2_config(&config_of_base.model, tokenizer.vocab_size(), 8192);
    let model = Qwen2::random(&shape, Seed(7)).expect("a valid shape");
    checkpoint::save(&model, folder.path()).expect("a model folder");
    tokenizer.save(folder.path()).expect("a tokenizer beside it");
    let from = format!("model.from={:?}", folder.path());
    let config = config(&[&[&*from], more].concat());
    (folder, config)
}

/// The same for a run that trains an adapter.
fn base() -> (TempDir, Config) {
    begun(&["lora_rank=4", "lora_alpha=8"])
}

fn run(config: &Config, folder: &Path) -> RunFolder {
    let run = RunFolder::create(folder, config).expect("an empty folder");
    train(config, &run, TrainOptions::default()).expect("a run to the end");
    run
}

/// The bytes of a run that depend on the seed alone.
fn bytes(run: &RunFolder) -> Vec<Vec<u8>> {
    [
        "metrics.jsonl",
        "value.json",
        "fingerprint.json",
        "reference/adapter_model.safetensors",
        "checkpoints/last/model/adapter_model.safetensors",
        "checkpoints/last/model/adapter_config.json",
        "checkpoints/last/optimizer.safetensors",
    ]
    .map(|name| fs::read(run.root().join(name)).expect(name))
    .into()
}

#[test]
fn an_adapter_learns_and_the_weights_stay() {
    let (from, config) = base();
    let keep = tempfile::tempdir().expect("a temporary folder");
    let weights = || fs::read(from.path().join("model.safetensors")).expect("weights");
    let before = weights();
    let run = run(&config, &keep.path().join("run"));
    assert!(weights() == before, "the weights of `from` moved");
    let model = run.root().join("checkpoints/last/model");
    assert!(!model.join("model.safetensors").exists(), "a checkpoint holds weights that did not learn");

    let base = checkpoint::load(from.path()).expect("the base");
    let lora = Lora::load(&model, &base.matrices()).expect("an adapter in PEFT's layout");
    assert_eq!(lora.modules().len(), 14, "seven matrices in each of two layers");
    let first = Lora::random(&base.matrices(), lora.config(), Seed(config.seed)).expect("as it began");
    for (learned, first) in lora.modules().iter().zip(first.modules()) {
        let name = &learned.parameter;
        let values = |var: &candle_core::Var| {
            var.flatten_all().and_then(|row| row.to_vec1::<f32>()).expect("f32 values")
        };
        for (side, learned, first) in [("A", &learned.a, &first.a), ("B", &learned.b, &first.b)] {
            assert!(values(learned) != values(first), "{side} of `{name}` stayed as it was");
        }
    }
    let optimizer = run.root().join("checkpoints/last/optimizer.safetensors");
    let averages = candle_core::safetensors::load(optimizer, &candle_core::Device::Cpu).expect("averages");
    assert_eq!(averages.len(), 2 * 28, "two averages of each matrix of the adapter, and of nothing else");
    assert!(averages.keys().all(|name| name.contains(".lora_")), "{:?}", averages.keys());
    // What the run is loaded as is the base with what was learned.
    let loaded =
        TrainedModel::load(run.root()).expect("a trained model").model.fingerprint().expect("f32 weights");
    assert_eq!(loaded, base.adapted(lora).expect("its adapter").fingerprint().expect("f32 weights"));
}

#[test]
fn a_stopped_run_of_an_adapter_resumes_to_the_same_bytes() {
    let (_from, config) = base();
    let keep = tempfile::tempdir().expect("a temporary folder");
    let whole = run(&config, &keep.path().join("whole"));
    // In the warm start, and after the first RL step, behind eight episodes for V*.
    for n_advances in [5, 10 + 8 + 1] {
        let folder = keep.path().join(n_advances.to_string());
        let stopped = RunFolder::create(&folder, &config).expect("an empty folder");
        let stop = AtomicBool::new(false);
        let observer = StopAfter::new(n_advances, &stop);
        let error = train(&config, &stopped, watched(&observer, &stop)).expect_err("it was asked to stop");
        assert!(matches!(error, TrainingError::Interrupted { .. }), "{error}");
        let (stopped, config) = RunFolder::resume(&folder).expect("a run was begun");
        train(&config, &stopped, TrainOptions::default()).expect("the rest of the run");
        assert!(bytes(&stopped) == bytes(&whole), "stopped after {n_advances}");
    }
}

#[test]
fn chat_formats_are_trained_on() {
    // Prompts that stand alone, and one growing chat. A token is about a byte, so that pages are long.
    for format in ["verl-agent", "ragen"] {
        let (_from, config) = begun(&[
            &format!("prompt.format={format}"),
            "max_context=8000",
            "copy_task_steps=0",
            "warm_start.steps=2",
            "warm_start.batch_episodes=2",
            "rl.steps=1",
            "rl.batch_episodes=4",
            "value.goals=2",
            "evaluation.episodes=2",
            // As a demonstration of this shop needs.
            "max_turn_tokens=120",
            "run.max_steps=5",
        ]);
        let keep = tempfile::tempdir().expect("a temporary folder");
        let run = run(&config, &keep.path().join("run"));
        let records = read_records(run.root(), "test").expect("metrics that read back");
        let cloned = records.iter().filter(|record| record.phase == Phase::WarmStart);
        let losses: Vec<f64> = cloned.filter_map(|record| record.get(Metric::TrainLoss)).collect();
        assert!(losses.len() == 2 && losses.iter().all(|loss| (3.0..9.0).contains(loss)), "{losses:?}");
        let learned = records.iter().find(|record| record.get(Metric::RolloutMalformedRate).is_some());
        let learned = learned.expect("an RL step");
        let get = |metric| learned.get(metric).expect("recorded with the episodes");
        // Random weights never find the format; five completions an episode at .1 each, which the score leaves out.
        assert_eq!((get(Metric::RolloutMalformedRate), get(Metric::RolloutTaskScore)), (1.0, 0.0));
        assert!((get(Metric::RolloutMalformedPenalty) - 0.5).abs() < 1e-12);
        let loaded = TrainedModel::load(run.root()).expect("a trained model");
        assert_eq!(loaded.prompt_format().name(), format);
    }
}

#[test]
fn worked_examples_go_with_the_model() {
    let few_shot = |n: usize, context: usize| {
        begun(&[
            "prompt.format=verl-agent",
            &format!("prompt.few_shot={n}"),
            &format!("max_context={context}"),
            "copy_task_steps=0",
            "warm_start.steps=0",
            "rl.steps=0",
            "evaluation.episodes=1",
            "run.max_steps=2",
        ])
    };
    let keep = tempfile::tempdir().expect("a temporary folder");
    // The folder has room for 8,192 tokens, and a prompt is some hundred words.
    let (_from, config) = few_shot(1, 8192);
    let run = run(&config, &keep.path().join("run"));
    let loaded = TrainedModel::load(run.root()).expect("a trained model");
    let options = GenerationOptions::default();
    let compute = Compute::choose(DeviceRequest::Cpu, None, KernelChoice::Custom).expect("a CPU");
    let policy = loaded.into_policy(options, &compute).expect("a policy");
    let format = policy.format.chat().expect("a chat format");
    let n_tokens = format.n_example_tokens(&policy.tokenizer).expect("the template renders them");
    assert!((500..8000).contains(&n_tokens), "{n_tokens}");
    // Too many for the context: refused before anything is trained.
    let (_from, config) = few_shot(1, n_tokens);
    let folder = RunFolder::create(&keep.path().join("full"), &config).expect("an empty folder");
    let error = train(&config, &folder, TrainOptions::default()).expect_err("no room").to_string();
    assert!(error.contains("`prompt.few_shot`") && error.contains(&n_tokens.to_string()), "{error}");
}

#[test]
fn recomputation_changes_no_byte() {
    let (_from, config) = base();
    let keep = tempfile::tempdir().expect("a temporary folder");
    let mut frugal = config.clone();
    frugal.rl.recompute = true;
    assert!(
        bytes(&run(&config, &keep.path().join("kept")))
            == bytes(&run(&frugal, &keep.path().join("made again")))
    );
}

#[test]
fn a_changed_base_model_is_refused() {
    let (from, config) = base();
    let keep = tempfile::tempdir().expect("a temporary folder");
    let folder = keep.path().join("run");
    let begun = run(&config, &folder);
    let other = Qwen2::random(checkpoint::load(from.path()).expect("the base").config(), Seed(8));
    checkpoint::save(&other.expect("a valid shape"), from.path()).expect("other weights in its place");
    let error = train(&config, &begun, TrainOptions::default()).expect_err("another base");
    assert!(error.to_string().contains("fingerprint.json"), "{error}");
}
