//! What a run records, keeps and learns, and what it must not learn from.

use super::*;

#[test]
fn a_run_names_the_rewards_it_learned_from() {
    let (_, fingerprint) =
        REFERENCE.bytes().into_iter().find(|(name, _)| *name == "fingerprint.json").expect("a file");
    let fingerprint: serde_json::Value = serde_json::from_slice(&fingerprint).expect("JSON");
    assert_eq!(
        (&fingerprint["environment"], &fingerprint["rewards"]),
        (&"webshop-3".into(), &"reward-1".into())
    );
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
    let loaded = names.map(|name| TrainedModel::load(&name).expect("a trained model"));
    let before = TrainedModel::load(&REFERENCE.folder.join("reference")).expect("the warm start was kept");
    for trained in loaded.iter().chain([&before]) {
        assert_eq!(trained.config, toy(&[]));
    }
    for trained in &loaded {
        let fingerprint = |trained: &TrainedModel| trained.model.fingerprint().expect("f32 weights");
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
            assert!(has_learned(before, after), "`{name}` stayed as it was");
        }
    }
}

#[test]
fn no_goal_of_the_evaluation_is_trained_on() {
    let config = toy(&["catalog.size=all", "auxiliary_shops=2", "auxiliary_products=30"]);
    let tasks = TaskSet::open(&config).expect("a shop and two auxiliary shops");
    let held_out = tasks.held_out(Split::Test, usize::MAX);
    assert_eq!(held_out.len(), tasks.shop().goals().split(Split::Test).len());
    let held_out: Vec<&Goal> = held_out.iter().map(|&goal| tasks.shop().goals().get(goal)).collect();
    let asins: BTreeSet<&str> = held_out.iter().map(|goal| goal.asin.as_str()).collect();
    let titles: BTreeSet<&str> = held_out.iter().map(|goal| &*goal.title).collect();
    assert!(asins.len() >= 10, "there is something to protect");
    for goal in tasks.training() {
        let trained = tasks.shop_of(*goal).goals().get(goal.goal);
        // Auxiliary shops have product ids of their own, which may equal those of the shop.
        match goal.shop {
            0 => assert!(!asins.contains(trained.asin.as_str()), "{}", trained.instruction),
            _ => assert!(!titles.contains(&*trained.title), "{}", trained.instruction),
        }
    }
    let shops: BTreeSet<u32> = tasks.training().iter().map(|goal| goal.shop).collect();
    assert_eq!(shops, BTreeSet::from([0, 1, 2]));
}

#[test]
fn the_best_checkpoint_is_that_of_the_best_evaluation() {
    let keep = tempfile::tempdir().expect("a temporary folder");
    let all =
        ["checkpoint.best=true", "checkpoint.keep=1", "evaluation.split=validation", "evaluation.every=1"];
    let config = toy(&all);
    let run = branch_run(&WARM_START.1, &keep.path().join("run"), &config).expect("a branch");
    let stop = AtomicBool::new(false);
    // Stopped after two steps, so that the best so far is known from a checkpoint.
    let observer = StopAfter::new(VALUE_EPISODES + 2, &stop);
    let interrupted = train(&config, &run, watched(&observer, &stop));
    assert!(matches!(interrupted, Err(TrainingError::Interrupted { .. })));
    Run::resumed(run.root());
    let records = read_records(run.root(), "validation").expect("metrics that read back");
    let evaluated = records.iter().filter(|record| record.phase == Phase::Learn);
    let evaluated = evaluated.filter_map(|record| Some((record.step, record.get(Metric::EvalSuccessRate)?)));
    let evaluated: Vec<(u64, f64)> = evaluated.collect();
    assert_eq!(evaluated.len() as u64, RL_STEPS);
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
    TrainedModel::load(&checkpoints.join("best")).expect("a model that can shop");
}

