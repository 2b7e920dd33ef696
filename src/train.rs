//! `webshop train`: a whole training run, from initial weights to the report.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use webshop_evaluation::{Baseline, Judgement, Summary, baselines_table};
use webshop_report::write_report;
use webshop_training::config::{Config, Preset, RlMode};
use webshop_training::sweep::shell_quoted;
use webshop_training::{
    Evaluation, RolloutWorkers, RunFolder, RunSummary, TrainOptions, TrainingError, read_json, train,
};

use crate::args::cache::CacheArgs;
use crate::args::compute::ComputeArgs;
use crate::args::experiment::ExperimentArgs;
use crate::arguments;
use crate::ctrl_c::stop_on_ctrl_c;
use crate::output::outln;
use crate::progress::observer;

/// Printed below the flags.
const EXAMPLES: &str = "Examples:
  webshop train --preset quick --out runs/first
  webshop train --config my.toml --set rl.steps=4 --seed 1
  webshop train --resume --out runs/first

Ctrl-C stops after the current step and writes a checkpoint; `--resume` continues the run.
A finished run is judged on test goals and on shops of its own seed. If Ctrl-C stops that,
`--resume` makes the judgement again.

Exit codes: 0 done, 2 error, 130 interrupted.";

/// Flags of `webshop train`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    #[command(flatten)]
    cache: CacheArgs,
    /// Run folder to write: checkpoints, metrics, report [default: runs/LOSS-seed-N; in single-step mode
    /// runs/shop-r1-seed-N]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    compute: ComputeArgs,
    /// Continue the interrupted run in the folder of `--out`, with its own configuration; `--device`,
    /// `--dtype` and `--kernels` must be those it was started with
    #[arg(long, conflicts_with_all = ["config", "preset", "overrides", "model", "catalog", "skip_bad"])]
    resume: bool,
    /// Print the resolved configuration as TOML, with all keys, and exit
    #[arg(long)]
    dry_run: bool,
}

/// Trains, and prints the evaluations; `default` is the configuration if the flags name none. `workers` make the
/// training episodes, if there are any.
pub(crate) fn run(
    args: TrainArgs,
    default: Preset,
    workers: Option<&dyn RolloutWorkers>,
) -> anyhow::Result<ExitCode> {
    let seed = args.experiment.seed;
    let config = args.experiment.load(default)?;
    let name = match config.rl.mode {
        RlMode::MultiTurn => config.rl.method(),
        RlMode::SingleStep => "shop-r1".into(),
    };
    let out = args.out.unwrap_or_else(|| PathBuf::from(format!("runs/{name}-seed-{}", config.seed)));
    if args.dry_run {
        let config = if args.resume { resume(&out, seed)?.1 } else { config };
        outln!("{}", config.to_toml().trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let compute = args.compute.choose()?;
    let (run, mut config) = if args.resume {
        resume(&out, seed)?
    } else {
        let run = RunFolder::create(&out, &config)?;
        run.save_command(&command_line())?;
        (run, config)
    };
    config.catalog.cache = args.cache.folder_for(&config.catalog.source);
    let stop = stop_on_ctrl_c("stopping after this step")?;
    let observer = observer();
    for warning in config.warnings() {
        observer.log(&format!("warning: {warning}"));
    }
    let (compute, stop) = (Some(&compute), Some(&*stop));
    let options = TrainOptions { compute, observer: observer.as_ref(), stop, workers, loss: None };
    let stages = match train(&config, &run, options) {
        Ok(stages) => stages,
        Err(interrupted @ TrainingError::Interrupted { .. }) => {
            eprintln!("{interrupted}; continue with `--resume --out {}`", out.display());
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
    outln!("evaluation on held-out goals, {}:", config.evaluation.goals_in_words())?;
    print_evaluation(config.model.first_name(), stages.initial.as_ref())?;
    print_evaluation("warm start", stages.warm_start.as_ref())?;
    print_evaluation("learned", stages.learned.as_ref())?;
    print_baselines(&stages, &run)?;
    print_judgement(&config, &run)?;
    outln!("run folder  {}", out.display())?;
    outln!("report      {}", report.display())?;
    Ok(ExitCode::SUCCESS)
}

/// The run in `folder` and its configuration, whose seed must be `seed` if that is given.
fn resume(folder: &Path, seed: Option<u64>) -> anyhow::Result<(RunFolder, Config)> {
    let (run, config) = RunFolder::resume(folder)?;
    if let Some(seed) = seed.filter(|seed| *seed != config.seed) {
        bail!("the run in `{}` has seed {}, not {seed}; leave out `--seed`", folder.display(), config.seed);
    }
    Ok((run, config))
}

/// The command line of [`crate::main`], quoted where a shell needs it.
fn command_line() -> String {
    let arguments =
        arguments::kept().iter().skip(1).map(|argument| shell_quoted(&argument.to_string_lossy()));
    std::iter::once("webshop".to_string()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Prints the final evaluations beside policies without a model on the same goals.
fn print_baselines(stages: &RunSummary, run: &RunFolder) -> anyhow::Result<()> {
    let baselines: Vec<Baseline> = read_json(&run.baselines())?;
    let evaluations = [("warm start", &stages.warm_start), ("learned", &stages.learned)];
    let evaluated = evaluations.map(|(name, of)| Some((name, &of.as_ref()?.summary)));
    let evaluated: Vec<(&str, &Summary)> = evaluated.into_iter().flatten().collect();
    outln!("on the same goals:\n{}", baselines_table(&evaluated, &baselines).text().trim_end())
}

/// Prints what the run is judged by.
fn print_judgement(config: &Config, run: &RunFolder) -> anyhow::Result<()> {
    if config.judgement.episodes == 0 {
        return Ok(());
    }
    let judgement: Judgement = read_json(&run.judgement())?;
    for set in &judgement.sets {
        outln!("judgement, {}:\n{}", set.title(), set.table().text().trim_end())?;
        if let Some(by_product) = set.by_product_table() {
            outln!("{}", by_product.text().trim_end())?;
        }
    }
    Ok(())
}

fn print_evaluation(name: &str, evaluation: Option<&Evaluation>) -> anyhow::Result<()> {
    if let Some(evaluation) = evaluation {
        outln!("{name:<17} {}  ({:.0} s)", evaluation.summary, evaluation.seconds)?;
        if let Some(scores) = &evaluation.next_action {
            outln!("{:<17} {scores}", "")?;
        }
    }
    Ok(())
}
