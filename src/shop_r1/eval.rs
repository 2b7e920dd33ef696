//! `webshop shop-r1 eval`: how often a model takes the step that was really taken, beside what needs no model.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use webshop_agent::shop_r1::Sample;
use webshop_agent::{Dialect, Policy, PromptStamp, RemoteInterviewer, Sampling};
use webshop_products::Seed;
use webshop_training::shop_r1::{
    ScoredRow, Verdict, baselines, by_type, confusion, instruction_of, judge, overview, scores_of,
};
use webshop_training::{Trained, write_atomically};

use super::steps::{Origin, StepArgs};
use crate::answer::answer;
use crate::compute::ComputeArgs;
use crate::progress::observer;
use crate::rollout::SpeechArgs;
use crate::server::ServerArgs;

/// What the figures are, for `--help`.
const FIGURES: &str = "Answers steps of visits that somebody else made, and prints how often, in percent, with intervals that hold the truth in 95 of 100 repetitions:
  exact         the whole action is right: type, name, and text of a search at a ROUGE-L over .75
  exact string  the same, with the text as it is
  type          the type is right
  macro F1      over the types, each counting the same
  weighted F1   the same by how frequent they are, which the paper calls F1
  invalid       nothing could be read
Beside the model stand always leaving, always buying, the action that these steps take most often, and a search for the instruction as it stands on the page. Without a model they are all there is.

`--out` keeps a row a step, which `webshop shop-r1 score` takes.";

/// From which intervals are drawn, so that they do not depend on how answers were.
const INTERVALS: Seed = Seed(0);

/// Flags of `webshop shop-r1 eval`.
#[derive(clap::Args)]
#[command(after_help = FIGURES)]
pub struct EvalArgs {
    /// A run folder, a checkpoint in it, or a model folder
    #[arg(long, value_name = "DIR", conflicts_with = "base_url")]
    checkpoint: Option<PathBuf>,
    #[command(flatten)]
    steps: StepArgs,
    /// What is asked [default: as the checkpoint was trained, if on single steps; else paper]
    #[arg(long, value_enum, value_name = "NAME")]
    prompt: Option<PromptArg>,
    #[command(flatten)]
    speech: SpeechArgs,
    /// Root of all randomness of the answers
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    #[command(flatten)]
    compute: ComputeArgs,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Write every step with the model's answer and the verdict on it to this file; must not exist
    #[arg(long, value_name = "FILE.jsonl")]
    out: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
}

/// Prompts, as the command line names them.
#[derive(clap::ValueEnum, Clone, Copy)]
enum PromptArg {
    /// The form of answers, and all pages
    Paper,
    /// The form of answers, and the present page
    Latest,
    /// The present page
    Minimal,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Table<'a> {
    steps: usize,
    origin: &'a Origin,
    model: Option<&'a Model>,
    rows: &'a [ScoredRow],
}

/// Who was asked.
#[derive(Serialize)]
struct Model {
    /// The server's address; none of a model of ours.
    url: Option<String>,
    /// Its name at the server, or the fingerprint of its weights.
    model: Option<String>,
    /// In what words it was asked.
    dialect: Dialect,
    prompt_version: String,
    /// How its answers were drawn.
    sampling: Option<Sampling>,
    /// Steps whose prompts leave no room for an answer.
    too_long: usize,
}

/// Who was asked, and what was answered at each step.
struct Asked {
    name: String,
    url: Option<String>,
    prompt: PromptStamp,
    completions: Vec<Option<String>>,
}

/// Asks, judges and prints.
pub fn run(args: EvalArgs) -> Result<ExitCode> {
    if let Some(out) = args.out.as_deref() {
        args.check_out(out)?;
    }
    let (steps, origin) = args.steps.read()?;
    let asked = args.ask(&steps)?;
    let pairs = steps.iter().map(|step| (&step.action, instruction_of(&step.page)));
    let mut rows = baselines(pairs, INTERVALS);
    if let Some(Asked { name, completions, .. }) = &asked {
        let verdicts = judge(&steps, completions);
        let scores = scores_of(&verdicts, INTERVALS);
        rows.insert(0, ScoredRow { name: name.clone(), answer: None, scores });
        if let Some(out) = &args.out {
            write(out, &verdicts)?;
        }
    }
    let model = asked.map(Model::from);
    let table = Table { steps: steps.len(), origin: &origin, model: model.as_ref(), rows: &rows };
    if args.json {
        answer!("{}", serde_json::to_string(&table)?)?
    } else {
        table.print()?
    }
    Ok(ExitCode::SUCCESS)
}

