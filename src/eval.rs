//! `webshop eval`: runs a trained model on held-out goals and prints the statistics beside those of baselines.

use std::path::PathBuf;
use std::process::ExitCode;

use webshop_agent::BrowsingHabits;
use webshop_evaluation::{BaselineConfig, baselines};
use webshop_products::Seed;
use webshop_training::TrainedModel;

use crate::args::episodes::EpisodesArgs;
use crate::result_file::RolloutResult;
use crate::rollout::{Finished, of_recorded, run_model};

/// Flags of `webshop eval`.
#[derive(clap::Args)]
pub(crate) struct EvalArgs {
    /// Model to evaluate: `base`, a run folder, a checkpoint in it, or a model folder
    #[arg(long, value_name = "DIR")]
    checkpoint: PathBuf,
    /// Take the episodes from these files instead of running them: those of `webshop rollout --policy lm` with this
    /// checkpoint and the other flags of this command, in one file or in parts (`--shard`)
    #[arg(long, value_name = "FILE.jsonl", num_args = 1..)]
    recorded: Vec<PathBuf>,
    /// Leave out the baselines: policies without a model on the same goals, which take a second or two for 300
    /// goals
    #[arg(long)]
    no_baselines: bool,
    #[command(flatten)]
    episodes: EpisodesArgs,
}

/// Evaluates and prints.
pub(crate) fn run(args: EvalArgs) -> anyhow::Result<ExitCode> {
    let model = TrainedModel::load(&args.checkpoint)?;
    let config = BaselineConfig {
        max_steps: args.episodes.max_steps,
        results_shown: model.config.prompt.results_shown,
        browsing: Some(BrowsingHabits::default()),
        seed: Seed(args.episodes.seed),
    };
    let Finished { tasks, tally, result } = match args.recorded.is_empty() {
        true => run_model(model, &args.episodes, None)?,
        false => of_recorded(model, &args.episodes, &args.recorded)?,
    };
    let baselines = match args.no_baselines {
        true => Vec::new(),
        false => baselines(&tasks.tasks, config, &tally.outcomes())?,
    };
    RolloutResult { baselines, ..result }.print(args.episodes.json)?;
    Ok(ExitCode::SUCCESS)
}
