//! `webshop shop-r1 score`: what answers are worth.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use webshop_agent::shop_r1::{NextAction, WrittenAction};
use webshop_training::mean;
use webshop_training::shop_r1::{
    Attempt, Exactness, RepoConfig, RewardConfig, ShopR1Breakdown, ShopR1Reward, Similarity, is_exact,
};

use crate::answer::answer;
use crate::lines;

/// What is read and written, for `--help`.
const LINES: &str = "Standard input holds a row a line, as a JSON object with
  completion               all that the model wrote
  ground_truth             what the customer did: {\"type\", \"name\", \"text\"}
  rationale_token_dists    distributions over all ids behind the tokens of the rationale, if known,
  rationale_token_logits   or their logits before temperature
  cfg_overrides            keys of the reward that differ from the published one
  prompt                   a text or messages, for `\"dars_kind\": \"repo_compat\"`
Each is answered by the same row with `breakdown`, whose parts sum to its `total`; `formula`, which is the sum with its numbers; and `judged`: the action as it was read or what is wrong with the form, likenesses and certainty, and whether the action is exact, with queries at a ROUGE-L over .75, from .75 on, and as strings.

A row with `\"suite\": \"repo\"` is judged as a public re-implementation does, under its `config` and with the certainty found in `extras`.";

/// Flags of `webshop shop-r1 score`.
#[derive(clap::Args)]
#[command(after_help = LINES)]
pub struct ScoreArgs {
    /// Change a key of the published reward for all rows; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

/// What is read of a row.
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

/// Whose reward it is.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Suite {
    #[default]
    Paper,
    Repo,
}

/// What the model was asked.
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
    /// The words of what was asked by the user.
    fn n_words(&self) -> usize {
        let n_words = |text: &str| text.split_whitespace().count();
        match self {
            Self::Text(text) => n_words(text),
            Self::Chat(messages) => {
                messages.iter().filter(|it| it.role == "user").map(|it| n_words(&it.content)).sum()
            }
        }
    }
}

/// `breakdown`.
#[derive(Serialize)]
struct Summed<'a> {
    #[serde(flatten)]
    parts: &'a ShopR1Breakdown,
    total: f64,
}

/// `judged`.
#[derive(Serialize)]
struct Judged<'a> {
    parsed: Option<&'a WrittenAction>,
    problem: Option<String>,
    sim_name: Option<f64>,
    sim_text: Option<f64>,
    self_certainty: Option<f64>,
    exact_match_soft_gt: bool,
    exact_match_soft_ge: bool,
    exact_match_string: bool,
}

/// Scores one row after the other.
pub fn run(args: ScoreArgs) -> Result<ExitCode> {
    let base = RewardConfig::paper().with(&read_overrides(&args.overrides)?)?;
    lines::each_in_stdin(|mut row: Value| {
        add_score(&mut row, &base)?;
        answer!("{row}")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// `key=value`, the value as JSON, or else a text.
fn read_overrides(overrides: &[String]) -> Result<Map<String, Value>> {
    let read = |text: &String| {
        let (key, value) =
            text.split_once('=').with_context(|| format!("`{text}` is not of the form `KEY=VALUE`"))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        Ok((key.to_owned(), value))
    };
    overrides.iter().map(read).collect()
}

fn add_score(answered: &mut Value, base: &RewardConfig) -> Result<()> {
    let row: Row = lines::fields(answered)?;
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
    let worth =
        reward.of(&Attempt { completion, gold, certainty: certainty.unwrap_or_default(), n_prompt_words });
    let exact = |exactness| is_exact(worth.action.as_ref(), gold, exactness);
    let judged = Judged {
        parsed: worth.action.as_ref(),
        problem: worth.problem.as_ref().map(ToString::to_string),
        sim_name: worth.sim_name.map(Similarity::ratio),
        sim_text: worth.sim_text.map(Similarity::ratio),
        self_certainty: certainty,
        exact_match_soft_gt: exact(Exactness::Soft),
        exact_match_soft_ge: exact(Exactness::SoftOrAt),
        exact_match_string: exact(Exactness::String),
    };
    answered["breakdown"] = serde_json::to_value(Summed { parts: &worth, total: worth.total() })?;
    answered["formula"] = worth.to_string().into();
    answered["judged"] = serde_json::to_value(judged)?;
    Ok(())
}

/// The certainty of a rationale, if its tokens are given, one way or the other.
fn certainty(reward: &ShopR1Reward, row: &Row) -> Result<Option<f64>> {
    let measure = reward.certainty();
    let place = |field, at| move || format!("field `{field}[{at}]`");
    let certainties: Result<Vec<f64>> = match (&row.rationale_token_dists, &row.rationale_token_logits) {
        (None, None) => return Ok(None),
        (Some(dists), None) => {
            let dists = dists.iter().enumerate();
            let each = |(at, p): (_, &Vec<f64>)| {
                measure.of_probabilities(p).with_context(place("rationale_token_dists", at))
            };
            dists.map(each).collect()
        }
        (None, Some(logits)) => {
            let logits = logits.iter().enumerate();
            let each = |(at, z): (_, &Vec<f32>)| {
                measure.of_logits(z).with_context(place("rationale_token_logits", at))
            };
            logits.map(each).collect()
        }
        (Some(_), Some(_)) => {
            bail!("there are both `rationale_token_dists` and `rationale_token_logits`; give one of them")
        }
    };
    Ok(Some(mean(&certainties?)))
}
