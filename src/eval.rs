//! `webshop eval`: how well a checkpoint shops on held-out goals.

use std::path::PathBuf;
use std::process::ExitCode;

use webshop_training::Trained;

use crate::rollout::{PlayFlags, play_lm};

/// Flags of `webshop eval`.
#[derive(clap::Args)]
pub struct EvalArgs {
    /// A run folder, a checkpoint in it, or a model folder
    #[arg(long, value_name = "DIR")]
    checkpoint: PathBuf,
    #[command(flatten)]
    play: PlayFlags,
}

/// Evaluates and prints.
pub fn run(args: EvalArgs) -> anyhow::Result<ExitCode> {
    play_lm(Trained::load(&args.checkpoint)?, &args.play, None)
}
