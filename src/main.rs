//! `webshop`: the command line of the shop, the agent and the trainer.
//!
//! One verb a stage, one file a verb. A verb parses its flags, builds what it needs from the libraries,
//! and prints: data on stdout, logs and progress on stderr. Exit codes: 0 done, 1 a check found a
//! difference, 2 error, 130 interrupted after a checkpoint was written.

#![deny(clippy::print_stdout)]

mod answer;
mod cache;
mod catalog;
mod compare;
mod compute;
mod convert;
mod doctor;
mod eval;
mod experiment;
mod explain;
mod gpu_check;
mod interrupt;
mod lines;
mod model;
mod play;
mod progress;
mod remote;
mod replay;
mod result;
mod rollout;
mod rules;
mod search;
mod server;
mod shop;
mod shop_r1;
mod site;
mod trace;
mod train;
mod validate;
mod watch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use webshop_training::Preset;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A deterministic WebShop and a small Qwen that learns to shop in it.
#[derive(Parser)]
#[command(version, max_term_width = 100, propagate_version = true)]
struct Cli {
    /// Worker threads; results do not depend on it [default: one per core]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Teach a model to shop: cloning, V*, A*-PO, with a report at the end
    Train(train::TrainArgs),
    /// Look on while a run, or a comparison of learners, is being made
    Watch(watch::WatchArgs),
    /// Tell whether a run on the CPU fits on this machine, and what it will take
    Doctor(doctor::DoctorArgs),
    /// Measure a checkpoint on held-out goals
    Eval(eval::EvalArgs),
    /// Let a policy shop and record its trips
    Rollout(Box<rollout::RolloutArgs>),
    /// Make recorded trips again and check that everything is as recorded
    Replay(replay::ReplayArgs),
    /// Tell recorded trips as training data, or record trips that such data tells of
    Convert(convert::ConvertArgs),
    /// Check that a catalog makes a shop that is fit to learn in
    Validate(validate::ValidateArgs),
    /// Set two results side by side, or learners over several seeds, if they are about the same
    Compare(compare::CompareArgs),
    /// Shop yourself, in the terminal
    Play(play::PlayArgs),
    /// Rank products for a query, with the reasons if asked
    Search(search::SearchArgs),
    /// Say what a purchase is worth for a goal, and why
    Explain(explain::ExplainArgs),
    /// Tell given trips as the original WebShop shows them, page by page
    Trace(trace::TraceArgs),
    /// Judge single next actions, as Shop-R1 does, or translate them
    #[command(name = "shop-r1", subcommand)]
    ShopR1(shop_r1::ShopR1Verb),
    /// Show what a GPU does here: kernels against their twins, speeds, memory
    #[command(hide = true)]
    GpuCheck(gpu_check::GpuCheckArgs),
    /// Make a catalog, or look at one
    #[command(subcommand)]
    Catalog(catalog::CatalogVerb),
    /// Make a model folder, look at one, or write one anew
    #[command(subcommand)]
    Model(model::ModelVerb),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info")))
        .with_writer(std::io::stderr)
        .without_time()
        .with_target(false)
        .init();
    match run(cli) {
        Ok(code) => code,
        Err(error) if answer::has_left(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", told(&error));
            ExitCode::from(2)
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    if let Some(threads) = cli.threads {
        rayon::ThreadPoolBuilder::new().num_threads(usize::from(threads)).build_global()?;
    }
    match cli.verb {
        Verb::Train(args) => train::run(args, Preset::Medium),
        Verb::Watch(args) => watch::run(args),
        Verb::Doctor(args) => doctor::run(args),
        Verb::Eval(args) => eval::run(args),
        Verb::Rollout(args) => rollout::run(*args),
        Verb::Replay(args) => replay::run(args),
        Verb::Convert(args) => convert::run(args),
        Verb::Validate(args) => validate::run(args),
        Verb::Compare(args) => compare::run(args),
        Verb::Play(args) => play::run(args),
        Verb::Search(args) => search::run(args),
        Verb::Explain(args) => explain::run(args),
        Verb::Trace(args) => trace::run(args),
        Verb::ShopR1(verb) => shop_r1::run(verb),
        Verb::GpuCheck(args) => gpu_check::run(args),
        Verb::Catalog(verb) => catalog::run(verb),
        Verb::Model(verb) => model::run(verb),
    }
}

/// The error and its causes on one line. A message that already ends with its cause's is not told twice.
fn told(error: &anyhow::Error) -> String {
    let mut told = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !told.ends_with(&cause) {
            told.push_str(": ");
            told.push_str(&cause);
        }
    }
    told
}
