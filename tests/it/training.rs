//! Learning is exact: same seed, same bytes, whatever the threads and the interruptions; and honest: what
//! is judged is not trained on.
//!
//! Every run here is a whole one, from random weights to the last evaluation, of a model that is far too
//! small to be any good.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::experiment::{WARM_START, begin, toy};
use crate::common::stop::StopAfter;
use tempfile::TempDir;
use webshop_agent::{Qwen2, checkpoint};
use webshop_env::replay;
use webshop_products::{Goal, Seed, Split};
use webshop_training::{
    Config, Ground, LossName, Metric, Observer, Phase, Record, RunFolder, Silent, Trained, TrainingError,
    branch, qwen2_config, read_records, train,
};

const WARM_STEPS: u64 = 60;
/// Rollouts for V*: eight goals, four samples each.
const VALUE_TRIPS: u64 = 32;
const LEARNER_STEPS: u64 = 4;

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
        let never = AtomicBool::new(false);
        threads.install(|| train(config, &run, &Silent, &never)).expect("a run to the end");
        Self { folder: run.root().into(), _keep: Some(keep) }
    }

    /// Goes on in `folder` with the configuration that lies in it, to the end.
    fn resumed(folder: &Path) -> Self {
        let (run, config) = RunFolder::resume(folder).expect("a run was begun");
        train(&config, &run, &Silent, &AtomicBool::new(false)).expect("the rest of the run");
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
        ];
        let read = |name| match fs::read(self.folder.join(name)) {
            // Learners that ask for no V* write none.
            Err(error) if error.kind() == ErrorKind::NotFound && name == "value.json" => Vec::new(),
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

#[test]
fn a_run_names_the_rewards_it_learned_from() {
    let (_, fingerprint) =
        REFERENCE.bytes().into_iter().find(|(name, _)| *name == "fingerprint.json").expect("a file");
    let fingerprint: serde_json::Value = serde_json::from_slice(&fingerprint).expect("JSON");
    assert_eq!(
        (&fingerprint["environment"], &fingerprint["rewards"]),
        (&"webshop-2".into(), &"reward-1".into())
    );
}

/// Asserts that a run left the reference's bytes.
fn check(run: &Run, which: &str) {
    for ((name, found), (_, expected)) in run.bytes().into_iter().zip(REFERENCE.bytes()) {
        assert!(found == expected, "{which}: `{name}` differs");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_one_thread_and_on_two() {
    check(&Run::whole(&toy(&[]), 1), "again");
    check(&Run::whole(&toy(&[]), 2), "two threads");
    let other = Run::whole(&toy(&["seed=1"]), 2).bytes();
    assert!(other[0].1 != REFERENCE.bytes()[0].1, "another seed is another run");
}

#[test]
fn a_run_that_was_stopped_and_resumed_leaves_the_same_bytes() {
    // Between checkpoints, at the end of the warm start, during V*, at an evaluation, at the last step.
    for n_advances in
        [1, WARM_STEPS, WARM_STEPS + 1, WARM_STEPS + VALUE_TRIPS + 2, WARM_STEPS + VALUE_TRIPS + 4]
    {
        let config = toy(&[]);
        let (_keep, run) = begin(&config);
        let stop = AtomicBool::new(false);
        let observer = StopAfter::new(n_advances, &stop);
        let stopped = train(&config, &run, &observer, &stop).expect_err("it was asked to stop");
        assert!(matches!(stopped, TrainingError::Interrupted { .. }), "{stopped}");
        check(&Run::resumed(run.root()), &format!("stopped after {n_advances}"));
    }
}

/// Keeps what the disk holds when the trainer says something: what would be left if it were killed there.
/// Keeps few moments of the warm start and of V*, which are all alike, then every other one.
struct Witness {
    run: PathBuf,
    copies: PathBuf,
    n_words: AtomicU64,
}

impl Witness {
    fn copy(&self) {
        let at = self.n_words.fetch_add(1, Ordering::Relaxed);
        if at.is_multiple_of(if at < WARM_STEPS + VALUE_TRIPS { 28 } else { 2 }) {
            copy_folder(&self.run, &self.copies.join(at.to_string()));
        }
    }
}

impl Observer for Witness {
    fn begin(&self, _stage: &str, _total: u64, _done: u64) {
        self.copy();
    }

    fn advance(&self, _units: u64, _note: &str) {
        self.copy();
    }

    fn end(&self) {
        self.copy();
    }

    fn say(&self, _line: &str) {
        self.copy();
    }
}

/// Copies a folder with its links as they are.
fn copy_folder(from: &Path, to: &Path) {
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

#[test]
fn a_run_that_was_killed_and_resumed_leaves_the_same_bytes() {
    let config = toy(&[]);
    let (keep, run) = begin(&config);
    let copies = keep.path().join("copies");
    let witness = Witness { run: run.root().into(), copies: copies.clone(), n_words: AtomicU64::new(0) };
    train(&config, &run, &witness, &AtomicBool::new(false)).expect("a run to the end");
    // Six begins and ends, a word for each step and each trip for V*, five evaluations.
    assert_eq!(witness.n_words.into_inner(), 6 + WARM_STEPS + VALUE_TRIPS + LEARNER_STEPS + 5);
    for copy in fs::read_dir(&copies).expect("some copies") {
        let killed = copy.expect("a copy").path();
        check(&Run::resumed(&killed), &format!("killed at {}", killed.display()));
    }
}

#[test]
fn a_trained_model_is_found_by_all_its_names() {
    let last = fs::read_link(REFERENCE.folder.join("checkpoints/last")).expect("a link to the newest");
    let names = [
        REFERENCE.folder.clone(),
        REFERENCE.folder.join("checkpoints/last"),
        REFERENCE.folder.join("checkpoints").join(&last),
        REFERENCE.folder.join("checkpoints/last/model"),
    ];
    let loaded = names.map(|name| Trained::load(&name).expect("a trained model"));
    for trained in &loaded[..3] {
        assert_eq!(trained.config, toy(&[]));
    }
    for trained in &loaded {
        let fingerprint = |trained: &Trained| trained.model.fingerprint().expect("f32 weights");
        assert_eq!(fingerprint(trained), fingerprint(&loaded[0]));
    }
}

#[test]
fn every_parameter_learns() {
    let config = toy(&[]);
    let warm = checkpoint::load(&REFERENCE.folder.join("reference")).expect("the warm start was kept");
    let learned = checkpoint::load(&REFERENCE.folder.join("checkpoints/last/model")).expect("the end too");
    let shape = qwen2_config(&config.model, warm.config().vocab_size, config.prompt.max_context);
    let random = Qwen2::random(&shape, Seed(config.seed)).expect("a valid shape");
    let values = |model: &Qwen2| -> Vec<(String, Vec<f32>)> {
        let parameters = model.parameters().iter();
        let flat = parameters.map(|(name, var)| (name.clone(), var.flatten_all().expect("one row")));
        flat.map(|(name, row)| (name, row.to_vec1().expect("f32 values"))).collect()
    };
    let stages = [values(&random), values(&warm), values(&learned)];
    for pair in stages.windows(2) {
        for ((name, before), (_, after)) in pair[0].iter().zip(&pair[1]) {
            assert!(before != after, "`{name}` stayed as it was");
        }
    }
}

#[test]
fn nothing_that_is_judged_is_trained_on() {
    let config = toy(&["catalog.size=all", "practice_shops=2", "practice_products=30"]);
    let ground = Ground::open(&config).expect("a shop and two for practice");
    let judged = ground.held_out(Split::Test, usize::MAX);
    assert_eq!(judged.len(), ground.shop().goals().split(Split::Test).len());
    let judged: Vec<&Goal> = judged.iter().map(|&goal| ground.shop().goals().get(goal)).collect();
    let asins: BTreeSet<&str> = judged.iter().map(|goal| goal.asin.as_str()).collect();
    let titles: BTreeSet<&str> = judged.iter().map(|goal| &*goal.title).collect();
    assert!(asins.len() >= 10, "there is something to protect");
    for goal in ground.training() {
        let trained = ground.shop_of(*goal).goals().get(goal.goal);
        // Practice shops have names of their own, in which an id may stand for something else.
        match goal.shop {
            0 => assert!(!asins.contains(trained.asin.as_str()), "{}", trained.instruction),
            _ => assert!(!titles.contains(&*trained.title), "{}", trained.instruction),
        }
    }
    let shops: BTreeSet<u32> = ground.training().iter().map(|goal| goal.shop).collect();
    assert_eq!(shops, BTreeSet::from([0, 1, 2]));
}

/// The bytes of a learner's run, which is stopped after `n_advances` and resumed, or not stopped for 0.
fn learned(more: &[&str], n_threads: usize, n_advances: u64) -> Vec<(&'static str, Vec<u8>)> {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let config = toy(more);
    let run = branch(&WARM_START.1, &keep.path().join("run"), &config).expect("a branch");
    let stop = AtomicBool::new(false);
    let observer = StopAfter::new(n_advances, &stop);
    let threads = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("threads");
    match threads.install(|| train(&config, &run, &observer, &stop)) {
        Ok(stages) => {
            let learned = stages.learned.as_ref().expect("the last evaluation");
            assert_eq!((learned.step, learned.summary.episodes), (WARM_STEPS + LEARNER_STEPS, 8), "{more:?}");
            Run { folder: run.root().into(), _keep: None }
        }
        Err(TrainingError::Interrupted { .. }) => Run::resumed(run.root()),
        Err(error) => panic!("{more:?}: {error}"),
    }
    .bytes()
}

#[test]
fn every_learner_leaves_the_same_bytes_interrupted_or_not() {
    let of_loss = |loss: LossName| {
        let group_size = if loss.is_by_group() { 4 } else { 1 };
        let refresh = if loss == LossName::ApoLagged { 2 } else { 0 };
        let group_size = format!("learner.group_size={group_size}");
        vec![format!("value.refresh={refresh}"), group_size, format!("learner.loss={loss}")]
    };
    let mut settings: Vec<Vec<String>> = LossName::ALL.into_iter().map(of_loss).collect();
    let also = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
    settings.push(also("learner.loss=apo value.credit=state value.refresh=2"));
    settings.push(also("learner.loss=apo value.credit=state value.forks=2 value.refresh=3"));
    settings.push(also(
        "learner.loss=ppo learner.minibatches=3 learner.epochs=2 learner.demonstration_share=0.2",
    ));
    settings.push(also("learner.loss=reinforce value.keep_spread=0.5 value.adaptive=true"));
    settings.push(also("learner.loss=grpo learner.group_size=2 optimizer.grad_clip_quantile=0.5"));
    settings.push(also("learner.loss=apo curriculum.sizes=[4,6] curriculum.thresholds=[0.0,0.0]"));
    settings.push(also("learner.loss=apo curriculum.wishes=[2,3] curriculum.thresholds=[0.0,0.0]"));
    let mut seen = BTreeSet::new();
    for setting in &settings {
        let setting: Vec<&str> = setting.iter().map(String::as_str).collect();
        let whole = learned(&setting, 2, 0);
        // The third advance is a step of those without V*, and a rollout of the others' reference.
        for (n_threads, n_advances) in [(1, 3), (2, VALUE_TRIPS + 2)] {
            for ((name, found), (_, expected)) in learned(&setting, n_threads, n_advances).iter().zip(&whole)
            {
                assert!(found == expected, "{setting:?} stopped after {n_advances}: `{name}` differs");
            }
        }
        let (name, weights) = &whole[7];
        assert_eq!(*name, "checkpoints/last/model/model.safetensors");
        assert!(seen.insert(weights.clone()), "{setting:?} learned what another setting did");
    }
}

#[test]
fn the_best_checkpoint_is_that_of_the_best_evaluation() {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let all =
        ["checkpoint.best=true", "checkpoint.keep=1", "evaluation.split=validation", "evaluation.every=1"];
    let config = toy(&all);
    let run = branch(&WARM_START.1, &keep.path().join("run"), &config).expect("a branch");
    let stop = AtomicBool::new(false);
    // Stopped after two steps, so that the best so far is known from a checkpoint.
    let observer = StopAfter::new(VALUE_TRIPS + 2, &stop);
    let interrupted = train(&config, &run, &observer, &stop);
    assert!(matches!(interrupted, Err(TrainingError::Interrupted { .. })));
    Run::resumed(run.root());
    let records = read_records(run.root(), "validation").expect("metrics that read back");
    let evaluated = records.iter().filter(|record| record.phase == Phase::Learn);
    let evaluated = evaluated.filter_map(|record| Some((record.step, record.get(Metric::EvalSuccessRate)?)));
    let evaluated: Vec<(u64, f64)> = evaluated.collect();
    assert_eq!(evaluated.len() as u64, LEARNER_STEPS);
    let (mut best, mut most) = (0, f64::NEG_INFINITY);
    for (step, success) in evaluated {
        if success > most {
            (best, most) = (step, success);
        }
    }
    let checkpoints = run.checkpoints();
    let name =
        |link: &str| fs::canonicalize(checkpoints.join(link)).expect("a link").file_name().map(Into::into);
    let found: [Option<PathBuf>; 2] = ["best", "last"].map(name);
    assert_eq!(found, [Some(format!("step-{best:06}").into()), Some("step-000064".into())]);
    Trained::load(&checkpoints.join("best")).expect("a model that can shop");
}

#[test]
fn forks_make_every_state_known_and_their_tokens_count_once() {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let config = toy(&["value.credit=state", "value.forks=2", "value.samples=2"]);
    let run = branch(&WARM_START.1, &keep.path().join("run"), &config).expect("a branch");
    train(&config, &run, &Silent, &AtomicBool::new(false)).expect("a run to the end");
    let records = read_records(run.root(), "test").expect("metrics that read back");
    let steps: Vec<&Record> = records.iter().filter(|r| r.get(Metric::ValueForkTokens).is_some()).collect();
    assert_eq!(steps.len() as u64, LEARNER_STEPS);
    let get = |step: &Record, metric: Metric| step.get(metric).unwrap_or_else(|| panic!("{}", metric.name()));
    let hit_rates: Vec<f64> = steps.iter().map(|step| get(step, Metric::ValueStateHitRate)).collect();
    // Two reference trips pass few of the states that four trips for the same goal pass; forks remain.
    assert!(hit_rates[0] < 0.9 && hit_rates[3] > hit_rates[0], "{hit_rates:?}");
    for pair in steps.windows(2) {
        // All eight goals were valued before the first step, so that nothing is written but trips and forks.
        let [total, forked] = [Metric::RolloutTokensTotal, Metric::ValueForkTokens]
            .map(|metric| get(pair[1], metric) - get(pair[0], metric));
        assert!(forked > 0.0, "{hit_rates:?}");
        assert!(
            (total - forked - 32.0 * get(pair[1], Metric::RolloutTokens)).abs() < 1e-6,
            "{total} {forked}"
        );
    }
    assert!(get(steps[3], Metric::ValueForkTokensShared) > 0.0);
}

#[test]
fn values_that_another_run_left_behind_change_nothing_that_is_learned() {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let values = keep.path().join("values");
    let learned = |name: &str, cache: Option<&Path>| {
        let mut config = toy(&["value.credit=state", "value.forks=2", "value.samples=2"]);
        config.value.cache = cache.map(Path::to_owned);
        let run = branch(&WARM_START.1, &keep.path().join(name), &config).expect("a branch");
        train(&config, &run, &Silent, &AtomicBool::new(false)).expect("a run to the end");
        fs::read(run.root().join("checkpoints/last/model/model.safetensors")).expect("weights")
    };
    let alone = learned("alone", None);
    assert!(learned("first", Some(&values)) == alone);
    assert!(fs::read_dir(&values).expect("a folder").count() > 0, "nothing was left behind");
    assert!(learned("second", Some(&values)) == alone);
}

#[test]
fn learning_ends_when_its_tokens_are_spent() {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let config = toy(&["learner.max_tokens=12000", "learner.steps=50", "evaluation.every=1"]);
    let run = branch(&WARM_START.1, &keep.path().join("run"), &config).expect("a branch");
    train(&config, &run, &Silent, &AtomicBool::new(false)).expect("a run to the end");
    let records = read_records(run.root(), "test").expect("metrics that read back");
    let totals: Vec<f64> = records.iter().filter_map(|r| r.get(Metric::RolloutTokensTotal)).collect();
    let (last, before) = totals.split_last().expect("some steps");
    assert!(*last >= 12000.0 && before.iter().all(|total| *total < 12000.0), "{totals:?}");
    assert!(totals.len() > 1 && totals.len() < 50, "{totals:?}");
    // Reference rollouts count: the first step has written more than its own trips.
    let mean = records.iter().find_map(|r| r.get(Metric::RolloutTokens)).expect("a first step");
    assert!(totals[0] > 1.5 * 32.0 * mean, "{} after 32 trips of {mean}", totals[0]);
    let learning = records.iter().filter(|record| record.phase == Phase::Learn);
    let evaluated = learning.filter(|record| record.get(Metric::EvalSuccessRate).is_some()).count();
    assert_eq!(evaluated, totals.len(), "each step once, the last one too");
}

#[test]
fn the_sampler_and_the_trainer_agree_on_every_token() {
    let records = REFERENCE.records();
    let learning = records.iter().filter(|record| record.phase == Phase::Learn);
    let gaps: Vec<f64> = learning.filter_map(|record| record.get(Metric::TrainLogProbGap)).collect();
    assert!(!gaps.is_empty(), "no trip surprised anyone");
    for gap in gaps {
        // Twice the same number by other kernels: some units in the last place of a few nats.
        assert!(gap < 1e-4, "a token's log-probability differs by {gap} nats");
    }
}

#[test]
fn the_trips_of_a_run_can_be_made_again() {
    let ground = Ground::open(&toy(&[])).expect("a small ground");
    for step in ["step-000060", "step-000064"] {
        let trips =
            fs::read(REFERENCE.folder.join(format!("episodes/{step}.jsonl"))).expect("recorded trips");
        let replayed = replay(&trips[..], ground.shop()).expect("trips of the judged shop");
        assert_eq!((replayed.trips, replayed.difference), (8, None), "{step}");
    }
}
