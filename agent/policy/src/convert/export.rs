//! Recorded episodes as chats.

use std::sync::Arc;

use serde_json::Value;
use webshop_env::{Action, Session, Shop};
use webshop_lm::chat::Message;

use crate::convert::chat::{Chat, ChatFileFormat, ChatMeta, Outcome};
use crate::convert::line;
use crate::episode::read::read_episode;
use crate::episode::{Episode, EpisodeExt, Turn};
use crate::error::AgentError;
use crate::prompt_format::{Conversation, History, PromptFormat};

/// Exports recorded episodes.
///
/// Completions are those of the recording if the prompt format is that of the recording, else they are
/// rendered from thought and action.
#[derive(Clone, Debug)]
pub struct Exporter {
    shop: Arc<Shop>,
    format: ChatFileFormat,
    prompt_format: Option<PromptFormat>,
}

/// The result of one export.
#[derive(Clone, Debug, PartialEq)]
pub enum Exported {
    /// One line for the episode, or one for each turn.
    Lines(Vec<Value>),
    /// No lines, with the reason: the prompt format cannot express an action.
    Skipped(String),
}

impl Exporter {
    /// Exports episodes of `shop`, each in its own prompt format if `prompt_format` is `None`.
    pub fn new(shop: Arc<Shop>, format: ChatFileFormat, prompt_format: Option<PromptFormat>) -> Self {
        Self { shop, format, prompt_format }
    }

    /// Exports line `line` of a rollout file, whose content is `text`.
    ///
    /// # Errors
    /// [`AgentError::Line`], as [`read_episode`](crate::read_episode), or if the format cannot hold the
    /// prompt format.
    pub fn export(&self, text: &str, line: usize) -> Result<Exported, AgentError> {
        let refuse = |reason: String| AgentError::Line { line, reason };
        let episode = read_episode(text, line, &self.shop)?;
        let Some(prompt_format) = self.prompt_format.or(episode.meta.prompt_format) else {
            let policy = &episode.meta.policy;
            return Err(refuse(format!("the policy `{policy}` has no prompts; choose a prompt format")));
        };
        if let Some(reason) = self.format.unsupported(prompt_format) {
            return Err(refuse(reason));
        }
        Ok(match self.chats(&episode, prompt_format) {
            Ok(chats) => Exported::Lines(chats.iter().map(|chat| line::write(self.format, chat)).collect()),
            Err(reason) => Exported::Skipped(reason),
        })
    }

    /// The chats of an episode, or why there are none.
    fn chats(&self, episode: &Episode, prompt_format: PromptFormat) -> Result<Vec<Chat>, String> {
        let instruction = episode.meta.instruction.clone();
        let mut conversation = Conversation::new(instruction, episode.config.max_steps);
        let is_rebuilt = prompt_format.history() == History::Rebuild;
        let (mut chats, n_turns) = (Vec::new(), episode.turns.len());
        let walk = Session::walk(&self.shop, episode.goal, episode.turns.iter().map(|turn| &turn.action));
        for ((at, turn), before) in episode.turns.iter().enumerate().zip(walk) {
            prompt_format.add_page(&mut conversation, &before.page, before.noop_before);
            // In a growing chat, the last prompt contains all turns before it.
            let prompt = (is_rebuilt || at + 1 == n_turns).then(|| prompt_format.messages(&conversation));
            let completion = completion(episode, turn, at, prompt_format);
            let rules = self.shop.config().compat;
            let parsed =
                prompt_format.add_completion(&mut conversation, completion.clone(), &before.page, rules);
            if parsed.terminates != turn.agent.terminates || !is_same(&parsed.action, &turn.action) {
                let action = match turn.agent.terminates {
                    true => "terminate".to_owned(),
                    false => turn.action.to_string(),
                };
                let text = prompt_format.completion_text(&completion);
                let turn = at + 1;
                return Err(format!(
                    "turn {turn}: `{prompt_format}` cannot express `{action}`; not as `{text}`"
                ));
            }
            if let Some(mut messages) = prompt {
                messages.push(completion);
                let (n_completions, turn) = if is_rebuilt { (1, Some(at)) } else { (n_turns, None) };
                let meta = self.meta(episode, prompt_format, turn);
                chats.push(Chat { messages, n_completions, meta });
            }
        }
        if chats.is_empty() { Err("the episode has no turns".into()) } else { Ok(chats) }
    }

    fn meta(&self, episode: &Episode, prompt_format: PromptFormat, turn: Option<usize>) -> ChatMeta {
        ChatMeta {
            goal: Some(episode.goal),
            sample: Some(episode.meta.coordinates.sample),
            turn,
            max_steps: Some(episode.config.max_steps),
            goal_fingerprint: Some(self.shop.goals().fingerprint().into()),
            policy: Some(episode.meta.policy.clone()),
            model: episode.meta.model.clone(),
            prompt_format: Some(prompt_format),
            prompt_version: Some(prompt_format.version().into()),
            outcome: Some(Outcome {
                reward: episode.reward,
                is_success: episode.is_success(),
                terminated: episode.terminated,
                n_turns: episode.turns.len(),
            }),
        }
    }
}

/// The completion of a turn in `prompt_format`.
fn completion(episode: &Episode, turn: &Turn, at: usize, prompt_format: PromptFormat) -> Message {
    let is_own = episode.meta.prompt_format == Some(prompt_format);
    // Completions in a layout end in a token of its own, and in `compact` name products by marks, which chats do not show.
    let is_verbatim = is_own && prompt_format.is_chat();
    let text = match turn.agent.completion.as_ref().filter(|_| is_verbatim) {
        Some(completion) => completion.clone(),
        None => {
            let thought = turn.agent.thought.as_deref().unwrap_or_default();
            prompt_format.render_completion(thought, &turn.action)
        }
    };
    prompt_format.completion_message(&text, &format!("call_{at}"))
}

/// Whether two actions are equal. The reason of a no-op may differ between prompt formats.
fn is_same(parsed: &Action, recorded: &Action) -> bool {
    parsed == recorded || matches!((parsed, recorded), (Action::Noop(_), Action::Noop(_)))
}
