//! Training episodes that workers make are those that the trainer would make.

use std::error::Error;
use std::sync::Mutex;

use webshop_agent::Episode;
use webshop_training::{EpisodeRequest, RolloutWorker, RolloutWorkers};

use super::exactness::learned;
use super::*;
use crate::common::cases;

type Answer = Result<Vec<Episode>, Box<dyn Error + Send + Sync>>;

/// Two workers that get a request as text, each the half of it, and answer in lines.
struct InHalves {
    workers: Mutex<Vec<RolloutWorker>>,
    n_requests: AtomicU64,
}

impl InHalves {
    fn new() -> Self {
        Self { workers: Mutex::new(Vec::new()), n_requests: AtomicU64::new(0) }
    }
}

impl RolloutWorkers for InHalves {
    fn rollout(&self, request: &EpisodeRequest) -> Answer {
        self.n_requests.fetch_add(1, Ordering::Relaxed);
        let request: EpisodeRequest = serde_json::from_str(&serde_json::to_string(request)?)?;
        let mut workers = self.workers.lock().expect("no panic before");
        while workers.len() < 2 {
            workers.push(RolloutWorker::open(&request.config)?);
        }
        let half = request.coordinates.len().div_ceil(2);
        let mut lines = Vec::new();
        for (worker, coordinates) in workers.iter().zip(request.coordinates.chunks(half)) {
            let sampling = (request.temperature, request.top_p);
            for episode in worker.rollout(&request.model, sampling, coordinates)? {
                lines.push(serde_json::to_string(&episode)?);
            }
        }
        Ok(lines.iter().map(|line| serde_json::from_str(line)).collect::<Result<_, _>>()?)
    }
}

fn trained(config: &Config, run: &RunFolder, workers: &dyn RolloutWorkers) -> Result<(), TrainingError> {
    train(config, run, TrainOptions { workers: Some(workers), ..TrainOptions::default() }).map(drop)
}

#[test]
fn a_run_with_workers_has_the_bytes_of_a_run_without() {
    let settings = [&[][..], &["loss=grpo", "rl.group_size=4", "rl.temperature=0.8", "rl.top_p=0.9"]];
    for more in cases(&settings, &[1]) {
        let config = toy(more);
        let (_keep, run) = branch(&config);
        let workers = InHalves::new();
        trained(&config, &run, &workers).expect("a run to the end");
        let batches = workers.n_requests.into_inner();
        assert!(batches >= RL_STEPS, "the workers were asked {batches} times");
        let with = Run { folder: run.root().into(), _keep: None }.bytes();
        for ((name, with), (_, without)) in with.iter().zip(learned(more, 2, 0)) {
            assert!(*with == without, "{more:?}: `{name}` differs");
        }
    }
}

/// Answers with the episodes that `change` makes of the right ones.
struct Wrong(fn(&mut Vec<Episode>));

impl RolloutWorkers for Wrong {
    fn rollout(&self, request: &EpisodeRequest) -> Answer {
        let mut episodes = InHalves::new().rollout(request)?;
        (self.0)(&mut episodes);
        Ok(episodes)
    }
}

/// Fails always.
struct Down;

impl RolloutWorkers for Down {
    fn rollout(&self, _: &EpisodeRequest) -> Answer {
        Err("the cluster is gone".into())
    }
}

#[test]
fn wrong_answers_end_the_run_with_an_error_that_names_them() {
    let wrong: [(&dyn RolloutWorkers, &str); 5] = [
        (&Down, "rollout workers: the cluster is gone"),
        (&Wrong(|episodes| drop(episodes.pop())), "rollout workers: 32 episodes were asked for, 31 came"),
        (&Wrong(|episodes| episodes.swap(0, 1)), "rollout workers: the episode at EpisodeCoordinates"),
        (&Wrong(|episodes| episodes[3].goal.0 += 1), " is of goal "),
        (
            &Wrong(|episodes| {
                let tokens = episodes[2].turns[0].agent.tokens.as_mut().expect("a model's turn");
                tokens.completion.log_probs.pop();
            }),
            " has not one finite log-probability and entropy for each token of completion 0",
        ),
    ];
    for (workers, expected) in wrong {
        let (_keep, run) = branch(&toy(&[]));
        let error = trained(&toy(&[]), &run, workers).expect_err("a wrong answer");
        let error = error.to_string();
        assert!(error.starts_with("rollout workers: ") && error.contains(expected), "{error}");
        assert!(run.root().join("checkpoints/last/model").is_dir(), "the warm start is kept");
    }
}

#[test]
fn what_workers_cannot_make_is_refused_before_any_work() {
    for (more, expected) in [
        (
            &["rl.mode=single_step", "prompt.format=shop-r1-minimal", "max_context=768"][..],
            "configuration key `rl.mode` must be `multi_turn` with rollout workers",
        ),
        (
            &["curriculum.sizes=[5, 10]", "curriculum.thresholds=[0.5, 0.5]"],
            "configuration key `curriculum.sizes` must be empty with rollout workers",
        ),
    ] {
        let config = toy(more);
        let (_keep, run) = begin(&config);
        let error = trained(&config, &run, &Down).expect_err("a refusal");
        assert_eq!(error.to_string(), expected);
        assert!(!run.root().join("metrics.jsonl").exists(), "files of the run were opened");
    }
    let worker = RolloutWorker::open(&toy(&[]).to_toml()).expect("a small configuration");
    let coordinates =
        webshop_agent::EpisodeCoordinates { step: 0, shop: 9, goal: webshop_products::GoalId(0), sample: 0 };
    let model = WARM_START.1.root().join("checkpoints/last/model");
    let error = worker.rollout(&model, (1.0, 1.0), &[coordinates]).expect_err("there is no shop 9");
    assert_eq!(error.to_string(), "rollout workers: there is no goal 0 in shop 9");
}
