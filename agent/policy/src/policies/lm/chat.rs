//! Chats: prompts as messages, turned into tokens by the checkpoint's chat template.
//!
//! In formats with one growing chat, a turn's prompt tokens are what the template writes after the last
//! completion, and completions stay the tokens that were sampled. That is correct only if the template leaves
//! earlier turns unchanged. [`ChatEncoder::new`] checks this and refuses other templates. [`TurnMarkers`] in
//! messages are broken by a space, so that no page can end the user's turn or speak as the model.

use std::path::Path;

use sha2::{Digest, Sha256};
use webshop_env::{Action, Page};
use webshop_lm::chat::{ChatTemplate, Message, Role, TemplateInput, TurnMarkers};
use webshop_lm::checkpoint::StopTokens;
use webshop_lm::{BpeTokenizer, Constraint, Context, LmError, Qwen2Config, Thought, ThoughtStart};

use crate::episode::PromptProvenance;
use crate::error::AgentError;
use crate::policies::lm::action_grammar::ActionGrammar;
use crate::policies::lm::config::LmConfig;
use crate::policies::lm::encoder::{TurnEncoder, without_stop};
use crate::policies::lm::few_shot::FewShot;
use crate::policies::policy::LaneView;
use crate::prompt_format::{Conversation, History, ParsedCompletion, PromptFormat};

/// The completion by which a template is probed.
const PLACEHOLDER: &str = "answer";

/// Prompt format, chat template and stop tokens of a checkpoint.
#[derive(Clone, Debug)]
pub struct ChatFormat {
    /// The prompt format.
    pub prompt_format: PromptFormat,
    /// The chat template.
    pub template: ChatTemplate,
    /// The tokens that end a completion, first the one that the template writes after completions.
    pub stop_ids: Vec<u32>,
    /// The few-shot examples in front of every prompt.
    pub few_shot: FewShot,
}

impl ChatFormat {
    /// The chat format of the checkpoint in `folder`, with its few-shot examples.
    ///
    /// # Errors
    /// If it has no chat template, the template writes no stop token after completions, or the file of examples is
    /// invalid.
    pub fn load(
        folder: &Path,
        prompt_format: PromptFormat,
        config: &Qwen2Config,
        tokenizer: &BpeTokenizer,
    ) -> Result<Self, AgentError> {
        let template = ChatTemplate::load(folder)?;
        let mut stop_ids = StopTokens::load(folder, config, tokenizer)?.ids().to_vec();
        let probe = [Message::text(Role::User, "question"), Message::text(Role::Assistant, PLACEHOLDER)];
        let text = template.render(&TemplateInput {
            messages: probe.iter().map(Message::to_template).collect(),
            ..TemplateInput::default()
        })?;
        let rest = text.rsplit_once(PLACEHOLDER).map_or("", |(_, rest)| rest);
        let is_next = |id: &u32| tokenizer.token(*id).is_some_and(|token| rest.starts_with(&token));
        let first = stop_ids.iter().position(is_next).ok_or_else(|| {
            let tokens: Vec<_> = stop_ids.iter().filter_map(|id| tokenizer.token(*id)).collect();
            LmError::ChatTemplate(format!(
                "the template writes `{}` after a completion, which is not a stop token of {tokens:?}; \
                 correct `eos_token_id` in `generation_config.json`",
                rest.trim_end()
            ))
        })?;
        stop_ids.swap(0, first);
        let few_shot = FewShot::load(folder, prompt_format)?;
        Ok(Self { prompt_format, template, stop_ids, few_shot })
    }

    /// Tokens of the few-shot examples.
    ///
    /// # Errors
    /// If the template cannot render them.
    pub fn n_example_tokens(&self, tokenizer: &BpeTokenizer) -> Result<usize, AgentError> {
        if self.few_shot.is_empty() {
            return Ok(0);
        }
        let text = self.template.render(&TemplateInput {
            messages: self.few_shot.before(&[]).map(Message::to_template).collect(),
            ..TemplateInput::default()
        })?;
        Ok(tokenizer.encode(&text)?.len())
    }

    /// The version of the prompt format and digests of the template and, if there are any, of the examples.
    ///
    /// # Errors
    /// If the template has no source for this format.
    pub fn version(&self) -> Result<String, AgentError> {
        let digest = Sha256::digest(self.template.source(self.prompt_format.tools().is_some())?);
        let digest = webshop_products::hex(&digest[..4]);
        let version = format!("{}+template-{digest}", self.prompt_format.version());
        Ok(match self.few_shot.is_empty() {
            true => version,
            false => format!("{version}+few-shot-{}", self.few_shot.digest()),
        })
    }
}

