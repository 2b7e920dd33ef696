//! `webshop replay`: replays recorded episodes and compares every turn.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use serde::Serialize;
use webshop_env::{Replay, replay_in};

use crate::args::shop::RuledShopArgs;
use crate::output::outln;
use crate::recorded_shops::RecordedShops;

/// Flags of `webshop replay`.
#[derive(clap::Args)]
#[command(
    after_help = "Compares observation, available actions, reward and state of every turn, and prints the \
                  first difference. The shop flags must be those of the recording; episodes in generated \
                  shops name their shop themselves.\n\n\
                  Exit codes: 0 no difference, 1 a difference, 2 the file is malformed or from another shop."
)]
pub(crate) struct ReplayArgs {
    /// Recorded episodes: the file of `webshop rollout --out`, or one under `episodes/` of a run folder
    #[arg(value_name = "FILE.jsonl")]
    file: PathBuf,
    #[command(flatten)]
    shop: RuledShopArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    replay: &'a Replay,
    goal_fingerprint: &'a str,
}

/// Replays the episodes and prints the first difference, if there is one.
pub(crate) fn run(args: ReplayArgs) -> anyhow::Result<ExitCode> {
    let file = File::open(&args.file).with_context(|| format!("cannot open `{}`", args.file.display()))?;
    let shop = Arc::new(args.shop.open()?);
    let mut shops = RecordedShops::new(Arc::clone(&shop));
    let replay = replay_in(BufReader::new(file), |generator| shops.of(generator));
    let replay = replay.with_context(|| format!("cannot replay `{}`", args.file.display()))?;
    let goal_fingerprint = shop.goals().fingerprint();
    if args.json {
        outln!("{}", serde_json::to_string(&Report { replay: &replay, goal_fingerprint })?)?;
    } else {
        match &replay.difference {
            Some(difference) => outln!("{difference}")?,
            None => outln!("{} episodes, {} turns: no difference", replay.episodes, replay.turns)?,
        }
        outln!("goals {goal_fingerprint}")?;
    }
    Ok(ExitCode::from(u8::from(replay.difference.is_some())))
}
