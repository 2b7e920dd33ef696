//! `webshop shop-r1 score`: computes the Shop-R1 reward of completions.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use webshop_agent::next_action::{NextAction, WrittenAction};
use webshop_evaluation::mean;
use webshop_evaluation::next_action::{
    Attempt, Exactness, RepoConfig, RewardConfig, ShopR1Breakdown, ShopR1Reward, Similarity, is_exact,
};
use webshop_products::read_fields;

use crate::jsonl;
use crate::output::outln;

/// Input and output formats, for `--help`.
const FORMAT: &str = "Reads one JSON object per line of standard input, with
  completion               the whole output of the model
  ground_truth             the recorded action: {\"type\", \"name\", \"text\"}
  rationale_token_dists    optional: the probabilities over the vocabulary at each rationale token,
  rationale_token_logits   or the logits before temperature
  cfg_overrides            optional: reward parameters that differ from the paper's
  prompt                   optional: text or messages, for `\"dars_kind\": \"repo_compat\"`
Prints the same object with
  breakdown  the parts of the reward, and `total`, their sum
  formula    the sum with its numbers, as text
  result     the parsed action, or the problem with the completion's format; similarities;
             self-certainty; whether the action is exact: search texts with a ROUGE-L above 0.75,
             of at least 0.75, or equal

An object with `\"suite\": \"repo\"` gets the reward of a public re-implementation of the paper, with the \
parameters in `config` and the self-certainty in `extras`.";

/// Flags of `webshop shop-r1 score`.
#[derive(clap::Args)]
#[command(after_help = FORMAT)]
pub(crate) struct ScoreArgs {
    /// Override a parameter of the paper's reward for all lines; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

/// An input line.
#[derive(Deserialize)]
struct Row {
    completion: String,
    ground_truth: NextAction,
    rationale_token_dists: Option<Vec<Vec<f64>>>,
    rationale_token_logits: Option<Vec<Vec<f32>>>,
    #[serde(default)]
    cfg_overrides: Map<String, Value>,
    prompt: Option<Prompt>,
    #[serde(default)]
    suite: Suite,
    #[serde(default)]
    config: RepoConfig,
    #[serde(default)]
    extras: Value,
}

/// The implementation of the reward.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Suite {
    #[default]
    Paper,
    Repo,
}

/// A prompt.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text, or a list of messages with `role` and `content`")]
enum Prompt {
    Text(String),
    Chat(Vec<Message>),
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: String,
}

impl Prompt {
    /// Number of words in the user's messages.
    fn n_words(&self) -> usize {
        let n_words = |text: &str| text.split_whitespace().count();
        match self {
            Self::Text(text) => n_words(text),
            Self::Chat(messages) => {
                let of_user = messages.iter().filter(|message| message.role == "user");
                of_user.map(|message| n_words(&message.content)).sum()
            }
        }
    }
}

/// `breakdown`.
#[derive(Serialize)]
struct Breakdown<'a> {
    #[serde(flatten)]
    parts: &'a ShopR1Breakdown,
    total: f64,
}

/// `result`.
#[derive(Serialize)]
struct ScoreResult<'a> {
    parsed: Option<&'a WrittenAction>,
    problem: Option<String>,
    sim_name: Option<f64>,
    sim_text: Option<f64>,
    self_certainty: Option<f64>,
    exact_match_soft_gt: bool,
    exact_match_soft_ge: bool,
    exact_match_string: bool,
}

/// Scores one line after the other.
pub(crate) fn run(args: ScoreArgs) -> Result<ExitCode> {
    let base = RewardConfig::paper().with(&read_overrides(&args.overrides)?)?;
    jsonl::for_each_in_stdin(|mut row: Value| {
        add_score(&mut row, &base)?;
        outln!("{row}")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Parses `KEY=VALUE`. A value that is not JSON is a string.
fn read_overrides(overrides: &[String]) -> Result<Map<String, Value>> {
    let read = |text: &String| {
        let (key, value) =
            text.split_once('=').with_context(|| format!("`{text}` is not of the form `KEY=VALUE`"))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        Ok((key.to_owned(), value))
    };
    overrides.iter().map(read).collect()
}

fn add_score(object: &mut Value, base: &RewardConfig) -> Result<()> {
    let row: Row = read_fields(&*object)?;
    let (reward, certainty) = match row.suite {
        Suite::Paper => {
            let reward = ShopR1Reward::Hierarchical(base.with(&row.cfg_overrides)?);
            let certainty = certainty(&reward, &row)?;
            (reward, certainty)
        }
        Suite::Repo => {
            row.config.validate()?;
            let certainty = row.config.certainty(&row.extras);
            (ShopR1Reward::RepoCompat(row.config.clone()), Some(certainty))
        }
    };
    let (completion, gold) = (&row.completion, &row.ground_truth);
    let n_prompt_words = row.prompt.as_ref().map_or(0, Prompt::n_words);
    let scored =
        reward.of(&Attempt { completion, gold, certainty: certainty.unwrap_or_default(), n_prompt_words });
    let exact = |exactness| is_exact(scored.action.as_ref(), gold, exactness);
    let result = ScoreResult {
        parsed: scored.action.as_ref(),
        problem: scored.problem.as_ref().map(ToString::to_string),
        sim_name: scored.sim_name.map(Similarity::ratio),
        sim_text: scored.sim_text.map(Similarity::ratio),
        self_certainty: certainty,
        exact_match_soft_gt: exact(Exactness::Soft),
        exact_match_soft_ge: exact(Exactness::SoftOrAt),
        exact_match_string: exact(Exactness::String),
    };
    object["breakdown"] = serde_json::to_value(Breakdown { parts: &scored, total: scored.total() })?;
    object["formula"] = scored.to_string().into();
    object["result"] = serde_json::to_value(result)?;
    Ok(())
}

/// Mean self-certainty over the tokens of the rationale; `None` if the line has neither distributions nor
/// logits.
fn certainty(reward: &ShopR1Reward, row: &Row) -> Result<Option<f64>> {
    let measure = reward.certainty();
    let place = |field, idx| move || format!("field `{field}[{idx}]`");
    let mut certainties = Vec::new();
    match (&row.rationale_token_dists, &row.rationale_token_logits) {
        (None, None) => return Ok(None),
        (Some(dists), None) => {
            for (idx, probabilities) in dists.iter().enumerate() {
                let certainty = measure.of_probabilities(probabilities);
                certainties.push(certainty.with_context(place("rationale_token_dists", idx))?);
            }
        }
        (None, Some(logits)) => {
            for (idx, logits) in logits.iter().enumerate() {
                let certainty = measure.of_logits(logits);
                certainties.push(certainty.with_context(place("rationale_token_logits", idx))?);
            }
        }
        (Some(_), Some(_)) => {
            bail!("give only one of `rationale_token_dists` and `rationale_token_logits`")
        }
    }
    Ok(Some(mean(&certainties)))
}