/// Encodes pages as messages of a chat, with a conversation per lane.
#[derive(Clone, Debug)]
pub(super) struct ChatEncoder<'a> {
    tokenizer: &'a BpeTokenizer,
    format: &'a ChatFormat,
    markers: TurnMarkers,
    provenance: PromptProvenance,
    grammar: Option<ActionGrammar>,
    /// The most tokens of a rebuilt prompt that leave room for a completion of the greatest length.
    longest_prompt: usize,
    lanes: Vec<Option<LaneMemory>>,
}

/// The conversation on a lane.
#[derive(Clone, Debug)]
struct LaneMemory {
    conversation: Conversation,
    /// The last prompt as text, with [`PLACEHOLDER`] for each completion.
    rendered: String,
    /// The last token of the last completion; `None` before the first.
    last_id: Option<u32>,
}

impl<'a> ChatEncoder<'a> {
    pub(super) fn new(
        tokenizer: &'a BpeTokenizer,
        format: &'a ChatFormat,
        config: &LmConfig,
    ) -> Result<Self, AgentError> {
        let Some(&stop_id) = format.stop_ids.first() else {
            return Err(LmError::Tokenizer("the checkpoint has no stop token".into()).into());
        };
        let mut encoder = Self {
            tokenizer,
            format,
            markers: TurnMarkers::new(&format.template, tokenizer, &format.stop_ids)?,
            provenance: PromptProvenance::new(format.prompt_format, format.version()?),
            grammar: None,
            longest_prompt: config.max_context.saturating_sub(config.max_turn_tokens),
            lanes: Vec::new(),
        };
        encoder.check_template()?;
        if config.constrained {
            let form = format.prompt_format.form();
            let thought = form
                .thought
                .map(|tags| Thought::new(tokenizer, tags, ThoughtStart::Required, &[], form.forbidden));
            let (thought, stop) = (thought.transpose()?, tokenizer.decode(&[stop_id]));
            let encode = |action: &Action| encoder.encode_action(action);
            let max_tokens = config.max_turn_tokens;
            let prompt_format = format.prompt_format;
            encoder.grammar =
                Some(ActionGrammar::new(tokenizer, prompt_format, thought, &stop, max_tokens, encode)?);
        }
        Ok(encoder)
    }

    pub(super) fn prompt_format(&self) -> PromptFormat {
        self.format.prompt_format
    }

    /// The tokens of a rebuilt prompt, without as few pages, oldest first, as leave room for a completion;
    /// without all of them if that is not enough. `messages_without(n)` renders the prompt without its first
    /// `n` of `n_past` pages.
    pub(super) fn encode_fitting(
        &self,
        n_past: usize,
        messages_without: impl Fn(usize) -> Result<Vec<Message>, AgentError>,
    ) -> Result<Vec<u32>, AgentError> {
        let n_droppable = self.format.prompt_format.n_droppable(n_past);
        let mut n_dropped = 0;
        loop {
            let ids = self.tokenizer.encode(&self.render(&messages_without(n_dropped)?)?)?;
            if ids.len() <= self.longest_prompt || n_dropped == n_droppable {
                return Ok(ids);
            }
            n_dropped += 1;
        }
    }

