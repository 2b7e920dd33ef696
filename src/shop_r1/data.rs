//! `webshop shop-r1 data`: builds a data set of single-step examples.

use std::fs;
use std::io::{BufRead, Read, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use webshop_agent::next_action::{BuyNowAs, Example, ExampleCounts, paper_mix};
use webshop_products::{Seed, open_text};
use webshop_training::TaskSet;

use super::rationales;
use crate::args::examples::MixArg;
use crate::args::shop::{RuledShopArgs, SplitArg};
use crate::output::{CANNOT_WRITE, ensure_new, json_lines, outln};
use webshop_agent::next_action::{CollectionOptions, ExampleCollector, TerminateShare};

/// Default number of expert or oracle episodes.
const DEFAULT_EPISODES: usize = 300;

/// Flags of `webshop shop-r1 data`.
#[derive(clap::Args)]
pub(crate) struct DataArgs {
    /// Source of the examples
    #[arg(long, value_enum, default_value = "demonstrations", value_name = "SOURCE")]
    from: Source,
    /// Input of `--from episodes`: the file of `webshop rollout --out`. Input of `--from human`: a file or a
    /// folder of session logs of the original's web site, its imitation-learning data, or AgentGym's
    /// trajectories. May be gzipped
    #[arg(long, value_name = "FILE|DIR", required_if_eq_any([("from", "episodes"), ("from", "human")]))]
    input: Option<PathBuf>,
    /// Keep only examples for goals of this split
    #[arg(long, value_enum, default_value = "train")]
    split: SplitArg,
    /// Maximum number of episodes: of the split's fixed order, or from the start of the input [default: 300,
    /// or the whole input]
    #[arg(long, value_name = "N")]
    episodes: Option<usize>,
    /// Share of `terminate` examples among all, at least 0 and below 1: result pages for another goal's
    /// query, without a product worth buying
    #[arg(long, default_value_t = 0.1, value_name = "SHARE", value_parser = share)]
    terminate_share: f64,
    /// Proportions of the action types
    #[arg(long, value_enum, default_value = "natural")]
    mix: MixArg,
    /// Action that stands for a purchase
    #[arg(long, value_enum, default_value = "click", value_name = "ACTION")]
    buy_now_as: BuyNowArg,
    /// Replace template rationales by a model's: completions for the same examples, as `webshop shop-r1 eval
    /// --out` writes them. A completion with the wrong action is ignored
    #[arg(long, value_name = "FILE.jsonl")]
    rationales: Option<PathBuf>,
    /// Seed of the searches of `terminate` examples, and of the examples that `--mix paper` leaves out
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Write to this new file instead of standard output; it appears only when it is complete
    #[arg(long, value_name = "FILE.jsonl")]
    out: Option<PathBuf>,
    #[command(flatten)]
    shop: RuledShopArgs,
}

/// The source of examples.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq)]
enum Source {
    /// Episodes of the scripted expert, with its written thoughts
    Demonstrations,
    /// Episodes of the policy `oracle`
    Oracle,
    /// Recorded episodes with reward 1
    Episodes,
    /// Recorded sessions of people
    Human,
}

/// [`BuyNowAs`] as a flag.
#[derive(clap::ValueEnum, Clone, Copy)]
enum BuyNowArg {
    /// A click on `buy now`
    Click,
    /// `terminate`, the same as leaving without a purchase
    Terminate,
}

impl From<BuyNowArg> for BuyNowAs {
    fn from(arg: BuyNowArg) -> Self {
        match arg {
            BuyNowArg::Click => Self::Click,
            BuyNowArg::Terminate => Self::Terminate,
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..1.0).contains(&share) { Ok(share) } else { Err("a share is at least 0 and below 1".into()) }
}

/// Collects the examples, writes them, and prints their counts.
pub(crate) fn run(args: DataArgs) -> Result<ExitCode> {
    if let Some(out) = &args.out {
        ensure_new(out, "name another file with `--out`")?;
    }
    let (mut examples, mut notes) = args.collect()?;
    if let Some(file) = &args.rationales {
        let n = rationales::replace(&mut examples, file)?;
        notes.push(format!("rationales by a model: {n} of {}", examples.len()));
    }
    if let MixArg::Paper = args.mix {
        examples = paper_mix(examples, Seed(args.seed));
    }
    if examples.is_empty() {
        notes.insert(0, "there is no example to write".into());
        bail!(notes.join("; "));
    }
    write(&examples, args.out.as_deref())?;
    notes.insert(0, ExampleCounts::of(&examples).to_string());
    let notes = notes.join("\n");
    match args.out {
        Some(_) => outln!("{notes}")?,
        None => eprintln!("{notes}"),
    }
    Ok(ExitCode::SUCCESS)
}

impl DataArgs {
    /// The examples of the source, `terminate` examples last, and a line for each reason why something was
    /// left out.
    fn collect(&self) -> Result<(Vec<Example>, Vec<String>)> {
        let task_set = TaskSet::of_shop(self.shop.open()?);
        let options = CollectionOptions {
            split: self.split.into(),
            max_episodes: self.episodes,
            buy_now_as: self.buy_now_as.into(),
        };
        let goals = || task_set.held_out(options.split, self.episodes.unwrap_or(DEFAULT_EPISODES));
        let mut collector = ExampleCollector::new(task_set.shop(), options);
        let takes_input = matches!(self.from, Source::Episodes | Source::Human);
        ensure!(takes_input || self.input.is_none(), "`--input` needs `--from episodes` or `--from human`");
        match self.from {
            Source::Demonstrations => collector.add_expert_episodes(&goals()),
            Source::Oracle => collector.add_oracle_episodes(&goals())?,
            Source::Episodes => add_recorded_episodes(&mut collector, self.input()?)?,
            Source::Human => add_human_sessions(&mut collector, self.input()?)?,
        }
        let share = match self.mix {
            MixArg::Natural => TerminateShare::Of(self.terminate_share),
            MixArg::Paper => TerminateShare::PaperMix,
        };
        collector.add_terminate_examples(share, &goals(), Seed(self.seed));
        let left_out = collector.left_out();
        Ok((collector.into_examples(), left_out))
    }

    fn input(&self) -> Result<&Path> {
        self.input.as_deref().context("this source needs `--input`")
    }
}

fn add_recorded_episodes(collector: &mut ExampleCollector<'_>, file: &Path) -> Result<()> {
    let cannot_read = || format!("cannot read the episodes of `{}`", file.display());
    for (idx, text) in open_text(file)?.lines().enumerate() {
        let text = text.with_context(cannot_read)?;
        if text.trim().is_empty() {
            continue;
        }
        if collector.is_full() {
            break;
        }
        collector.add_recorded_episode(&text, idx + 1).with_context(cannot_read)?;
    }
    Ok(())
}

fn add_human_sessions(collector: &mut ExampleCollector<'_>, input: &Path) -> Result<()> {
    for file in files(input)? {
        let path = file.display().to_string();
        let cannot_read = || format!("cannot read the sessions of `{path}`");
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let mut text = String::new();
        open_text(&file)?.read_to_string(&mut text).with_context(cannot_read)?;
        collector.add_human_sessions(&path, &name, &text).with_context(cannot_read)?;
        if collector.is_full() {
            break;
        }
    }
    Ok(())
}

/// A file, or the files of a folder by name.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let cannot_read = || format!("cannot read the folder `{}`", path.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(path).with_context(cannot_read)? {
        let file = entry.with_context(cannot_read)?.path();
        files.extend(file.is_file().then_some(file));
    }
    files.sort();
    ensure!(!files.is_empty(), "there is no file in the folder `{}`", path.display());
    Ok(files)
}

/// Writes one line per example, to a new file or to standard output.
fn write(examples: &[Example], out: Option<&Path>) -> Result<()> {
    let lines = json_lines(examples)?;
    match out {
        None => stdout().write_all(&lines).context(CANNOT_WRITE),
        Some(out) => Ok(webshop_training::write_atomically(out, &lines)?),
    }
}
