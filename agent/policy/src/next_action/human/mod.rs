//! Recorded sessions of people, in the formats of other projects.
//!
//! | format | one recording | pages |
//! |---|---|---|
//! | a session log of the original's site | a file, one page a line | replayed in the shop, which must have goal and products |
//! | the original's imitation data | a line with `states` and `actions` | as in the recording |
//! | AgentGym's trajectories | a chat, as a line or as an element of one list | replayed if the shop shows the same pages, else as in the recording |
//!
//! [`SessionReader`] recognizes the format by its fields and turns each recording into a [`UserSession`], or a
//! [`Skip`] with the reason. Rewards are not checked. Goals are found by their instruction without the price
//! limit. A session without a goal in the shop gets a split from its instruction, 6 : 1 : 3 for train,
//! validation and test, so that no instruction is in two splits.

mod log;
mod shown;
mod skip;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use webshop_env::{Action, Compat, Shop};
use webshop_products::{Digest, GoalId, Split, line_problem};

use crate::convert::{self, ChatFileFormat, Importer};
use crate::error::AgentError;
use crate::next_action::action::NextAction;
use crate::next_action::example::{ExampleSource, TakenStep, rationale_of};
use crate::next_action::from_episodes::{ExampleOptions, replay_session, session_of};
use crate::next_action::human::log::Opened;
use crate::next_action::human::shown::ShownPage;
use crate::next_action::mapping::{BuyNowAs, folded};
use crate::next_action::session::UserSession;
use crate::prompt_format::{ACKNOWLEDGEMENT, parse_react};

pub use self::skip::{Skip, SkipReason};

/// Reads recordings for a shop.
#[derive(Debug)]
pub struct SessionReader<'a> {
    shop: &'a Arc<Shop>,
    buy_now_as: BuyNowAs,
    /// Goals by instruction without the price limit.
    goals: BTreeMap<String, Vec<GoalId>>,
}

/// A line of the original's imitation data.
#[derive(Deserialize)]
struct Imitation {
    states: Vec<String>,
    actions: Vec<String>,
}

impl<'a> SessionReader<'a> {
    /// Reads recordings for `shop`.
    pub fn new(shop: &'a Arc<Shop>, buy_now_as: BuyNowAs) -> Self {
        let mut goals: BTreeMap<String, Vec<GoalId>> = BTreeMap::new();
        for goal in shop.goals().goals() {
            goals.entry(without_limit(&goal.instruction)).or_default().push(goal.id);
        }
        Self { shop, buy_now_as, goals }
    }

    /// The sessions in the file content `text`. Sessions without a goal in the shop are named after `name`.
    ///
    /// # Errors
    /// [`AgentError::Line`] if the text has none of the formats.
    pub fn read(&self, name: &str, text: &str) -> Result<Vec<Result<UserSession, Skip>>, AgentError> {
        let values = values(text)?;
        let has = |field| values.first().is_some_and(|(_, value)| value.get(field).is_some());
        if has("page") {
            let pages: Vec<(usize, Opened)> = typed(values)?;
            return Ok(vec![self.logged(&pages)]);
        }
        if has("states") {
            let episodes: Vec<(usize, Imitation)> = typed(values)?;
            return Ok(episodes.iter().map(|(line, episode)| self.imitated(*line, name, episode)).collect());
        }
        if has("conversations") {
            let session = |(line, chat): &(usize, Value)| self.chatted(*line, name, &chat.to_string());
            return Ok(values.iter().map(session).collect());
        }
        let line = values.first().map_or(0, |(line, _)| *line);
        let reason =
            "not a recording: it has neither `page`, nor `states` and `actions`, nor `conversations`".into();
        Err(AgentError::Line { line, reason })
    }

    fn logged(&self, pages: &[(usize, Opened)]) -> Result<UserSession, Skip> {
        let actions = log::actions(pages)?;
        let (line, first) = pages.first().expect("a log with actions has pages");
        let goal = self.goal(&first.goal.instruction_text, Some(&first.goal.asin)).ok_or_else(|| Skip {
            line: *line,
            reason: SkipReason::NoGoal,
            detail: format!("`{}`", first.goal.instruction_text),
        })?;
        let split = self.shop.goals().split_of(goal).to_string();
        let steps = actions.iter().map(|(_, action)| (rationale_of("", action), action.clone()));
        let session = replay_session(self.shop, goal, steps, self.options(&split));
        let noop = session.steps.iter().zip(&actions).find(|(step, _)| step.action.is_none());
        match noop {
            None => Ok(session),
            Some((_, (line, action))) => {
                Err(Skip { line: *line, reason: SkipReason::NotHere, detail: format!("`{action}`") })
            }
        }
    }