    /// What is new in the prompt `text` since the last completion of the lane; all of it before the first.
    fn new_text<'t>(&self, lane: &LaneMemory, text: &'t str) -> Result<&'t str, AgentError> {
        let Some(last_id) = lane.last_id else { return Ok(text) };
        let new = text.strip_prefix(&lane.rendered).and_then(|rest| rest.strip_prefix(PLACEHOLDER));
        let new = new.ok_or_else(|| self.changes_turns())?;
        // The template ends the completion, unless the model did.
        let stop = self.tokenizer.decode(&[last_id]);
        let has_stopped = self.format.stop_ids.contains(&last_id);
        Ok(if has_stopped { new.strip_prefix(&stop).unwrap_or(new) } else { new })
    }

    /// The tokens of the completion with this thought and action, and of its end.
    pub(super) fn encode_turn(&self, thought: &str, action: &Action) -> Result<Vec<u32>, AgentError> {
        let text = self.format.prompt_format.render_completion(thought, action);
        self.encode_completion(&text, &format!("{thought}{action}"))
    }

    /// The tokens of the part after the thought, and of its end.
    fn encode_action(&self, action: &Action) -> Result<Vec<u32>, AgentError> {
        let text = self.format.prompt_format.render_action(action);
        self.encode_completion(&text, &action.to_string())
    }

    /// The tokens of the completion `text` and its end. `free` is the part of it that is not fixed by the
    /// format.
    pub(super) fn encode_completion(&self, text: &str, free: &str) -> Result<Vec<u32>, AgentError> {
        let ids = if self.tokenizer.spells_special(free) {
            self.tokenizer.encode_text(text)
        } else {
            self.tokenizer.encode(text)
        };
        let mut ids = ids?;
        ids.extend(self.format.stop_ids.first());
        Ok(ids)
    }

    pub(super) fn render(&self, messages: &[Message]) -> Result<String, AgentError> {
        let messages = self.format.few_shot.before(messages).map(|message| {
            let content = self.markers.break_in(&message.content);
            Message { content, ..message.clone() }.to_template()
        });
        Ok(self.format.template.render(&TemplateInput {
            messages: messages.collect(),
            tools: self.format.prompt_format.tools(),
            add_generation_prompt: true,
            ..TemplateInput::default()
        })?)
    }

    /// Checks, with a completion that has a thought, that the template leaves earlier turns unchanged.
    fn check_template(&self) -> Result<(), AgentError> {
        let prompt_format = self.format.prompt_format;
        let completion = prompt_format.render_completion("a thought", &Action::Click("this".into()));
        let mut messages = vec![Message::text(Role::User, "one")];
        let before = self.render(&messages)?;
        if prompt_format.history() == History::Rebuild {
            return Ok(());
        }
        messages.extend([Message::text(Role::Assistant, &completion), Message::text(Role::User, "two")]);
        let after = self.render(&messages)?;
        let rest = after.strip_prefix(&before).and_then(|rest| rest.strip_prefix(&completion));
        rest.map(|_| ()).ok_or_else(|| self.changes_turns())
    }

    fn changes_turns(&self) -> AgentError {
        LmError::ChatTemplate(format!(
            "the chat template changes earlier turns when messages are appended, so the prompt format `{}` would \
             train on tokens that were never sampled; use a format with one prompt per turn: `verl-agent` or \
             `shop-r1`",
            self.format.prompt_format,
        ))
        .into()
    }
}

impl TurnEncoder for ChatEncoder<'_> {
    fn provenance(&self) -> PromptProvenance {
        self.provenance.clone()
    }

    fn stop_ids(&self) -> &[u32] {
        &self.format.stop_ids
    }

    fn begin_rollout(&mut self, n_lanes: usize) {
        self.lanes.clear();
        self.lanes.resize_with(n_lanes, || None);
    }

    fn begin_episode(&mut self, lane: usize) {
        self.lanes[lane] = None;
    }

    fn encode(&mut self, view: &LaneView<'_>) -> Result<(Context, Vec<u32>), AgentError> {
        let prompt_format = self.format.prompt_format;
        let mut lane = self.lanes[view.lane].take().unwrap_or_else(|| LaneMemory {
            conversation: Conversation::new(view.instruction().into(), view.max_steps),
            rendered: String::new(),
            last_id: None,
        });
        prompt_format.add_page(&mut lane.conversation, view.page, view.noop);
        let n_past = lane.conversation.past().len();
        let prompt = match prompt_format.history() {
            History::Rebuild => {
                let messages_without = |n| Ok(prompt_format.messages_without(&lane.conversation, n));
                (Context::Fresh, self.encode_fitting(n_past, messages_without)?)
            }
            History::Append => {
                let mut messages = prompt_format.messages(&lane.conversation);
                let completions = messages.iter_mut().rev().filter(|message| message.role == Role::Assistant);
                for completion in completions.take(n_past) {
                    *completion = Message::text(Role::Assistant, PLACEHOLDER);
                }
                let text = self.render(&messages)?;
                let new = self.new_text(&lane, &text)?.to_owned();
                lane.rendered = text;
                (Context::Continue, self.tokenizer.encode(&new)?)
            }
        };
        self.lanes[view.lane] = Some(lane);
        Ok(prompt)
    }

    fn constraint(&self, page: &Page) -> Result<Option<Constraint>, AgentError> {
        let grammar = self.grammar.as_ref();
        grammar.map(|grammar| grammar.constraint(page, |action| self.encode_action(action))).transpose()
    }

    fn decode(&mut self, view: &LaneView<'_>, ids: &[u32]) -> (String, ParsedCompletion) {
        let text = self.tokenizer.decode(without_stop(ids, &self.format.stop_ids));
        let lane = self.lanes[view.lane].as_mut().expect("a page is encoded before a completion is decoded");
        lane.last_id = ids.last().copied();
        let completion = Message::text(Role::Assistant, text.as_str());
        let prompt_format = self.format.prompt_format;
        let rules = view.shop.config().compat;
        let parsed = prompt_format.add_completion(&mut lane.conversation, completion, view.page, rules);
        (text, parsed)
    }
}
