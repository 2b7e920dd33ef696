//! Visits of people, as others recorded them.
//!
//! | format | one recording | pages |
//! |---|---|---|
//! | a session's log of the original's site | a file, a line a page | made again in the shop, which must have the goal and the products |
//! | the original's imitation data | a line with `states` and `actions` | as told there |
//! | AgentGym's trajectories | a chat, a line or an element of one list | made again if the shop answers as told, else as told there |
//!
//! [`Recordings`] tells the formats apart by their fields and makes each recording a [`Visit`], or a [`Skip`] that says
//! why it is none. What was bought is not asked: a person's trip is a person's trip. Goals are known by their
//! instructions, price aside. A visit for no goal of the shop has no goal; its split follows from the instruction, as
//! 6 : 1 : 3 of train, validation and test, so that no instruction is in two.

pub mod log;
pub mod shown;
#[cfg(test)]
mod tests;


use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use webshop_env::{Action, Compat, Digest, Shop};
use webshop_products::{GoalId, Split};

use crate::next_action::human::log::Opened;
use crate::next_action::human::shown::ShownPage;
use crate::next_action::action::NextAction;
use crate::next_action::mapping::{BuyNowAs, folded};
use crate::next_action::example::{SampleSource, TakenStep, rationale_of};
use crate::next_action::from_episodes::{About, retrace, split_of, visit_of};
use crate::next_action::session::Visit;
use crate::convert;
use crate::convert::{Format, Listener};
use crate::prompt_format::agentgym_react;
use crate::error::AgentError;

/// Why a recording makes no visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// The line at fault, or the place in a list, from 1.
    pub line: usize,
    /// What is wrong.
    pub reason: SkipReason,
    /// With what.
    pub detail: String,
}

/// What can be wrong with a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkipReason {
    /// The shop has no goal with its instruction.
    NoGoal,
    /// The shop has nothing with which to do what was done.
    NotHere,
    /// No action of the shop leads from one page to the next.
    NoAction,
    /// It has another number of states than of actions.
    Uneven,
    /// A chat that does not go as chats do.
    NoChat,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoGoal => "the shop has no goal with the instruction",
            Self::NotHere => "the shop cannot do what was done",
            Self::NoAction => "no action leads from one page to the next",
            Self::Uneven => "there are more actions than states",
            Self::NoChat => "the chat cannot be read",
        })
    }
}

/// Reads recordings in front of a shop.
#[derive(Debug)]
pub struct Recordings<'a> {
    shop: &'a Arc<Shop>,
    buy_now_as: BuyNowAs,
    /// Goals by instruction, price aside.
    goals: BTreeMap<String, Vec<GoalId>>,
}

/// A line of the original's imitation data.
#[derive(Deserialize)]
struct Imitation {
    states: Vec<String>,
    actions: Vec<String>,
}

impl<'a> Recordings<'a> {
    /// In front of `shop`.
    pub fn new(shop: &'a Arc<Shop>, buy_now_as: BuyNowAs) -> Self {
        let mut goals: BTreeMap<String, Vec<GoalId>> = BTreeMap::new();
        for goal in shop.goals().goals() {
            goals.entry(wish(&goal.instruction)).or_default().push(goal.id);
        }
        Self { shop, buy_now_as, goals }
    }

    /// The visits that a file holds, or why they are none. `name` is what visits for no goal of the shop are called by.
    ///
    /// # Errors
    /// [`AgentError::Line`] if it is in none of the formats.
    pub fn read(&self, name: &str, text: &str) -> Result<Vec<Result<Visit, Skip>>, AgentError> {
        let values = values(text)?;
        let has = |field| values.first().is_some_and(|(_, value)| value.get(field).is_some());
        if has("page") {
            let pages: Vec<(usize, Opened)> = typed(values)?;
            return Ok(vec![self.logged(&pages)]);
        }
        if has("states") {
            let trips: Vec<(usize, Imitation)> = typed(values)?;
            return Ok(trips.iter().map(|(line, trip)| self.imitated(*line, name, trip)).collect());
        }
        if has("conversations") {
            let told = |(line, chat): &(usize, Value)| self.chatted(*line, name, &chat.to_string());
            return Ok(values.iter().map(told).collect());
        }
        let line = values.first().map_or(0, |(line, _)| *line);
        let reason =
            "no recording: it has neither `page`, nor `states` and `actions`, nor `conversations`".into();
        Err(AgentError::Line { line, reason })
    }

    fn logged(&self, pages: &[(usize, Opened)]) -> Result<Visit, Skip> {
        let actions = log::actions(pages)?;
        let (line, first) = pages.first().expect("whoever did something was somewhere");
        let goal = self.goal(&first.goal.instruction_text, Some(&first.goal.asin)).ok_or_else(|| Skip {
            line: *line,
            reason: SkipReason::NoGoal,
            detail: format!("`{}`", first.goal.instruction_text),
        })?;
        let split = split_of(self.shop.goals(), goal).to_string();
        let steps = actions.iter().map(|(_, action)| (rationale_of("", action), action.clone()));
        let visit = retrace(self.shop, goal, steps, self.about(&split));
        let undone = visit.steps.iter().zip(&actions).find(|(step, _)| step.action.is_none());
        match undone {
            None => Ok(visit),
            Some((_, (line, action))) => {
                Err(Skip { line: *line, reason: SkipReason::NotHere, detail: format!("`{action}`") })
            }
        }
    }

