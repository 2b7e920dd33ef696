//! `webshop shop-r1 eval`: evaluates a model on single-step examples, next to baselines that need no model.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use webshop_agent::next_action::Example;
use webshop_agent::{Policy, PromptFormat, PromptProvenance, Sampling, ShopR1Variant};
use webshop_evaluation::next_action::{
    ScoredRow, StepResult, baselines, by_type, confusion, instruction_of, overview, score_steps, scores_of,
};
use webshop_products::Seed;
use webshop_remote::RemoteSingleStepSampler;
use webshop_training::config::Config;
use webshop_training::{TrainedModel, write_atomically};

use crate::args::compute::ComputeArgs;
use crate::args::episodes::SamplingArgs;
use crate::args::examples::{ExamplesArgs, Origin};
use crate::args::server::ServerArgs;
use crate::output::{ensure_new, json_lines, outln};
use crate::progress::observer;

/// The metrics, for `--help`.
const METRICS: &str =
    "The model predicts the next action of each example. Prints, in percent with 95 % confidence \
intervals:
  exact         the whole action is correct: type, name, and a search text with a ROUGE-L above 0.75
  exact string  the same, with an equal search text
  type          the action type is correct
  macro F1      mean F1 over the action types
  weighted F1   F1 over the action types, weighted by their frequency; the paper's F1
  invalid       the completion cannot be parsed
The baselines always terminate, always buy, repeat the most frequent action of the examples, or search for \
the instruction of the page. Without a model, only these are printed.

`--out` writes one JSON object per example, which `webshop shop-r1 score` reads.";

/// Seed of the bootstrap intervals, independent of the seed of the completions.
const INTERVAL_SEED: Seed = Seed(0);

/// Flags of `webshop shop-r1 eval`.
#[derive(clap::Args)]
#[command(after_help = METRICS)]
pub(crate) struct EvalArgs {
    /// Model to evaluate: a run folder, a checkpoint in it, or a model folder. The shop, its goals and the mix of examples are
    /// those of the run, where the flags name no others
    #[arg(long, value_name = "DIR", conflicts_with = "base_url")]
    checkpoint: Option<PathBuf>,
    #[command(flatten)]
    examples: ExamplesArgs,
    /// Prompt format [default: that of the checkpoint if it was trained on single steps, else shop-r1]
    #[arg(long, value_enum, value_name = "NAME")]
    prompt_format: Option<PromptFormatArg>,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// Seed of the completions
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    #[command(flatten)]
    compute: ComputeArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Write each example with the model's completion and its score to this new file
    #[arg(long, value_name = "FILE.jsonl")]
    out: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
}

/// The single-step prompt formats.
#[derive(clap::ValueEnum, Clone, Copy)]
enum PromptFormatArg {
    /// The paper's: instructions on the format of completions, all pages and actions so far
    #[value(name = "shop-r1")]
    Paper,
    /// Instructions on the format of completions, all actions so far, only the current page
    #[value(name = "shop-r1-latest")]
    Latest,
    /// All actions so far and the current page, without instructions
    #[value(name = "shop-r1-minimal")]
    Minimal,
}

impl From<PromptFormatArg> for PromptFormat {
    fn from(arg: PromptFormatArg) -> Self {
        match arg {
            PromptFormatArg::Paper => Self::ShopR1(ShopR1Variant::AllPages),
            PromptFormatArg::Latest => Self::ShopR1(ShopR1Variant::LatestPage),
            PromptFormatArg::Minimal => Self::ShopR1(ShopR1Variant::Minimal),
        }
    }
}

