//! `webshop train`: the whole way from random weights to a trained shopper.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use webshop_training::{Config, Practice, Preset, RunFolder, Stage, TrainingError, train_on, write_report};

use crate::answer::answer;
use crate::cache::CacheArgs;
use crate::compute::ComputeArgs;
use crate::experiment::ExperimentArgs;
use crate::interrupt::stop_on_interrupt;
use crate::progress::observer;

/// Flags of `webshop train`.
#[derive(clap::Args)]
pub struct TrainArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    #[command(flatten)]
    cache: CacheArgs,
    /// The run folder [default: runs/LOSS-seed-N, or runs/shop-r1-seed-N]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    compute: ComputeArgs,
    /// Continue the run in the folder where it stopped, with its own configuration, computed as it was begun
    #[arg(long, conflicts_with_all = ["config", "preset", "overrides", "model", "catalog", "skip_bad"])]
    resume: bool,
    /// Print the resolved configuration and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// Trains, and prints what came of it; `default` is the experiment if none is named.
pub fn run(args: TrainArgs, default: Preset) -> anyhow::Result<ExitCode> {
    let seed = args.experiment.seed;
    let config = args.experiment.load(default)?;
    if args.dry_run {
        answer!("{}", config.to_toml().trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let compute = args.compute.choose()?;
    let name = match config.learner.practice {
        Practice::Trips => config.learner.loss.to_string(),
        Practice::Steps => "shop-r1".into(),
    };
    let out = args.out.unwrap_or_else(|| PathBuf::from(format!("runs/{name}-seed-{}", config.seed)));
    let (run, config) = if args.resume {
        let (run, begun) = RunFolder::resume(&out)?;
        if let Some(seed) = seed.filter(|seed| *seed != begun.seed) {
            bail!("the run in `{}` has seed {}, not {seed}; leave out `--seed`", out.display(), begun.seed);
        }
        (run, begun)
    } else {
        let run = RunFolder::create(&out, &config)?;
        run.save_command(&command_line())?;
        (run, config)
    };
    let config = with_cache(config, args.cache);
    let stop = stop_on_interrupt("stopping after this step")?;
    let observer = observer();
    for warning in config.warnings() {
        observer.say(&format!("warning: {warning}"));
    }
    let stages = match train_on(&compute, &config, &run, observer.as_ref(), &stop) {
        Ok(stages) => stages,
        Err(interrupted @ TrainingError::Interrupted { .. }) => {
            eprintln!("{interrupted}");
            return Ok(ExitCode::from(130));
        }
        Err(error) => {
            if !args.resume {
                run.remove_if_unbegun().with_context(|| error.to_string())?;
            }
            return Err(error.into());
        }
    };
    let report = write_report(&run)?;
    answer!("held out, split `{}`:", config.evaluation.split)?;
    let after = format!("after {}", config.learner.loss);
    print_stage(config.model.first_name(), stages.random.as_ref())?;
    print_stage("after warm start", stages.warm_start.as_ref())?;
    print_stage(&after, stages.learned.as_ref())?;
    answer!("run folder  {}", out.display())?;
    answer!("report      {}", report.display())?;
    Ok(ExitCode::SUCCESS)
}

/// The experiment, with a place for its index.
fn with_cache(mut config: Config, cache: CacheArgs) -> Config {
    config.catalog.index_cache = cache.folder_for(&config.catalog.source);
    config
}

/// What was typed, quoted where a shell needs it.
fn command_line() -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=./,:+%@".contains(c);
    let quoted = |argument: String| match argument.chars().all(plain) && !argument.is_empty() {
        true => argument,
        false => format!("'{}'", argument.replace('\'', "'\\''")),
    };
    let arguments = std::env::args().skip(1).map(quoted);
    std::iter::once("webshop".to_string()).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn print_stage(name: &str, stage: Option<&Stage>) -> anyhow::Result<()> {
    if let Some(stage) = stage {
        answer!("{name:<17} {}  ({:.0} s)", stage.summary, stage.seconds)?;
        if let Some(scores) = &stage.next_action {
            answer!("{:<17} {scores}", "")?;
        }
    }
    Ok(())
}