impl EvalArgs {
    /// Before anything is computed for nothing.
    fn check_out(&self, out: &Path) -> Result<()> {
        if self.checkpoint.is_none() && self.server.base_url.is_none() {
            bail!("`--out` keeps what a model answers; name one with `--checkpoint` or `--base-url`");
        }
        if out.exists() {
            bail!("`{}` is there already; name another file with `--out`", out.display());
        }
        Ok(())
    }

    /// Asks the model, if one is named.
    fn ask(&self, steps: &[Sample]) -> Result<Option<Asked>> {
        let dialect = self.prompt.map(Dialect::from);
        let served = dialect.unwrap_or(Dialect::ShopR1);
        if let Some((endpoint, config)) = self.server.asking(&self.speech, served, self.seed)? {
            let (url, name) = (endpoint.url().to_owned(), config.model.clone());
            let interviewer = RemoteInterviewer::new(endpoint, config)?;
            let completions = observed(steps, |ended| Ok(interviewer.answers(steps, ended)?))?;
            return Ok(Some(Asked { name, url: Some(url), prompt: interviewer.prompt(), completions }));
        }
        let Some(checkpoint) = &self.checkpoint else { return Ok(None) };
        let cannot_ask = || format!("cannot ask the model of `{}` about single steps", checkpoint.display());
        let trained = Trained::load(checkpoint)?;
        let own = Some(trained.dialect()).filter(|dialect| dialect.is_shop_r1());
        let manners = self.speech.manners(dialect.or(own).or(Some(Dialect::ShopR1)));
        let shopper = trained.into_shopper(manners, &self.compute.choose()?).with_context(cannot_ask)?;
        let seed = Seed(self.seed);
        let prompt = shopper.policy(seed)?.prompt().expect("language models have prompts");
        let completions = observed(steps, |ended| Ok(shopper.answers(steps, seed, ended)?))?;
        Ok(Some(Asked { name: checkpoint.display().to_string(), url: None, prompt, completions }))
    }
}

/// What `ask` answers, with its progress told.
fn observed(
    steps: &[Sample],
    ask: impl FnOnce(&dyn Fn(u64)) -> Result<Vec<Option<String>>>,
) -> Result<Vec<Option<String>>> {
    let observer = observer();
    observer.begin("steps", steps.len() as u64, 0);
    let answers = ask(&|n| observer.advance(n, ""));
    observer.end();
    answers
}

/// Writes a row for each verdict, all or none.
fn write(path: &Path, verdicts: &[Verdict]) -> Result<()> {
    let mut rows = String::new();
    for verdict in verdicts {
        rows += &serde_json::to_string(verdict)?;
        rows.push('\n');
    }
    Ok(write_atomically(path, rows.as_bytes())?)
}

impl From<Asked> for Model {
    fn from(asked: Asked) -> Self {
        let PromptStamp { dialect, version, model, sampling } = asked.prompt;
        Self {
            url: asked.url,
            model: model.map(|name| name.to_string()),
            dialect,
            prompt_version: version.to_string(),
            sampling,
            too_long: asked.completions.iter().filter(|completion| completion.is_none()).count(),
        }
    }
}

impl From<PromptArg> for Dialect {
    fn from(prompt: PromptArg) -> Self {
        match prompt {
            PromptArg::Paper => Self::ShopR1,
            PromptArg::Latest => Self::ShopR1Latest,
            PromptArg::Minimal => Self::ShopR1Minimal,
        }
    }
}

impl Table<'_> {
    fn print(&self) -> Result<()> {
        answer!("{} steps: {}\n", self.steps, self.origin)?;
        answer!("{}", overview(self.rows).text())?;
        for (row, action) in self.rows.iter().filter_map(|row| Some((row, row.answer.as_ref()?))) {
            answer!("{}: {action}", row.name)?;
        }
        let (Some(model), Some(row)) = (self.model, self.rows.first()) else { return Ok(()) };
        answer!("\n{}: {}\n", row.name, model.told())?;
        answer!("{}\n{}", by_type(&row.scores).text(), confusion(&row.scores).text().trim_end())
    }
}

impl Model {
    /// How it was asked, on a line.
    fn told(&self) -> String {
        let mut told = format!("prompt {}", self.prompt_version);
        if let Some(Sampling { temperature, seed, .. }) = self.sampling {
            told += &format!(", temperature {temperature}, seed {seed}");
        }
        if self.too_long > 0 {
            told += &format!("; {} prompts leave no room for an answer and count as invalid", self.too_long);
        }
        told
    }
}