/// Evaluates and prints.
pub(crate) fn run(args: EvalArgs) -> Result<ExitCode> {
    if let Some(out) = args.out.as_deref() {
        args.check_out(out)?;
    }
    let model = args.checkpoint.as_deref().map(TrainedModel::load).transpose()?;
    let run = model.as_ref().map_or_else(Config::default, |model| model.config.clone());
    let (examples, origin) = args.examples.read(&run)?;
    let completed = args.complete(model, &examples)?;
    let pairs = examples.iter().map(|example| (&example.action, instruction_of(&example.page)));
    let mut rows = baselines(pairs, INTERVAL_SEED);
    if let Some(Completed { name, completions, .. }) = &completed {
        let results = score_steps(&examples, completions);
        let scores = scores_of(&results, INTERVAL_SEED);
        rows.insert(0, ScoredRow { name: name.clone(), action: None, scores });
        if let Some(out) = &args.out {
            write(out, &results)?;
        }
    }
    let model = completed.map(ModelInfo::from);
    let report = Report { examples: examples.len(), origin: &origin, model: model.as_ref(), rows: &rows };
    if args.json {
        outln!("{}", serde_json::to_string(&report)?)?;
    } else {
        report.print()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A model and its completion of each example.
struct Completed {
    name: String,
    url: Option<String>,
    prompt: PromptProvenance,
    /// `None` if the prompt leaves no room for a completion.
    completions: Vec<Option<String>>,
}

impl EvalArgs {
    /// Refuses an unusable `--out` before anything is computed.
    fn check_out(&self, out: &Path) -> Result<()> {
        if self.checkpoint.is_none() && self.server.base_url.is_none() {
            bail!("`--out` needs a model; name one with `--checkpoint` or `--base-url`");
        }
        ensure_new(out, "name another file with `--out`")
    }

    /// Refuses flags that the named model, if any, does not use.
    fn check_flags(&self) -> Result<()> {
        let format = self.prompt_format.map(|_| "--prompt-format");
        let of_model = format.or_else(|| self.sampling.given());
        if let Some(flag) = of_model.filter(|_| self.checkpoint.is_none() && self.server.base_url.is_none()) {
            bail!("`{flag}` needs a model; name one with `--checkpoint` or `--base-url`");
        }
        match self.compute.given().filter(|_| self.checkpoint.is_none()) {
            Some(flag) => bail!("`{flag}` needs a local model; name one with `--checkpoint`"),
            None => Ok(()),
        }
    }

    /// The completions of the local model or of the one behind a server; `None` if neither is named.
    fn complete(&self, local: Option<TrainedModel>, examples: &[Example]) -> Result<Option<Completed>> {
        let format = self.prompt_format.map(PromptFormat::from);
        let remote_format = format.unwrap_or(PromptFormat::ShopR1(ShopR1Variant::AllPages));
        self.check_flags()?;
        if let Some((endpoint, config)) = self.server.requests(&self.sampling, remote_format, self.seed)? {
            let (url, name) = (endpoint.url().to_owned(), config.model.clone());
            let sampler = RemoteSingleStepSampler::new(endpoint, config)?;
            let completions = with_progress(examples, |advance| Ok(sampler.sample(examples, advance)?))?;
            return Ok(Some(Completed { name, url: Some(url), prompt: sampler.prompt(), completions }));
        }
        let (Some(checkpoint), Some(trained)) = (&self.checkpoint, local) else { return Ok(None) };
        let cannot_use =
            || format!("cannot evaluate the model of `{}` on single steps", checkpoint.display());
        let own_format = Some(trained.prompt_format()).filter(|format| format.is_shop_r1());
        let options = self
            .sampling
            .options(format.or(own_format).or(Some(PromptFormat::ShopR1(ShopR1Variant::AllPages))));
        let loaded = trained.into_policy(options, &self.compute.choose()?).with_context(cannot_use)?;
        let seed = Seed(self.seed);
        let prompt = loaded.policy(seed)?.prompt().expect("language models have prompts");
        let completions =
            with_progress(examples, |advance| Ok(loaded.complete_steps(examples, seed, advance)?))?;
        Ok(Some(Completed { name: checkpoint.display().to_string(), url: None, prompt, completions }))
    }
}

/// Calls `complete` with a function that advances a progress bar over the examples.
fn with_progress(
    examples: &[Example],
    complete: impl FnOnce(&dyn Fn(u64)) -> Result<Vec<Option<String>>>,
) -> Result<Vec<Option<String>>> {
    let observer = observer();
    observer.begin("examples", examples.len() as u64, 0);
    let completions = complete(&|n| observer.advance(n, ""));
    observer.end();
    completions
}

/// Writes one line per example; the file appears only when it is complete.
fn write(path: &Path, results: &[StepResult]) -> Result<()> {
    Ok(write_atomically(path, &json_lines(results)?)?)
}

/// The output of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    /// Number of examples.
    examples: usize,
    origin: &'a Origin,
    model: Option<&'a ModelInfo>,
    rows: &'a [ScoredRow],
}

/// The model and how it was prompted.
#[derive(Serialize)]
struct ModelInfo {
    /// Address of the server; `None` for a local model.
    url: Option<String>,
    /// Its name at the server, or the digest of its weights.
    model: Option<String>,
    prompt_format: PromptFormat,
    prompt_version: String,
    sampling: Option<Sampling>,
    /// Number of examples whose prompt leaves no room for a completion.
    too_long: usize,
}

impl From<Completed> for ModelInfo {
    fn from(completed: Completed) -> Self {
        let PromptProvenance { prompt_format, version, model, sampling } = completed.prompt;
        Self {
            url: completed.url,
            model: model.map(|name| name.to_string()),
            prompt_format,
            prompt_version: version.to_string(),
            sampling,
            too_long: completed.completions.iter().filter(|completion| completion.is_none()).count(),
        }
    }
}

impl Report<'_> {
    fn print(&self) -> Result<()> {
        outln!("{} examples from {}\n", self.examples, self.origin)?;
        outln!("{}", overview(self.rows).text())?;
        for (row, action) in self.rows.iter().filter_map(|row| Some((row, row.action.as_ref()?))) {
            outln!("{}: {action}", row.name)?;
        }
        let (Some(model), Some(row)) = (self.model, self.rows.first()) else { return Ok(()) };
        outln!("\n{}: {}\n", row.name, model.summary())?;
        outln!("{}\n{}", by_type(&row.scores).text(), confusion(&row.scores).text().trim_end())
    }
}

impl ModelInfo {
    /// Prompt format and sampling parameters on one line.
    fn summary(&self) -> String {
        let mut line = format!("prompt {}", self.prompt_version);
        if let Some(Sampling { temperature, seed, .. }) = self.sampling {
            line += &format!(", temperature {temperature}, seed {seed}");
        }
        if self.too_long > 0 {
            line +=
                &format!("; {} prompts leave no room for a completion and count as invalid", self.too_long);
        }
        line
    }
}
