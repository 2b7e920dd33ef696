//! Training is exact: same seed, same bytes, whatever the threads and the interruptions; and what it is evaluated on
//! is not trained on.
//!
//! Every run here is a whole one, from random weights to the last evaluation, of a model that is far too
//! small to be any good.

mod base;
mod browsing;
mod cloning;
mod comparison;
mod exactness;
mod judgement;
mod own_loss;
mod progress;
mod results;
mod workers;

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};

use crate::common::experiment::{WARM_START, begin, branch, copy_folder, has_learned, toy};
use crate::common::stop::{StopAfter, watched};
use tempfile::TempDir;
use webshop_env::replay;
use webshop_lm::{Qwen2, checkpoint};
use webshop_products::{Goal, Seed, Split};
use webshop_training::config::{Config, LossKind};
use webshop_training::metrics::{Metric, Phase, Record, read_records};
use webshop_training::{
    Observer, RunFolder, TaskSet, TrainOptions, TrainedModel, TrainingError, branch_run, qwen2_config,
    read_json, train,
};

const WARM_STEPS: u64 = 60;
/// Rollouts for V*: eight goals, four samples each.
const VALUE_EPISODES: u64 = 32;
const RL_STEPS: u64 = 4;

/// A run that came to its end.
struct Run {
    folder: PathBuf,
    /// Removed with the run; `None` if the folder is another's.
    _keep: Option<TempDir>,
}

impl Run {
    /// The run of `config` that nothing interrupts, on this many threads.
    fn whole(config: &Config, n_threads: usize) -> Self {
        let (keep, run) = begin(config);
        let threads = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("threads");
        threads.install(|| train(config, &run, TrainOptions::default())).expect("a run to the end");
        Self { folder: run.root().into(), _keep: Some(keep) }
    }

    /// Goes on in `folder` with the configuration that lies in it, to the end.
    fn resumed(folder: &Path) -> Self {
        let (run, config) = RunFolder::resume(folder).expect("a run was begun");
        train(&config, &run, TrainOptions::default()).expect("the rest of the run");
        Self { folder: folder.into(), _keep: None }
    }

    /// Every file that may depend on nothing but the seed, by name.
    fn bytes(&self) -> Vec<(&'static str, Vec<u8>)> {
        let names = [
            "metrics.jsonl",
            "metrics.csv",
            "value.json",
            "fingerprint.json",
            "episodes/step-000060.jsonl",
            "episodes/step-000064.jsonl",
            "reference/model.safetensors",
            "checkpoints/last/model/model.safetensors",
            "checkpoints/last/model/tokenizer.json",
            "checkpoints/last/optimizer.safetensors",
            "checkpoints/last/critic/value_head.safetensors",
            "checkpoints/last/critic/optimizer.safetensors",
        ];
        let read = |name: &'static str| match fs::read(self.folder.join(name)) {
            // Losses without V* write no values, losses without a critic no critic.
            Err(error)
                if error.kind() == ErrorKind::NotFound
                    && (name == "value.json" || name.contains("critic")) =>
            {
                Vec::new()
            }
            read => read.expect(name),
        };
        names.map(|name| (name, read(name))).into()
    }

    fn records(&self) -> Vec<Record> {
        read_records(&self.folder, "test").expect("metrics that read back")
    }
}

/// The run that all others are compared with.
static REFERENCE: LazyLock<Run> = LazyLock::new(|| Run::whole(&toy(&[]), 1));

/// Asserts that a run left the reference's bytes.
fn check(run: &Run, which: &str) {
    for ((name, found), (_, expected)) in run.bytes().into_iter().zip(REFERENCE.bytes()) {
        assert!(found == expected, "{which}: `{name}` differs");
    }
}
