//! `webshop shop-r1`: next actions, one at a time.

mod data;
mod eval;
mod harvest;
mod map;
mod rationales;
mod score;
mod steps;
mod validate;

use std::process::ExitCode;

use webshop_training::Preset;

use crate::train::{self, TrainArgs};

/// What to do with next actions.
#[derive(clap::Subcommand)]
pub enum ShopR1Verb {
    /// Teach a model single steps: cloning, then the hierarchical reward
    Train(TrainArgs),
    /// Make single steps to learn from, of trips and recordings
    Data(Box<data::DataArgs>),
    /// Check single steps that others made
    Validate(validate::ValidateArgs),
    /// Measure a model on single steps, beside what needs no model
    Eval(Box<eval::EvalArgs>),
    /// Say what answers are worth beside what the customer did, and why
    Score(score::ScoreArgs),
    /// Say shop actions as Shop-R1 has them, and the other way round
    Map(map::MapArgs),
}

/// Carries out the verb.
pub fn run(verb: ShopR1Verb) -> anyhow::Result<ExitCode> {
    match verb {
        ShopR1Verb::Train(args) => train::run(args, Preset::ShopR1),
        ShopR1Verb::Data(args) => data::run(*args),
        ShopR1Verb::Validate(args) => validate::run(args),
        ShopR1Verb::Eval(args) => eval::run(*args),
        ShopR1Verb::Score(args) => score::run(args),
        ShopR1Verb::Map(args) => map::run(args),
    }
}