    fn imitated(&self, line: usize, name: &str, trip: &Imitation) -> Result<Visit, Skip> {
        let Imitation { states, actions } = trip;
        if actions.len() > states.len() {
            let detail = format!("{} and {}", actions.len(), states.len());
            return Err(Skip { line, reason: SkipReason::Uneven, detail });
        }
        let told = states.iter().zip(actions).map(|(state, said)| {
            let page = ShownPage::read(state);
            // The baseline's environment can name products by their titles.
            let title = said.strip_prefix("click[item - ").and_then(|rest| rest.strip_suffix(']'));
            let action = match title.and_then(|title| page.product_titled(title)) {
                Some(product) => Action::Click(product.to_lowercase()),
                None => Action::parse(said, Compat::Repaired),
            };
            (page, rationale_of("", &action), action)
        });
        Ok(self.told(line, name, told.collect()))
    }

    fn chatted(&self, line: usize, name: &str, chat: &str) -> Result<Visit, Skip> {
        let mut listener = Listener::new(self.shop.clone(), Format::Agenttraj, None, None);
        if let Ok(Some(episode)) = listener.hear(chat, line) {
            let split = split_of(self.shop.goals(), episode.coordinates.goal).to_string();
            return Ok(visit_of(self.shop, &episode, self.about(&split)));
        }
        let no_chat = |detail| Skip { line, reason: SkipReason::NoChat, detail };
        let turns = convert::turns(chat).map_err(no_chat)?;
        // Rules, and the word that they are agreed to, are no step.
        let told = turns.into_iter().filter(|(_, answer)| answer.content.trim() != agentgym_react::AGREED);
        let told = told.map(|(shown, answer)| {
            let said = agentgym_react::parse(answer.content.trim());
            let thought = said.thought.filter(|thought| !thought.is_empty());
            let rationale = thought.unwrap_or_else(|| rationale_of("", &said.action));
            (ShownPage::read(&shown), rationale, said.action)
        });
        Ok(self.told(line, name, told.collect()))
    }

    /// The visit on pages as they were told.
    fn told(&self, line: usize, name: &str, steps: Vec<(ShownPage, String, Action)>) -> Visit {
        let instruction = steps.first().and_then(|(page, ..)| page.instruction()).unwrap_or_default();
        let goal = self.goal(instruction, None);
        let split = match goal {
            Some(goal) => split_of(self.shop.goals(), goal),
            None => split_of_stranger(instruction),
        };
        let called = goal.map_or_else(|| format!("{name}:{line}"), |goal| goal.0.to_string());
        let taken = |(page, rationale, action): (ShownPage, String, Action)| TakenStep {
            page: page.html(),
            action: NextAction::of(&action, self.buy_now_as),
            rationale,
        };
        Visit {
            name: format!("{}-{called}", SampleSource::Human),
            source: SampleSource::Human,
            split: split.to_string(),
            goal: goal.map(|goal| goal.0),
            steps: steps.into_iter().map(taken).collect(),
        }
    }

    fn about<'s>(&self, split: &'s str) -> About<'s> {
        About { source: SampleSource::Human, split, buy_now_as: self.buy_now_as }
    }

    /// The goal with this instruction; of several that of the product, or the first.
    fn goal(&self, instruction: &str, asin: Option<&str>) -> Option<GoalId> {
        let goals = self.goals.get(&wish(instruction))?;
        let of = |goal: &&GoalId| {
            let goal = self.shop.goals().get(**goal);
            asin.is_some_and(|asin| goal.asin.as_str().eq_ignore_ascii_case(asin))
        };
        goals.iter().find(of).or(goals.first()).copied()
    }
}

/// An instruction without its price limit, which each shop draws for itself.
fn wish(instruction: &str) -> String {
    let told = folded(instruction);
    let wish = told.split(", and price lower than").next().unwrap_or_default();
    wish.trim_end_matches('.').to_owned()
}

/// The split of an instruction that no goal of the shop has.
fn split_of_stranger(instruction: &str) -> Split {
    match Digest::of(wish(instruction).as_bytes()).number() % 10 {
        0..6 => Split::Train,
        6 => Split::Validation,
        _ => Split::Test,
    }
}

/// The objects of a file, a line each or as one list, with their places.
fn values(text: &str) -> Result<Vec<(usize, Value)>, AgentError> {
    let told = |error: serde_json::Error| error.to_string();
    if text.trim_start().starts_with('[') {
        let list: Vec<Value> = serde_json::from_str(text)
            .map_err(|error| AgentError::Line { line: error.line(), reason: format!("no list: {error}") })?;
        return Ok(list.into_iter().enumerate().map(|(at, value)| (at + 1, value)).collect());
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let value = |(at, line): (usize, &str)| match serde_json::from_str(line) {
        Ok(value) => Ok((at + 1, value)),
        Err(error) => Err(AgentError::Line { line: at + 1, reason: in_line(&told(error)) }),
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

/// To the parser every line is the first.
fn in_line(problem: &str) -> String {
    problem.replace(" at line 1 column ", " at column ")
}
