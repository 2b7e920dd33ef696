//! `webshop eval`: runs a trained model on held-out goals, or reads the episodes of any agent, and prints the statistics beside
//! those of baselines.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::ArgGroup;
use webshop_evaluation::{BaselineConfig, baselines};
use webshop_products::Seed;
use webshop_training::TrainedModel;
use webshop_training::config::Config;

use crate::args::episodes::EpisodesArgs;
use crate::result_file::RolloutResult;
use crate::rollout::{Finished, evaluate_any_agent, evaluate_recorded, run_model};

/// Flags of `webshop eval`.
#[derive(clap::Args)]
#[group(skip)]
#[command(group(ArgGroup::new("evaluated").args(["checkpoint", "recorded"]).required(true).multiple(true)))]
pub(crate) struct EvalArgs {
    /// Model to evaluate: `base`, a run folder, a checkpoint in it, or a model folder. The shop, its goals and the step
    /// limit are those of the run, where the flags name no others
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// Take the episodes from these files instead of running them. With `--checkpoint`: those of `webshop rollout --policy
    /// lm` with this checkpoint and the other flags of this command, in one file or in parts (`--shard`). Without: of any agent, one
    /// for each goal that the flags name; they are replayed first
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
pub(crate) fn run(mut args: EvalArgs) -> anyhow::Result<ExitCode> {
    if let Some(flag) = args.episodes.generation.given().filter(|_| args.checkpoint.is_none()) {
        bail!("`{flag}` is of language models, and needs `--checkpoint`");
    }
    let model = args.checkpoint.as_deref().map(TrainedModel::load).transpose()?;
    let trained = model.as_ref().map_or_else(Config::default, |model| model.config.clone());
    args.episodes.take_defaults_from(&trained);
    let config = BaselineConfig {
        max_steps: args.episodes.max_steps(),
        results_shown: trained.prompt.results_shown,
        browsing: trained.browsing_demonstrator(),
        seed: Seed(args.episodes.seed),
    };
    let Finished { tasks, tally, result } = match model {
        Some(model) if args.recorded.is_empty() => run_model(model, &args.episodes, None)?,
        Some(model) => evaluate_recorded(model, &args.episodes, &args.recorded)?,
        None => evaluate_any_agent(&args.episodes, &args.recorded)?,
    };
    let baselines = match args.no_baselines {
        true => Vec::new(),
        false => baselines(&tasks.tasks, config, &tally.outcomes())?,
    };
    RolloutResult { baselines, ..result }.print(args.episodes.json)?;
    Ok(ExitCode::SUCCESS)
}
