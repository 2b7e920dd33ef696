//! `webshop replay`: recorded trips are made again and compared.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use serde::Serialize;
use webshop_env::{Replay, ReplayError, TripError, replay};

use crate::answer::answer;
use crate::shop::RuledShopArgs;

/// Flags of `webshop replay`.
#[derive(clap::Args)]
#[command(
    after_help = "Of every turn the observation, the list of actions, the reward and the state are compared, and \
                  the first difference is shown. The shop must be the one of the recording.\n\n\
                  Exit codes: 0 all as recorded, 1 something differs, 2 the file or the shop is a wrong one."
)]
pub struct ReplayArgs {
    /// What `webshop rollout --out` wrote, or a run wrote under `episodes/`
    #[arg(value_name = "FILE.jsonl")]
    file: PathBuf,
    #[command(flatten)]
    shop: RuledShopArgs,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    replay: &'a Replay,
    goal_fingerprint: &'a str,
}

/// Makes the trips again and says whether all is as it was.
pub fn run(args: ReplayArgs) -> anyhow::Result<ExitCode> {
    let file = File::open(&args.file).with_context(|| format!("cannot open `{}`", args.file.display()))?;
    let shop = Arc::new(args.shop.open()?);
    let replay = replay(BufReader::new(file), &shop).map_err(|error| refusal(&args.file, error))?;
    let goal_fingerprint = shop.goals().fingerprint();
    if args.json {
        answer!("{}", serde_json::to_string(&Answer { replay: &replay, goal_fingerprint })?)?;
    } else {
        match &replay.difference {
            Some(difference) => answer!("{difference}")?,
            None => answer!("{} trips, {} turns: all as recorded", replay.trips, replay.turns)?,
        }
        answer!("goals {goal_fingerprint}")?;
    }
    Ok(ExitCode::from(u8::from(replay.difference.is_some())))
}

/// Why a file was not judged, and what to do where the flags are to blame.
fn refusal(file: &Path, error: ReplayError) -> anyhow::Error {
    let hint = match error {
        ReplayError::Trip { problem: TripError::OtherShop { what: "goals", .. }, .. } => {
            " here; the shop of the recording is named by `--catalog`, `--size`, `--goals` and `--compat`"
        }
        _ => "",
    };
    anyhow::Error::from(error).context(format!("cannot replay `{}`{hint}", file.display()))
}
