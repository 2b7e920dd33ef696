//! A small experiment, with every stage and every kind of file: a model of two heads, far too small to be any good, in a
//! shop of thirty products. Its warm start is just long enough for some episodes to end in a purchase, so that some
//! rewards are not 0.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use tempfile::TempDir;
use webshop_lm::device::Compute;
use webshop_training::config::Config;
use webshop_training::{RunFolder, TrainOptions, branch_run, warm_up};

/// What the experiments of the tests have in common.
pub(crate) const TOY: &str = r#"
    catalog = { size = 30, train_on_source = true, auxiliary_shops = 1, auxiliary_products = 10 }
    prompt.max_turn_tokens = 24
    warm_start = { demonstrations = "two-habits", thinking_share = 0.2, copy_task_steps = 5, steps = 55, batch_episodes = 8, warmup_steps = 5, lr = 2e-2, filtered_share = 0.0 }
    value = { goals = 8, samples = 4 }
    rl = { steps = 4, reward = "score", batch_episodes = 16, minibatches = 1, micro_batch_tokens = 512, lr = 1e-4, warmup_steps = 0, decay = "none", optimizer = "adamw", loss = { kind = "apo", beta2 = 1e-3 } }
    evaluation = { episodes = 8, every = 2, warm_start_every = 30, split = "test", shops = 0 }
    judgement = { episodes = 0 }
    checkpoint = { every = 10, warm_start_every = 10 }

    [model]
    from = ""
    hidden_size = 32
    layers = 1
    heads = 2
    kv_heads = 1
    head_dim = 16
    intermediate_size = 48
    vocab_size = 700
"#;

/// The experiment with more keys.
pub(crate) fn toy(more: &[&str]) -> Config {
    let more: Vec<String> = more.iter().map(|text| text.to_string()).collect();
    Config::resolve("tests/it/common/experiment.rs", TOY, &more).expect("a small experiment")
}

/// The folder of a run that is to begin, in a temporary one that holds nothing else.
pub(crate) fn begin(config: &Config) -> (TempDir, RunFolder) {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let run = RunFolder::create(&keep.path().join("run"), config).expect("an empty folder");
    (keep, run)
}

/// The warm start of the small experiment, from which the runs of all losses branch.
pub(crate) static WARM_START: LazyLock<(TempDir, RunFolder)> = LazyLock::new(|| {
    let (keep, run) = begin(&toy(&[]));
    warm_up(&toy(&[]), &run, TrainOptions::default()).expect("a warm start");
    (keep, run)
});

/// A run that goes on from [`WARM_START`].
pub(crate) fn branch(config: &Config) -> (TempDir, RunFolder) {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let run = branch_run(&WARM_START.1, &keep.path().join("run"), config).expect("a branch");
    (keep, run)
}

/// Whether the values of a parameter moved in another way than by weight decay, which scales all of them alike.
pub(crate) fn has_learned(before: &[f32], after: &[f32]) -> bool {
    let product = |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum() };
    let scale = match product(before, before) {
        0.0 => 0.0,
        square => product(before, after) / square,
    };
    let largest = after.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    let is_moved = |(before, after): (&f32, &f32)| {
        (f64::from(*after) - scale * f64::from(*before)).abs() > 1e-5 * f64::from(largest)
    };
    before.iter().zip(after).any(is_moved)
}

/// Copies a folder with its links as they are.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a new folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let place = to.join(path.file_name().expect("a name"));
        if path.is_symlink() {
            let target = fs::read_link(&path).expect("a link");
            std::os::unix::fs::symlink(target, place).expect("a new link");
        } else if path.is_dir() {
            copy_folder(&path, &place);
        } else {
            fs::copy(&path, &place).expect("a copy");
        }
    }
}

/// A run on the device of `compute`.
pub(crate) fn on(compute: &Compute) -> TrainOptions<'_> {
    TrainOptions { compute: Some(compute), ..TrainOptions::default() }
}
