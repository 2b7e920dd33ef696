//! Few-shot prompting: few-shot examples in front of every prompt, for models that were not trained in the shop.
//!
//! An example is a whole episode in the messages of a chat format: pages and completions in turn. Formats with one
//! growing chat show it as one chat, formats with one prompt per turn as a prompt and a completion for each turn. The
//! examples follow the system message, if there is one. They are part of the model folder (`few_shot.json`), so that
//! whoever loads it prompts alike.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use webshop_env::{Session, Shop};
use webshop_lm::LmError;
use webshop_lm::chat::{Message, Role};
use webshop_lm::checkpoint::{FEW_SHOT, write_atomically};
use webshop_products::GoalId;

use crate::error::AgentError;
use crate::expert::turn::ExpertTurn;
use crate::prompt_format::{Conversation, History, PromptFormat};

/// Few-shot examples as messages of users and of the model; none by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FewShot {
    messages: Vec<Message>,
}

/// `few_shot.json`.
#[derive(Serialize, Deserialize)]
struct File {
    prompt_format: PromptFormat,
    messages: Vec<Text>,
}

#[derive(Serialize, Deserialize)]
struct Text {
    role: Role,
    content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

impl FewShot {
    /// The examples of the model folder `folder` in this prompt format; none if it has none, or of another format.
    ///
    /// # Errors
    /// If its `few_shot.json` cannot be read or has another form.
    pub fn load(folder: &Path, prompt_format: PromptFormat) -> Result<Self, AgentError> {
        let path = folder.join(FEW_SHOT);
        if !path.is_file() {
            return Ok(Self::default());
        }
        let text = fs::read(&path).map_err(|source| LmError::Read { path: path.clone(), source })?;
        let file: File = serde_json::from_slice(&text).map_err(|source| LmError::Json { path, source })?;
        if file.prompt_format != prompt_format {
            return Ok(Self::default());
        }
        let message = |text: Text| Message {
            tool_call_id: text.tool_call_id,
            ..Message::text(text.role, text.content)
        };
        Ok(Self { messages: file.messages.into_iter().map(message).collect() })
    }

    /// Writes them to the model folder `folder`; nothing if there are none.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, folder: &Path, prompt_format: PromptFormat) -> Result<(), AgentError> {
        if self.is_empty() {
            return Ok(());
        }
        let text = |message: &Message| {
            let Message { role, content, tool_call_id, .. } = message.clone();
            Text { role, content, tool_call_id }
        };
        let file = File { prompt_format, messages: self.messages.iter().map(text).collect() };
        let json = serde_json::to_vec_pretty(&file).expect("texts are JSON");
        Ok(write_atomically(&folder.join(FEW_SHOT), &json)?)
    }

    /// Adds the episode of `turns` for `goal`, of at most `max_steps` actions. Returns false, and adds nothing, if the
    /// prompt format would parse a completion as another action.
    pub fn add(
        &mut self,
        prompt_format: PromptFormat,
        shop: &Shop,
        goal: GoalId,
        turns: &[ExpertTurn],
        max_steps: u32,
    ) -> bool {
        let instruction = Arc::clone(&shop.goals().get(goal).instruction);
        let rules = shop.config().compat;
        let mut conversation = Conversation::new(instruction, max_steps);
        let mut example = Vec::new();
        for (turn, before) in
            turns.iter().zip(Session::walk(shop, goal, turns.iter().map(|turn| &turn.action)))
        {
            prompt_format.add_page(&mut conversation, &before.page, None);
            let mut prompt = prompt_format.messages(&conversation);
            prompt.retain(|message| message.role != Role::System);
            match prompt_format.history() {
                History::Append => example = prompt,
                History::Rebuild => example.extend(prompt),
            }
            let thought = prompt_format.demonstrated_thought(&turn.thought, &turn.action);
            let text = prompt_format.render_completion(&thought, &turn.action);
            let completion = Message::text(Role::Assistant, text);
            example.push(completion.clone());
            let parsed = prompt_format.add_completion(&mut conversation, completion, &before.page, rules);
            if !parsed.is_well_formed || parsed.action != turn.action {
                return false;
            }
        }
        self.messages.extend(example);
        true
    }

    /// Whether there are no examples.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// `messages` with the examples behind the system messages at the beginning.
    pub(super) fn before<'a>(&'a self, messages: &'a [Message]) -> impl Iterator<Item = &'a Message> {
        let n_system = messages.iter().take_while(|message| message.role == Role::System).count();
        let (system, rest) = messages.split_at(n_system);
        system.iter().chain(&self.messages).chain(rest)
    }

    /// Digest of the examples, for the version of a prompt.
    pub(super) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for message in &self.messages {
            hash.update((message.content.len() as u64).to_le_bytes());
            hash.update(&message.content);
        }
        webshop_products::hex(&hash.finalize()[..4])
    }
}
