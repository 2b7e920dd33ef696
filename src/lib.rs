//! `webshop`: the command line of the environment, the agent and the trainer.
//!
//! A library, because two programs have it: the binary in `main.rs` and the Python package.
//!
//! One file per command. A command parses its flags (`args` holds those that several commands share), calls the
//! libraries, and prints: data on stdout, logs and progress on stderr. No algorithm lives here. Exit codes:
//! 0 done, 1 a check found a difference, 2 error, 130 interrupted after a checkpoint was written.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout)]

mod args;
mod arguments;
mod ctrl_c;
mod errors;
mod jsonl;
mod output;
mod progress;
mod recorded_shops;
mod result_file;

mod catalog;
mod compare;
mod convert;
mod doctor;
mod eval;
mod explain;
mod health;
mod mcp;
mod merge;
mod model;
mod play;
mod replay;
mod rollout;
mod search;
mod serve;
mod shop_r1;
mod trace;
mod train;
mod validate;
mod watch;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use webshop_training::RolloutWorkers;
use webshop_training::config::Preset;

/// Printed below the list of commands.
const EXAMPLES: &str = "Examples:
  webshop play                                   complete an episode yourself
  webshop rollout --policy rule                  baseline: a scripted policy on test goals
  webshop train --preset quick --out runs/first  train a small model on the CPU, in minutes
  webshop eval --checkpoint runs/first           evaluate it on test goals

`webshop COMMAND --help` lists its flags. Set RUST_LOG=debug for more log messages.";

/// What is logged unless `RUST_LOG` says otherwise. rmcp logs every message of a client, and every error that it is sent
/// as one of the server's.
const LOG: &str = "info,rmcp=off";

/// A deterministic WebShop environment, and language-model agents trained in it with A*-PO
#[derive(Parser)]
#[command(version, max_term_width = 100, propagate_version = true, after_help = EXAMPLES)]
struct Cli {
    /// Number of worker threads; results do not depend on it [default: one per core]
    #[arg(long, global = true, display_order = 900, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a model: supervised warm start, then reinforcement learning (A*-PO by default), and a report
    Train(train::TrainArgs),
    /// Show the progress of a training run, or of a comparison, in the terminal
    Watch(watch::WatchArgs),
    /// Estimate the memory that a training run needs, on the CPU or on a GPU
    Doctor(doctor::DoctorArgs),
    /// Evaluate a trained model on held-out goals
    Eval(eval::EvalArgs),
    /// Run episodes with a policy, print their statistics, and record them
    Rollout(Box<rollout::RolloutArgs>),
    /// Put the files of `rollout --shard` together, as one rollout would have written them
    Merge(merge::MergeArgs),
    /// Replay recorded episodes and check that every observation and reward is as recorded
    Replay(replay::ReplayArgs),
    /// Export recorded episodes as chat-format training data, or import such data as episodes
    Convert(convert::ConvertArgs),
    /// Check the environment on a catalog: determinism, replay, rewards, hidden information
    Validate(validate::ValidateArgs),
    /// Compare two evaluation results, or train and compare several losses over several seeds
    Compare(compare::CompareArgs),
    /// Serve the shop on a port: REST, OpenEnv, AgentGym, MCP, and the original's web site; and a model, as OpenAI's
    Serve(Box<serve::ServeArgs>),
    /// Check whether a running server is healthy
    Health(health::HealthArgs),
    /// Serve one episode to an MCP client over standard input and output
    Mcp(mcp::McpArgs),
    /// Complete an episode yourself, in the terminal
    Play(play::PlayArgs),
    /// Run the shop's search engine on a query, with the BM25 terms of each score if wanted
    Search(search::SearchArgs),
    /// Show how the reward of a purchase is computed
    Explain(explain::ExplainArgs),
    /// Run scripted episodes under the original WebShop's rules and print its observations
    Trace(trace::TraceArgs),
    /// Predict single next actions, as in the paper Shop-R1: data, training, evaluation
    #[command(name = "shop-r1", subcommand)]
    ShopR1(shop_r1::ShopR1Command),
    /// Generate or inspect a product catalog
    #[command(subcommand)]
    Catalog(catalog::CatalogCommand),
    /// Create, inspect, merge or convert a model folder
    #[command(subcommand)]
    Model(model::ModelCommand),
}

/// Runs the command that the arguments name, of which the first is the name of the program. Once in a process: logs, and a
/// given number of threads, are the process's. A second command ends with 2; wrong usage does not count.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    answer(arguments, None)
}

/// Like [`main`], for the command `train` alone, whose training episodes `workers` make.
pub fn train_with_workers(arguments: Vec<OsString>, workers: &dyn RolloutWorkers) -> ExitCode {
    answer(arguments, Some(workers))
}

fn answer(arguments: Vec<OsString>, workers: Option<&dyn RolloutWorkers>) -> ExitCode {
    let code = match Cli::try_parse_from(&arguments) {
        Ok(cli) => match arguments::keep(arguments) {
            Ok(()) => parsed(cli, workers),
            Err(error) => failed(&error),
        },
        Err(usage) => match usage.print() {
            Ok(()) => ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2)),
            Err(_) => ExitCode::from(2),
        },
    };
    // Rust's own runtime flushes it only in a program of Rust's.
    match std::io::stdout().flush() {
        Ok(()) => code,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => code,
        Err(_) => ExitCode::from(2),
    }
}

fn parsed(cli: Cli, workers: Option<&dyn RolloutWorkers>) -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOG)))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .without_time()
        .with_target(false)
        .init();
    match run(cli, workers) {
        Ok(code) => code,
        Err(error) if output::is_closed_by_reader(&error) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {}", errors::one_line(error));
    ExitCode::from(2)
}

fn run(cli: Cli, workers: Option<&dyn RolloutWorkers>) -> anyhow::Result<ExitCode> {
    if let Some(threads) = cli.threads {
        rayon::ThreadPoolBuilder::new().num_threads(usize::from(threads)).build_global()?;
    }
    match cli.command {
        Command::Train(args) => train::run(args, Preset::Medium, workers),
        _ if workers.is_some() => anyhow::bail!("rollout workers make episodes for `train` only"),
        Command::Watch(args) => watch::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Eval(args) => eval::run(args),
        Command::Rollout(args) => rollout::run(*args),
        Command::Merge(args) => merge::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Convert(args) => convert::run(args),
        Command::Validate(args) => validate::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Serve(args) => serve::run(*args),
        Command::Health(args) => health::run(args),
        Command::Mcp(args) => mcp::run(args),
        Command::Play(args) => play::run(args),
        Command::Search(args) => search::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Trace(args) => trace::run(args),
        Command::ShopR1(command) => shop_r1::run(command),
        Command::Catalog(command) => catalog::run(command),
        Command::Model(command) => model::run(command),
    }
}
