//! `webshop convert`: recorded trips as training data in the forms of the field, and back.

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use webshop_agent::convert::{Format, Listener, Teller, Told};
use webshop_agent::{Dialect, Episode};
use webshop_env::Shop;
use webshop_products::open_text;

use crate::shop::RuledShopArgs;

/// Flags of `webshop convert`.
#[derive(clap::Args)]
pub struct ConvertArgs {
    /// With `--to`, what `rollout --out` wrote; with `--from`, chats. Either may be gzipped
    #[arg(value_name = "FILE.jsonl")]
    file: PathBuf,
    /// Tell recorded trips so, a line a trip; a line a turn in `verl-agent` and `shop-r1`
    #[arg(long, value_enum, required_unless_present = "from", conflicts_with = "from")]
    to: Option<FormatArg>,
    /// Make the trips that are told so, and record them
    #[arg(long, value_enum)]
    from: Option<FormatArg>,
    /// In what words: plain, verl-agent, ragen, agentgym-react, tool-call, shop-r1 [default: those of the trip; from
    /// `agenttraj`, agentgym-react]
    #[arg(long, value_name = "NAME")]
    dialect: Option<Dialect>,
    /// With `--from`: actions after which a trip is cut [default: what a line says, or 15]
    #[arg(long, value_name = "N", requires = "from")]
    max_steps: Option<u32>,
    /// Write to this file instead of standard output; must not exist
    #[arg(long, value_name = "FILE.jsonl")]
    out: Option<PathBuf>,
    #[command(flatten)]
    shop: RuledShopArgs,
}

/// Formats, as the command line names them.
#[derive(clap::ValueEnum, Clone, Copy)]
enum FormatArg {
    /// OpenAI's messages
    Messages,
    /// ShareGPT's conversations
    Sharegpt,
    /// AgentGym's trajectories
    Agenttraj,
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Messages => Self::Messages,
            FormatArg::Sharegpt => Self::Sharegpt,
            FormatArg::Agenttraj => Self::Agenttraj,
        }
    }
}

/// Converts line by line, as there may be more trips than fit into memory.
pub fn run(args: ConvertArgs) -> Result<ExitCode> {
    let input = open_text(&args.file)?;
    let mut lines = Lines::new(args.out.as_deref())?;
    let shop = Arc::new(args.shop.open()?);
    let converted = match (args.to, args.from) {
        (Some(format), _) => tell(input, &Teller::new(shop, format.into(), args.dialect), &mut lines),
        (None, Some(format)) => {
            let listener = Listener::new(shop.clone(), format.into(), args.dialect, args.max_steps);
            hear(input, listener, &shop, &mut lines)
        }
        (None, None) => unreachable!("the parser wants one of the two"),
    };
    converted.with_context(|| format!("cannot convert `{}`", args.file.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn tell(input: impl BufRead, teller: &Teller, out: &mut Lines) -> Result<()> {
    let (mut n_trips, mut untold) = (0, Vec::new());
    for (at, text) in input.lines().enumerate() {
        let (line, text) = (at + 1, text?);
        if text.trim().is_empty() {
            continue;
        }
        n_trips += 1;
        match teller.tell(&text, line)? {
            Told::Lines(told) => told.iter().try_for_each(|told| out.write(told))?,
            Told::Nothing(reason) => untold.push(format!("line {line}: {reason}")),
        }
    }
    out.finish()?;
    match untold.first() {
        None if n_trips == 0 => bail!("there is no trip in it"),
        None => Ok(()),
        Some(first) => {
            bail!("{} of {n_trips} trips cannot be told and are left out; the first: {first}", untold.len())
        }
    }
}

fn hear(input: impl BufRead, mut listener: Listener, shop: &Shop, out: &mut Lines) -> Result<()> {
    let mut n_trips = 0;
    let mut record = |episode: Option<Episode>| {
        n_trips += usize::from(episode.is_some());
        episode.map_or(Ok(()), |episode| out.write(&episode.record(shop)))
    };
    for (at, text) in input.lines().enumerate() {
        let text = text?;
        if !text.trim().is_empty() {
            record(listener.hear(&text, at + 1)?)?;
        }
    }
    record(listener.end()?)?;
    out.finish()?;
    if n_trips == 0 {
        bail!("there is no trip in it");
    }
    Ok(())
}

/// Where lines go.
struct Lines(BufWriter<Box<dyn Write>>);

impl Lines {
    fn new(path: Option<&Path>) -> Result<Self> {
        let to: Box<dyn Write> = match path {
            None => Box::new(stdout()),
            Some(path) => Box::new(
                File::create_new(path).with_context(|| format!("cannot create `{}`", path.display()))?,
            ),
        };
        Ok(Self(BufWriter::new(to)))
    }

    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.0, line)
            .map_err(io::Error::from)
            .and_then(|()| self.0.write_all(b"\n"))?;
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(self.0.flush()?)
    }
}