    fn imitated(&self, line: usize, name: &str, episode: &Imitation) -> Result<UserSession, Skip> {
        let Imitation { states, actions } = episode;
        if actions.len() > states.len() {
            let detail = format!("{} and {}", actions.len(), states.len());
            return Err(Skip { line, reason: SkipReason::Uneven, detail });
        }
        let steps = states.iter().zip(actions).map(|(state, text)| {
            let page = ShownPage::read(state);
            // The baseline's environment can name products by their titles.
            let title = text.strip_prefix("click[item - ").and_then(|rest| rest.strip_suffix(']'));
            let action = match title.and_then(|title| page.product_titled(title)) {
                Some(product) => Action::Click(product.to_lowercase()),
                None => Action::parse(text, Compat::Repaired),
            };
            (page, rationale_of("", &action), action)
        });
        Ok(self.recorded(line, name, steps.collect()))
    }

    fn chatted(&self, line: usize, name: &str, chat: &str) -> Result<UserSession, Skip> {
        let mut importer = Importer::new(self.shop.clone(), ChatFileFormat::Agenttraj, None, None);
        if let Ok(Some(episode)) = importer.import(chat, line) {
            let split = self.shop.goals().split_of(episode.goal).to_string();
            return Ok(session_of(self.shop, &episode, self.options(&split)));
        }
        let no_chat = |detail| Skip { line, reason: SkipReason::NoChat, detail };
        let turns = convert::turns(chat).map_err(no_chat)?;
        // The rules and their acknowledgement are no step.
        let turns = turns.into_iter();
        let turns = turns.filter(|(_, completion)| completion.content.trim() != ACKNOWLEDGEMENT);
        let steps = turns.map(|(shown, completion)| {
            let parsed = parse_react(completion.content.trim(), Compat::Repaired);
            let thought = parsed.thought.filter(|thought| !thought.is_empty());
            let rationale = thought.unwrap_or_else(|| rationale_of("", &parsed.action));
            (ShownPage::read(&shown), rationale, parsed.action)
        });
        Ok(self.recorded(line, name, steps.collect()))
    }

    /// The session on the pages of the recording.
    fn recorded(&self, line: usize, name: &str, steps: Vec<(ShownPage, String, Action)>) -> UserSession {
        let instruction = steps.first().and_then(|(page, ..)| page.instruction()).unwrap_or_default();
        let goal = self.goal(instruction, None);
        let split = match goal {
            Some(goal) => self.shop.goals().split_of(goal),
            None => split_of_unknown(instruction),
        };
        let name = goal.map_or_else(|| format!("{name}:{line}"), |goal| goal.0.to_string());
        let taken = |(page, rationale, action): (ShownPage, String, Action)| TakenStep {
            page: page.html(),
            action: NextAction::of(&action, self.buy_now_as),
            rationale,
        };
        UserSession {
            name: format!("{}-{name}", ExampleSource::Human),
            source: ExampleSource::Human,
            split: split.to_string(),
            goal: goal.map(|goal| goal.0),
            steps: steps.into_iter().map(taken).collect(),
        }
    }

    fn options<'s>(&self, split: &'s str) -> ExampleOptions<'s> {
        ExampleOptions { source: ExampleSource::Human, split, buy_now_as: self.buy_now_as }
    }

    /// The goal with this instruction; of several the one for the product, else the first.
    fn goal(&self, instruction: &str, asin: Option<&str>) -> Option<GoalId> {
        let goals = self.goals.get(&without_limit(instruction))?;
        let of = |goal: &&GoalId| {
            let goal = self.shop.goals().get(**goal);
            asin.is_some_and(|asin| goal.asin.as_str().eq_ignore_ascii_case(asin))
        };
        goals.iter().find(of).or(goals.first()).copied()
    }
}

/// An instruction without its price limit, which differs between shops.
fn without_limit(instruction: &str) -> String {
    let folded = folded(instruction);
    let text = folded.split(", and price lower than").next().unwrap_or_default();
    text.trim_end_matches('.').to_owned()
}

/// The split of an instruction without a goal in the shop.
fn split_of_unknown(instruction: &str) -> Split {
    match Digest::of(without_limit(instruction).as_bytes()).number() % 10 {
        0..6 => Split::Train,
        6 => Split::Validation,
        _ => Split::Test,
    }
}

/// The objects of a file, one a line or in one list, with their positions from 1.
fn values(text: &str) -> Result<Vec<(usize, Value)>, AgentError> {
    if text.trim_start().starts_with('[') {
        let list: Vec<Value> = serde_json::from_str(text).map_err(|error| AgentError::Line {
            line: error.line(),
            reason: format!("not a list: {error}"),
        })?;
        return Ok(list.into_iter().enumerate().map(|(at, value)| (at + 1, value)).collect());
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let value = |(at, line): (usize, &str)| match serde_json::from_str(line) {
        Ok(value) => Ok((at + 1, value)),
        Err(error) => Err(AgentError::Line { line: at + 1, reason: line_problem(&error) }),
    };
    lines.map(value).collect()
}

fn typed<T: DeserializeOwned>(values: Vec<(usize, Value)>) -> Result<Vec<(usize, T)>, AgentError> {
    let typed = |(line, value): (usize, Value)| match serde_json::from_value(value) {
        Ok(value) => Ok((line, value)),
        Err(error) => Err(AgentError::Line { line, reason: error.to_string() }),
    };
    values.into_iter().map(typed).collect()
}
