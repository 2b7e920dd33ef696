//! `webshop shop-r1`: next-action prediction, as in the paper Shop-R1 (arXiv 2507.17842).

mod data;
mod eval;
mod map;
mod rationales;
mod score;
mod validate;

use std::process::ExitCode;

use webshop_training::config::Preset;

use crate::train::{self, TrainArgs};

/// The commands of `webshop shop-r1`.
#[derive(clap::Subcommand)]
pub(crate) enum ShopR1Command {
    /// Train a model on single steps: supervised warm start, then reinforcement learning with the Shop-R1
    /// reward
    Train(TrainArgs),
    /// Build a data set of single-step examples from expert episodes, recorded episodes or human sessions
    Data(Box<data::DataArgs>),
    /// Check the format of a data set of single-step examples
    Validate(validate::ValidateArgs),
    /// Evaluate a model on single-step examples, next to baselines that need no model
    Eval(Box<eval::EvalArgs>),
    /// Compute the Shop-R1 reward of completions
    Score(score::ScoreArgs),
    /// Translate actions of the shop into Shop-R1 actions, and back
    Map(map::MapArgs),
}

/// Runs a command.
pub(crate) fn run(command: ShopR1Command) -> anyhow::Result<ExitCode> {
    match command {
        ShopR1Command::Train(args) => train::run(args, Preset::ShopR1, None),
        ShopR1Command::Data(args) => data::run(*args),
        ShopR1Command::Validate(args) => validate::run(args),
        ShopR1Command::Eval(args) => eval::run(*args),
        ShopR1Command::Score(args) => score::run(args),
        ShopR1Command::Map(args) => map::run(args),
    }
}
