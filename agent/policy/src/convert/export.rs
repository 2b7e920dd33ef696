//! Recorded trips told as chats.
//!
//! A [`Teller`] takes lines of a rollout file. It makes each trip again, shows the pages to a
//! [`Dialogue`](crate::prompt_format::conversation::Dialogue), and puts the recorded answers between them: as they were written where the trip is
//! told in its own dialect, else said anew from thought and action. What would not be understood as what was done
//! is not told.

use std::sync::Arc;

use serde_json::Value;
use webshop_env::{Action, Shop, ShopEnv};

use crate::convert::{About, Chat, Format, Outcome, format};
use webshop_lm::Message;
use crate::prompt_format::{Dialect, History};
use crate::prompt_format::conversation::Dialogue;
use crate::episode::{Episode, EpisodeTurn};
use crate::error::AgentError;
use crate::episode::replay::remake;

/// Who tells trips.
#[derive(Clone, Debug)]
pub struct Teller {
    shop: Arc<Shop>,
    format: Format,
    dialect: Option<Dialect>,
}

/// What becomes of a recorded trip.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// One line for the trip, or one for each turn.
    Lines(Vec<Value>),
    /// Nothing, for this reason: the dialect has no words for what was done.
    Nothing(String),
}

impl Teller {
    /// Tells trips of `shop`, each in its own dialect unless another is asked for.
    pub fn new(shop: Arc<Shop>, format: Format, dialect: Option<Dialect>) -> Self {
        Self { shop, format, dialect }
    }

    /// Tells the trip in the `line`-th line of a rollout file, which is `text`.
    ///
    /// # Errors
    /// [`AgentError::Line`], if it is no trip of this shop, does not go as recorded, or is to be told in a dialect that
    /// the format has no room for.
    pub fn tell(&self, text: &str, line: usize) -> Result<Told, AgentError> {
        let refuse = |reason: String| AgentError::Line { line, reason };
        let episode = remake(text, line, &self.shop)?;
        let recorded = episode.prompt.as_ref().map(|prompt| prompt.dialect);
        let Some(dialect) = self.dialect.or(recorded) else {
            let reason = format!("a trip of `{}`, who has no words; choose a dialect for it", episode.policy);
            return Err(refuse(reason));
        };
        if let Some(reason) = self.format.lacks(dialect) {
            return Err(refuse(reason));
        }
        Ok(match self.chats(&episode, dialect) {
            Ok(chats) => Told::Lines(chats.iter().map(|chat| format::write(self.format, chat)).collect()),
            Err(reason) => Told::Nothing(reason),
        })
    }

    /// The chats of a trip, or why there are none.
    fn chats(&self, episode: &Episode, dialect: Dialect) -> Result<Vec<Chat>, String> {
        let goal = self.shop.goals().get(episode.coordinates.goal);
        let mut env = ShopEnv::new(self.shop.clone(), episode.config);
        env.reset(goal.id);
        let mut dialogue = Dialogue::new(dialect, goal.instruction.clone(), episode.config.max_steps);
        let (mut chats, mut noop, n_turns) = (Vec::new(), None, episode.turns.len());
        for (at, turn) in episode.turns.iter().enumerate() {
            dialogue.see(env.page(), noop);
            let is_retold = dialect.history() == History::Retold;
            // Where history is kept, the last prompt holds all before it.
            let prompt = (is_retold || at + 1 == n_turns).then(|| dialogue.messages());
            let answer = answer(episode, turn, at, dialect);
            let heard = dialogue.say(answer.clone(), env.page());
            if heard.leaves != turn.leaves || !means(&heard.action, &turn.action) {
                let done = if turn.leaves { "leaving".to_owned() } else { format!("`{}`", turn.action) };
                let said = dialect.written(&answer);
                return Err(format!(
                    "turn {}: {done} cannot be said in `{dialect}`; not as `{said}`",
                    at + 1
                ));
            }
            noop = env.step(&turn.action).info.noop;
            if let Some(mut messages) = prompt {
                messages.push(answer);
                let (n_answers, turn) = if is_retold { (1, Some(at)) } else { (n_turns, None) };
                chats.push(Chat { messages, n_answers, about: self.about(episode, dialect, turn) });
            }
        }
        if chats.is_empty() { Err("it has no turns".into()) } else { Ok(chats) }
    }

    fn about(&self, episode: &Episode, dialect: Dialect, turn: Option<usize>) -> About {
        About {
            goal: Some(episode.coordinates.goal),
            sample: Some(episode.coordinates.sample),
            turn,
            max_steps: Some(episode.config.max_steps),
            goal_fingerprint: Some(self.shop.goals().fingerprint().into()),
            policy: Some(episode.policy.clone()),
            model: episode.prompt.as_ref().and_then(|prompt| prompt.model.clone()),
            dialect: Some(dialect),
            prompt_version: Some(dialect.version().into()),
            outcome: Some(Outcome {
                reward: episode.reward,
                is_success: episode.is_success(),
                terminated: episode.terminated,
                n_turns: episode.turns.len(),
            }),
        }
    }
}

/// What the customer says in a turn, in `dialect`.
fn answer(episode: &Episode, turn: &EpisodeTurn, at: usize, dialect: Dialect) -> Message {
    let is_own = episode.prompt.as_ref().is_some_and(|prompt| prompt.dialect == dialect);
    // Answers in the plain dialect name products by marks, which its chats do not show.
    let verbatim = turn.answer.as_ref().filter(|_| is_own && dialect != Dialect::Plain);
    let said = match verbatim {
        Some(answer) => answer.clone(),
        None => dialect.say(turn.thought.as_deref().unwrap_or_default(), &turn.action),
    };
    dialect.answered(&said, &format!("call_{at}"))
}

/// Whether an action was understood. Why one is none may get lost between dialects.
fn means(heard: &Action, done: &Action) -> bool {
    heard == done || matches!((heard, done), (Action::Noop(_), Action::Noop(_)))
}
