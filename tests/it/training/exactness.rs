//! The same seed gives the same bytes, whatever the threads and the interruptions.

use crate::common::{EXHAUSTIVE, cases};
use crate::zero_rewards::settings_of;

use super::*;

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
    let learning = WARM_STEPS + VALUE_EPISODES;
    for n_advances in cases(&[1, WARM_STEPS, WARM_STEPS + 1, learning + 2, learning + 4], &[1, 3]) {
        let config = toy(&[]);
        let (_keep, run) = begin(&config);
        let stop = AtomicBool::new(false);
        let observer = StopAfter::new(n_advances, &stop);
        let stopped = train(&config, &run, watched(&observer, &stop)).expect_err("it was asked to stop");
        assert!(matches!(stopped, TrainingError::Interrupted { .. }), "{stopped}");
        check(&Run::resumed(run.root()), &format!("stopped after {n_advances}"));
    }
}

/// Copies the run folder when the trainer reports progress: what would be left if it were killed there. It copies few
/// moments of the warm start and of V*, which are all alike, then every second one, or every sixth.
struct Witness {
    run: PathBuf,
    copies: PathBuf,
    n_reports: AtomicU64,
}

impl Witness {
    fn copy(&self) {
        let at = self.n_reports.fetch_add(1, Ordering::Relaxed);
        let (early, late) = if EXHAUSTIVE { (28, 2) } else { (56, 6) };
        if at.is_multiple_of(if at < WARM_STEPS + VALUE_EPISODES { early } else { late }) {
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

    fn log(&self, _line: &str) {
        self.copy();
    }
}

#[test]
fn a_run_that_was_killed_and_resumed_leaves_the_same_bytes() {
    let config = toy(&[]);
    let (keep, run) = begin(&config);
    let copies = keep.path().join("copies");
    let witness = Witness { run: run.root().into(), copies: copies.clone(), n_reports: AtomicU64::new(0) };
    train(&config, &run, TrainOptions { observer: &witness, ..TrainOptions::default() })
        .expect("a run to the end");
    // Six begins and ends, a report for each step and each episode for V*, five evaluations.
    assert_eq!(witness.n_reports.into_inner(), 6 + WARM_STEPS + VALUE_EPISODES + RL_STEPS + 5);
    for copy in fs::read_dir(&copies).expect("some copies") {
        let killed = copy.expect("a copy").path();
        check(&Run::resumed(&killed), &format!("killed at {}", killed.display()));
    }
}

#[test]
fn a_run_that_cannot_be_resumed_keeps_its_records() {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let root = keep.path().join("run");
    copy_folder(&REFERENCE.folder, &root);
    // A record that is newer than the last checkpoint.
    let path = root.join("metrics.jsonl");
    let records = fs::read_to_string(&path).expect("metrics") + "{\"step\":65,\"phase\":\"learn\"}\n";
    fs::write(&path, &records).expect("a longer file");
    let fingerprint = fs::read_to_string(root.join("fingerprint.json")).expect("a fingerprint");
    fs::write(root.join("fingerprint.json"), fingerprint.replace("compact-v2", "compact-v1"))
        .expect("another");
    let (run, config) = RunFolder::resume(&root).expect("a run was begun");
    let error = train(&config, &run, TrainOptions::default()).expect_err("refused").to_string();
    assert!(error.contains("`prompt`, the version of the prompt format"), "{error}");
    assert_eq!(fs::read_to_string(&path).expect("metrics"), records);
}

#[test]
fn a_damaged_checkpoint_is_refused_by_name_and_changes_nothing() {
    for name in ["model/model.safetensors", "optimizer.safetensors", "trainer_state.json"] {
        let keep = tempfile::tempdir().expect("a temporary folder");
        let root = keep.path().join("run");
        copy_folder(&REFERENCE.folder, &root);
        let last = fs::canonicalize(root.join("checkpoints/last")).expect("a link to the newest");
        let whole = fs::read(last.join(name)).expect("a file of the checkpoint");
        fs::write(last.join(name), &whole[..whole.len() / 2]).expect("half of it");
        let records = fs::read(root.join("metrics.jsonl")).expect("metrics");
        let refused = RunFolder::resume(&root)
            .and_then(|(run, config)| train(&config, &run, TrainOptions::default()).map(|_| ()));
        let error = refused.expect_err(name).to_string();
        assert!(error.contains(name.rsplit('/').next().expect("a name")), "{name}: {error}");
        assert_eq!(fs::read(root.join("metrics.jsonl")).expect("metrics"), records, "{name}");
    }
}

/// The bytes of a run that branches from the warm start and is stopped after `n_advances` and resumed, or not stopped for 0.
pub(super) fn learned(more: &[&str], n_threads: usize, n_advances: u64) -> Vec<(&'static str, Vec<u8>)> {
    let config = toy(more);
    let (_keep, run) = branch(&config);
    let stop = AtomicBool::new(false);
    let observer = StopAfter::new(n_advances, &stop);
    let threads = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("threads");
    match threads.install(|| train(&config, &run, watched(&observer, &stop))) {
        Ok(summary) => {
            assert_eq!(n_advances, 0, "{more:?} was not stopped");
            let learned = summary.learned.as_ref().expect("the last evaluation");
            assert_eq!((learned.step, learned.summary.episodes), (WARM_STEPS + RL_STEPS, 8), "{more:?}");
            Run { folder: run.root().into(), _keep: None }
        }
        Err(TrainingError::Interrupted { .. }) => Run::resumed(run.root()),
        Err(error) => panic!("{more:?}: {error}"),
    }
    .bytes()
}

/// Settings of the trainer, those of which each stands for several others first: a group loss by Muon, minibatches in
/// epochs with demonstrations, V* of states with forks, a curriculum, and cloning alone.
fn settings() -> Vec<String> {
    let representative = [
        "rl.loss.kind=grpo rl.group_size=2 rl.optimizer=muon optimizer.grad_clip_quantile=0.5",
        "rl.loss.kind=ppo rl.minibatches=3 rl.epochs=2 rl.demonstration_share=0.2",
        "rl.loss.kind=apo value.credit=state value.forks=2 value.refresh=3",
        "rl.loss.kind=reinforce curriculum.sizes=[4,6] curriculum.thresholds=[0.0,0.0]",
        "rl.demonstration_share=1 rl.minibatches=3 rl.epochs=2",
    ];
    let others = [
        "rl.loss.kind=apo value.credit=state value.refresh=2",
        "rl.loss.kind=reinforce value.keep_spread=0.5 value.adaptive=true",
        "rl.loss.kind=grpo rl.group_size=2 optimizer.grad_clip_quantile=0.5",
        "rl.loss.kind=apo curriculum.sizes=[4,6] curriculum.thresholds=[0.0,0.0]",
        "rl.loss.kind=apo curriculum.requirements=[2,3] curriculum.thresholds=[0.0,0.0]",
    ];
    let mut settings: Vec<String> = representative.map(String::from).into();
    if EXHAUSTIVE {
        settings.extend(others.map(String::from));
        settings.extend(LossKind::ALL.into_iter().map(|loss| settings_of(loss).join(" ")));
    }
    settings
}

#[test]
fn settings_of_the_trainer_leave_the_same_bytes_interrupted_or_not() {
    let mut seen = BTreeSet::new();
    for setting in settings() {
        let setting: Vec<&str> = setting.split_whitespace().collect();
        let whole = learned(&setting, 2, 0);
        // The third advance is a step of a loss without V*, and a rollout for the V* of the others, whose third step comes
        // after all of those.
        let without_v_star = ["rl.loss.kind=grpo", "rl.loss.kind=ppo", "rl.demonstration_share=1"];
        let in_learning = usize::from(!without_v_star.iter().any(|loss| setting.contains(loss)));
        for (n_threads, n_advances) in cases(&[(1, 3), (2, VALUE_EPISODES + 2)], &[in_learning]) {
            for ((name, found), (_, expected)) in learned(&setting, n_threads, n_advances).iter().zip(&whole)
            {
                assert!(found == expected, "{setting:?} stopped after {n_advances}: `{name}` differs");
            }
        }
        let has = |name: &str| whole.iter().any(|(of, bytes)| *of == name && !bytes.is_empty());
        let is_ppo = setting.contains(&"rl.loss.kind=ppo");
        assert_eq!(has("checkpoints/last/critic/value_head.safetensors"), is_ppo, "{setting:?}");
        let (name, weights) = &whole[7];
        assert_eq!(*name, "checkpoints/last/model/model.safetensors");
        assert!(seen.insert(weights.clone()), "{setting:?} learned what another setting did");
    }
}
