//! `webshop eval`: runs a trained model on held-out goals and prints the statistics.

use std::path::PathBuf;
use std::process::ExitCode;

use webshop_training::TrainedModel;

use crate::args::episodes::EpisodesArgs;
use crate::rollout::run_model;

/// Flags of `webshop eval`.
#[derive(clap::Args)]
pub(crate) struct EvalArgs {
    /// Model to evaluate: a run folder, a checkpoint in it, or a model folder
    #[arg(long, value_name = "DIR")]
    checkpoint: PathBuf,
    #[command(flatten)]
    episodes: EpisodesArgs,
}

/// Evaluates and prints.
pub(crate) fn run(args: EvalArgs) -> anyhow::Result<ExitCode> {
    run_model(TrainedModel::load(&args.checkpoint)?, &args.episodes, None)
}
