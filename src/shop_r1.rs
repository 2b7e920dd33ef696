//! `webshop shop-r1`: next actions, one at a time.

mod eval;
mod map;
mod score;
mod steps;

use std::process::ExitCode;

/// What to do with next actions.
#[derive(clap::Subcommand)]
pub enum ShopR1Verb {
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
        ShopR1Verb::Eval(args) => eval::run(*args),
        ShopR1Verb::Score(args) => score::run(args),
        ShopR1Verb::Map(args) => map::run(args),
    }
}