#[test]
fn forks_make_every_state_known_and_their_tokens_count_once() {
    let config = toy(&["value.credit=state", "value.forks=2", "value.samples=2"]);
    let (_keep, run) = branch(&config);
    train(&config, &run, TrainOptions::default()).expect("a run to the end");
    let records = read_records(run.root(), "test").expect("metrics that read back");
    let steps: Vec<&Record> = records.iter().filter(|r| r.get(Metric::ValueForkTokens).is_some()).collect();
    assert_eq!(steps.len() as u64, RL_STEPS);
    let get = |step: &Record, metric: Metric| step.get(metric).unwrap_or_else(|| panic!("{}", metric.name()));
    let hit_rates: Vec<f64> = steps.iter().map(|step| get(step, Metric::ValueStateHitRate)).collect();
    // Two reference episodes pass few of the states that four episodes for the same goal pass; forks remain.
    assert!(hit_rates[0] < 0.9 && hit_rates[3] > hit_rates[0], "{hit_rates:?}");
    for pair in steps.windows(2) {
        // All eight goals were valued before the first step, so that only episodes and forks have tokens.
        let [total, forked] = [Metric::RolloutTokensTotal, Metric::ValueForkTokens]
            .map(|metric| get(pair[1], metric) - get(pair[0], metric));
        assert!(forked > 0.0, "{hit_rates:?}");
        assert!(
            (total - forked - 16.0 * get(pair[1], Metric::RolloutTokens)).abs() < 1e-6,
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
        let run = branch_run(&WARM_START.1, &keep.path().join(name), &config).expect("a branch");
        train(&config, &run, TrainOptions::default()).expect("a run to the end");
        fs::read(run.root().join("checkpoints/last/model/model.safetensors")).expect("weights")
    };
    let alone = learned("alone", None);
    assert!(learned("first", Some(&values)) == alone);
    assert!(fs::read_dir(&values).expect("a folder").count() > 0, "nothing was left behind");
    assert!(learned("second", Some(&values)) == alone);
}

#[test]
fn learning_ends_when_its_tokens_are_spent() {
    let config = toy(&["rl.max_tokens=12000", "rl.steps=50", "evaluation.every=1"]);
    let (_keep, run) = branch(&config);
    train(&config, &run, TrainOptions::default()).expect("a run to the end");
    let records = read_records(run.root(), "test").expect("metrics that read back");
    let totals: Vec<f64> = records.iter().filter_map(|r| r.get(Metric::RolloutTokensTotal)).collect();
    let (last, before) = totals.split_last().expect("some steps");
    assert!(*last >= 12000.0 && before.iter().all(|total| *total < 12000.0), "{totals:?}");
    assert!(totals.len() > 1 && totals.len() < 50, "{totals:?}");
    // Reference rollouts count: the first step has more tokens than its own episodes.
    let mean = records.iter().find_map(|r| r.get(Metric::RolloutTokens)).expect("a first step");
    assert!(totals[0] > 1.5 * 16.0 * mean, "{} after 16 episodes of {mean}", totals[0]);
    let learning = records.iter().filter(|record| record.phase == Phase::Learn);
    let evaluated = learning.filter(|record| record.get(Metric::EvalSuccessRate).is_some()).count();
    assert_eq!(evaluated, totals.len(), "each step once, the last one too");
}

#[test]
fn the_sampler_and_the_trainer_agree_on_every_token() {
    let records = REFERENCE.records();
    let learning = records.iter().filter(|record| record.phase == Phase::Learn);
    let gaps: Vec<f64> = learning.filter_map(|record| record.get(Metric::TrainLogProbGap)).collect();
    assert!(!gaps.is_empty(), "no gap was recorded");
    for gap in gaps {
        // Twice the same number by other kernels: some units in the last place of a few nats.
        assert!(gap < 1e-4, "a token's log-probability differs by {gap} nats");
    }
}

#[test]
fn a_run_is_compared_with_policies_without_a_model_on_the_goals_of_its_last_evaluation() {
    let run = RunFolder::open(&REFERENCE.folder).expect("a run").0;
    let [baselines, summary] =
        [run.baselines(), run.summary()].map(|path| read_json::<serde_json::Value>(&path).expect("JSON"));
    let learned = &summary["learned"]["summary"];
    let baselines = baselines.as_array().expect("a list");
    assert!(!baselines.is_empty(), "the run has baselines");
    for of in baselines {
        assert_eq!(of["summary"]["products"], learned["products"], "{of}");
        let rate = |of: &serde_json::Value| of["success_rate"].as_f64().expect("a share");
        let difference = of["difference"]["mean"].as_f64().expect("the goals are the same");
        assert!((rate(learned) - rate(&of["summary"]) - difference).abs() < 1e-12, "{of}");
    }
}

#[test]
fn the_episodes_of_a_run_can_be_replayed() {
    let tasks = TaskSet::open(&toy(&[])).expect("a small task set");
    for step in ["step-000060", "step-000064"] {
        let episodes =
            fs::read(REFERENCE.folder.join(format!("episodes/{step}.jsonl"))).expect("recorded episodes");
        let replayed = replay(&episodes[..], tasks.shop()).expect("episodes of the evaluated shop");
        assert_eq!((replayed.episodes, replayed.difference), (8, None), "{step}");
    }
}

#[test]
fn ppo_learns_a_critic_and_estimates_no_v_star() {
    let config = toy(&["rl.loss.kind=ppo", "rl.minibatches=2", "rl.epochs=2"]);
    let (_keep, run) = branch(&config);
    train(&config, &run, TrainOptions::default()).expect("a run to the end");
    let records = read_records(run.root(), "test").expect("metrics that read back");
    let steps: Vec<&Record> =
        records.iter().filter(|record| record.get(Metric::TrainValueLoss).is_some()).collect();
    assert_eq!(steps.len() as u64, RL_STEPS, "every batch has a reward to learn from");
    for record in &steps {
        for metric in [
            Metric::RolloutSuccessRate,
            Metric::RolloutTaskScore,
            Metric::TrainLoss,
            Metric::TrainValueLoss,
            Metric::TrainExplainedVariance,
        ] {
            assert!(record.get(metric).expect("measured").is_finite(), "{}", metric.name());
        }
        assert_eq!(record.get(Metric::ValueHitRate), None, "no V* is looked up");
    }
    // The critic is 0 before the first batch, so its values explain nothing there.
    let explained = steps[0].get(Metric::TrainExplainedVariance).expect("measured");
    assert!(explained.abs() < 1e-9, "{explained}");
    assert_ne!(steps[1].get(Metric::TrainExplainedVariance), Some(0.0), "values follow the states");
    assert!(!run.root().join("value.json").exists(), "no V* was estimated");
    let checkpoint = run.root().join("checkpoints/last");
    assert!(checkpoint.join("critic/value_head.safetensors").is_file());
    let of_model = fs::read_dir(checkpoint.join("model")).expect("a model folder");
    for file in of_model.map(|entry| entry.expect("an entry").path()) {
        let bytes = fs::read(&file).expect("a file");
        let is_in = bytes.windows(11).any(|part| part == b"value_head.");
        assert!(!is_in, "`{}` contains the critic", file.display());
    }
}

#[test]
fn advantages_are_those_of_the_batch_whatever_its_minibatches() {
    let first_step = |minibatches: &str| {
        let config = toy(&["rl.steps=1", minibatches]);
        let (_keep, run) = branch(&config);
        train(&config, &run, TrainOptions::default()).expect("a run to the end");
        let records = read_records(run.root(), "test").expect("metrics that read back");
        let step = records.into_iter().find(|record| record.get(Metric::TrainAdvMean).is_some());
        let step = step.expect("a step of reinforcement learning");
        let metrics = [Metric::TrainAdvMean, Metric::TrainAdvStd, Metric::TrainEffectiveSamples];
        metrics.map(|metric| step.get(metric).expect("an update"))
    };
    let [whole, parts] = ["rl.minibatches=1", "rl.minibatches=4"].map(first_step);
    assert_eq!(whole, parts);
    assert!(whole[1] > 0.0 && whole[2] > 1.0, "{whole:?}");
}

#[test]
fn the_loss_of_a_batch_is_the_mean_of_its_minibatches() {
    // A rate at which the policy stays where it was, and a loss in which every episode has a weight.
    let fixed = ["rl.steps=1", "rl.lr=1e-12", "rl.loss.kind=wsft", "rl.loss.guarded=false"];
    let loss = |minibatches: &str| {
        let config = toy(&[&fixed[..], &[minibatches]].concat());
        let (_keep, run) = branch(&config);
        train(&config, &run, TrainOptions::default()).expect("a run to the end");
        let records = read_records(run.root(), "test").expect("metrics that read back");
        let mut steps = records.iter().filter(|record| record.phase == Phase::Learn);
        steps.find_map(|record| record.get(Metric::TrainLoss)).expect("an update")
    };
    let [whole, parts] = ["rl.minibatches=1", "rl.minibatches=4"].map(loss);
    assert!(whole.abs() > 1e-3 && (whole - parts).abs() < 1e-5 * whole.abs(), "{whole} and {parts}");
}

#[test]
fn a_lagging_reference_samples_and_is_replaced_by_the_policy_as_configured() {
    let config = toy(&["rl.loss.kind=apo-lagged", "rl.group_size=4", "value.refresh=2", "rl.lr=1e-3"]);
    let (_keep, run) = branch(&config);
    train(&config, &run, TrainOptions::default()).expect("a run to the end");
    let records = read_records(run.root(), "test").expect("metrics that read back");
    let of = |metric| -> Vec<f64> { records.iter().filter_map(|record| record.get(metric)).collect() };
    assert_eq!(of(Metric::ValueAge), [0.0, 1.0, 0.0, 1.0]);
    let gaps = of(Metric::TrainLogProbGap);
    assert_eq!(gaps.len() as u64, RL_STEPS, "every batch has a signal");
    for pair in gaps.chunks(2) {
        // At the refresh the policy is the reference, which samples; a step later it has moved.
        assert!(pair[0] < 1e-4 && pair[1] > 1e-3, "{gaps:?}");
    }
}

#[test]
fn a_stage_of_the_curriculum_ends_at_its_success_rate_only() {
    let stages = |thresholds: &str| -> Vec<f64> {
        let config = toy(&["rl.loss.kind=reinforce", "rl.steps=3", "curriculum.sizes=[4,6,8]", thresholds]);
        let (_keep, run) = branch(&config);
        train(&config, &run, TrainOptions::default()).expect("a run to the end");
        let records = read_records(run.root(), "test").expect("metrics that read back");
        records.iter().filter_map(|record| record.get(Metric::RolloutStage)).collect()
    };
    assert_eq!(stages("curriculum.thresholds=[0.0,0.0,0.0]"), [0.0, 1.0, 2.0]);
    assert_eq!(stages("curriculum.thresholds=[0.0,1.0,1.0]"), [0.0, 1.0, 1.0]);
}
