//! `webshop replay`: replays recorded episodes and compares every turn; with `--html` it writes a page that shows them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use serde::Serialize;
use webshop_env::{Replay, replay_in};
use webshop_products::open_text;
use webshop_training::{TrainedModel, write_atomically};

use crate::args::shop::RuledShopArgs;
use crate::output::{ensure_new, outln};
use crate::recorded_shops::{RecordedShops, recordings};

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
    /// Page to create that shows the episodes step by step in a browser, as `webshop serve --replay` does: one HTML
    /// file that needs no server and loads nothing. It is not written if there is a difference
    #[arg(long, value_name = "PAGE.html")]
    html: Option<PathBuf>,
    /// Model whose tokenizer gives texts to the recorded tokens on the page: a run folder, a checkpoint in it, or a
    /// model folder
    #[arg(long, value_name = "DIR", requires = "html")]
    model: Option<PathBuf>,
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
    if let Some(page) = &args.html {
        ensure_new(page, "name another file with `--html`")?;
    }
    let file = open_text(&args.file)?;
    let shop = Arc::new(args.shop.open()?);
    let mut shops = RecordedShops::new(Arc::clone(&shop));
    let replay = replay_in(file, |generator| shops.of(generator));
    let replay = replay.with_context(|| format!("cannot replay `{}`", args.file.display()))?;
    let page = args.html.as_deref().filter(|_| replay.difference.is_none());
    if let Some(page) = page {
        write_page(page, &args, &mut shops)?;
    }
    let goal_fingerprint = shop.goals().fingerprint();
    if args.json {
        outln!("{}", serde_json::to_string(&Report { replay: &replay, goal_fingerprint })?)?;
    } else {
        match &replay.difference {
            Some(difference) => outln!("{difference}")?,
            None => outln!("{} episodes, {} turns: no difference", replay.episodes, replay.turns)?,
        }
        outln!("goals {goal_fingerprint}")?;
        if let Some(page) = page {
            outln!("page {}", page.display())?;
        }
    }
    Ok(ExitCode::from(u8::from(replay.difference.is_some())))
}

/// Writes the page that shows the episodes.
fn write_page(page: &Path, args: &ReplayArgs, shops: &mut RecordedShops) -> anyhow::Result<()> {
    let recordings = recordings(std::slice::from_ref(&args.file), shops)?;
    let tokenizer = args.model.as_deref().map(TrainedModel::load).transpose()?.map(|model| model.tokenizer);
    Ok(write_atomically(page, recordings.to_html(tokenizer.as_ref()).as_bytes())?)
}
