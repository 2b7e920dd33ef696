//! `webshop convert`: exports recorded episodes as chat-format training data, and imports such data.

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use tempfile::TempPath;
use webshop_agent::convert::{ChatFileFormat, Exported, Exporter, Importer};
use webshop_agent::{Episode, PromptFormat};
use webshop_products::{PARTIAL, open_text};

use crate::args::shop::RuledShopArgs;
use crate::output::ensure_new;

/// Flags of `webshop convert`.
#[derive(clap::Args)]
pub(crate) struct ConvertArgs {
    /// With `--to`: recorded episodes, as `webshop rollout --out` writes them. With `--from`: chats, one per
    /// line. May be gzipped
    #[arg(value_name = "FILE.jsonl")]
    file: PathBuf,
    /// Export to this format: one line per episode, or one per turn if each turn has its own prompt
    /// (verl-agent, shop-r1)
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        required_unless_present = "from",
        conflicts_with = "from"
    )]
    to: Option<FormatArg>,
    /// Import from this format: replay the actions of each chat in the shop and record the episodes
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: Option<FormatArg>,
    /// Prompt format of the chats: compact, text, verl-agent, ragen, agentgym-react, tool-call, shop-r1,
    /// shop-r1-latest or shop-r1-minimal [default: that of the recorded episode; of agenttraj:
    /// agentgym-react]
    #[arg(long, value_name = "NAME")]
    prompt_format: Option<PromptFormat>,
    /// With `--from`: actions after which an episode is truncated [default: that of the line, else 15]
    #[arg(long, value_name = "N", requires = "from", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Write to this new file instead of standard output
    #[arg(long, value_name = "FILE.jsonl")]
    out: Option<PathBuf>,
    #[command(flatten)]
    shop: RuledShopArgs,
}

/// [`ChatFileFormat`] as a flag.
#[derive(clap::ValueEnum, Clone, Copy)]
enum FormatArg {
    /// OpenAI: `messages` with `role` and `content`
    Messages,
    /// ShareGPT: `conversations` with `from` and `value`
    Sharegpt,
    /// AgentGym's AgentTraj: ShareGPT with an `item_id`
    Agenttraj,
}

impl From<FormatArg> for ChatFileFormat {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Messages => Self::Messages,
            FormatArg::Sharegpt => Self::Sharegpt,
            FormatArg::Agenttraj => Self::Agenttraj,
        }
    }
}

/// Converts line by line, because the file may not fit into memory.
pub(crate) fn run(args: ConvertArgs) -> Result<ExitCode> {
    let input = open_text(&args.file)?;
    let out = LineWriter::new(args.out.as_deref())?;
    let shop = Arc::new(args.shop.open()?);
    let converted = match (args.to, args.from) {
        (Some(format), _) => export(input, &Exporter::new(shop, format.into(), args.prompt_format), out),
        (None, Some(format)) => {
            let importer = Importer::new(shop, format.into(), args.prompt_format, args.max_steps);
            import(input, importer, out)
        }
        (None, None) => unreachable!("clap requires one of the two"),
    };
    converted.with_context(|| format!("cannot convert `{}`", args.file.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn export(input: impl BufRead, exporter: &Exporter, mut out: LineWriter<'_>) -> Result<()> {
    let (mut n_episodes, mut skipped) = (0, Vec::new());
    for (idx, text) in input.lines().enumerate() {
        let (line, text) = (idx + 1, text?);
        if text.trim().is_empty() {
            continue;
        }
        n_episodes += 1;
        match exporter.export(&text, line)? {
            Exported::Lines(lines) => lines.iter().try_for_each(|line| out.write(line))?,
            Exported::Skipped(reason) => skipped.push(format!("line {line}: {reason}")),
        }
    }
    ensure!(n_episodes > 0, "the file holds no episode");
    if skipped.len() < n_episodes {
        out.finish()?;
    }
    if let Some(first) = skipped.first() {
        bail!(
            "{} of {n_episodes} episodes cannot be exported and are left out; the first: {first}",
            skipped.len()
        );
    }
    Ok(())
}

fn import(input: impl BufRead, mut importer: Importer, mut out: LineWriter<'_>) -> Result<()> {
    let mut n_episodes = 0;
    let mut record = |episode: Option<Episode>| {
        n_episodes += usize::from(episode.is_some());
        episode.map_or(Ok(()), |episode| out.write(&episode))
    };
    for (idx, text) in input.lines().enumerate() {
        let text = text?;
        if !text.trim().is_empty() {
            record(importer.import(&text, idx + 1)?)?;
        }
    }
    record(importer.end()?)?;
    ensure!(n_episodes > 0, "the file holds no episode");
    out.finish()
}

/// Writes JSON lines to standard output, or to a new file that is there only after [`LineWriter::finish`].
struct LineWriter<'a> {
    lines: BufWriter<Box<dyn Write>>,
    file: Option<(TempPath, &'a Path)>,
}

impl<'a> LineWriter<'a> {
    fn new(path: Option<&'a Path>) -> Result<Self> {
        let Some(path) = path else {
            return Ok(Self { lines: BufWriter::new(Box::new(stdout())), file: None });
        };
        let cannot_create = || format!("cannot create `{}`", path.display());
        ensure_new(path, "name another file with `--out`")?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let partial = path.with_file_name(format!("{PARTIAL}{}-{name}", std::process::id()));
        let file = File::create_new(&partial).with_context(cannot_create)?;
        Ok(Self {
            lines: BufWriter::new(Box::new(file)),
            file: Some((TempPath::try_from_path(partial)?, path)),
        })
    }

    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.lines, line)
            .map_err(io::Error::from)
            .and_then(|()| self.lines.write_all(b"\n"))?;
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.lines.flush()?;
        match self.file {
            Some((partial, path)) => {
                partial.persist_noclobber(path).with_context(|| format!("cannot create `{}`", path.display()))
            }
            None => Ok(()),
        }
    }
}
