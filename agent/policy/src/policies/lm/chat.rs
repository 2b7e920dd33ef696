//! Chats: pages told in messages, and put into tokens by the checkpoint's own template.
//!
//! Where a dialect keeps one growing chat, the model reads at each turn only what its template puts behind its
//! last answer, which stays the tokens that were sampled. That is right only if the template leaves what it has
//! written alone; whether it does is tried out when a [`ChatVoice`] is made, and a template that writes earlier
//! turns anew is refused. Text of the shop that spells a special token is told with a space in it, so that no
//! page can speak as the model or end its turn.

use webshop_lm::LmError;
use std::path::Path;

use sha2::{Digest, Sha256};
use webshop_env::{Action, Page};

use crate::policies::lm::LmConfig;
use crate::policies::lm::action_grammar::Grammar;
use webshop_lm::{Message, Role};
use webshop_lm::chat::template::{ChatTemplate, Conversation};
use webshop_lm::checkpoint::StopTokens;
use webshop_lm::{Constraint, Thought, ThoughtStart};
use crate::prompt_format::{Dialect, History, Utterance};
use crate::prompt_format::conversation::Dialogue;
use crate::episode::PromptStamp;
use crate::error::AgentError;
use webshop_lm::Context;
use crate::policies::LaneView;
use webshop_lm::Qwen2Config;
use webshop_lm::ShopTokenizer;

/// Stands for an answer where a template is asked what it puts behind one.
const ANSWER: &str = "answer";

/// How a checkpoint chats.
#[derive(Clone, Debug)]
pub struct ChatFormat {
    /// What is said.
    pub dialect: Dialect,
    /// How messages become text.
    pub template: ChatTemplate,
    /// Tokens that end an answer, the one that the template writes behind answers first.
    pub stop_ids: Vec<u32>,
}

impl ChatFormat {
    /// How the checkpoint in `folder`, with this configuration and tokenizer, chats in `dialect`.
    ///
    /// Fails if it has no chat template, or none that writes a stop token behind answers.
    pub fn load(
        folder: &Path,
        dialect: Dialect,
        config: &Qwen2Config,
        tokenizer: &ShopTokenizer,
    ) -> Result<Self, AgentError> {
        let template = ChatTemplate::load(folder)?;
        let mut stop_ids = StopTokens::load(folder, config, tokenizer)?.ids().to_vec();
        let told = [Message::text(Role::User, "question"), Message::text(Role::Assistant, ANSWER)];
        let text = template.render(&Conversation {
            messages: told.iter().map(Message::to_template).collect(),
            ..Conversation::default()
        })?;
        let behind = text.rsplit_once(ANSWER).map_or("", |(_, behind)| behind);
        let ends = |id: &u32| tokenizer.token(*id).is_some_and(|token| behind.starts_with(&token));
        let first = stop_ids.iter().position(ends).ok_or_else(|| {
            let spelled: Vec<_> = stop_ids.iter().filter_map(|id| tokenizer.token(*id)).collect();
            LmError::ChatTemplate(format!(
                "it writes `{}` behind an answer, which is none of the tokens that end a turn: {spelled:?}; \
                 correct `eos_token_id` in `generation_config.json`",
                behind.trim_end()
            ))
        })?;
        stop_ids.swap(0, first);
        Ok(Self { dialect, template, stop_ids })
    }

    /// The dialect's version, and a digest of the template.
    pub fn version(&self) -> Result<String, AgentError> {
        let digest = Sha256::digest(self.template.source(self.dialect.tools().is_some())?);
        let digest: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        Ok(format!("{}+template-{digest}", self.dialect.version()))
    }

    fn stamp(&self) -> Result<PromptStamp, AgentError> {
        Ok(PromptStamp::of_words(self.dialect, self.version()?))
    }
}

/// Tells trips in messages, a dialogue for each lane.
#[derive(Clone, Debug)]
pub struct ChatVoice<'a> {
    tokenizer: &'a ShopTokenizer,
    format: &'a ChatFormat,
    stamp: PromptStamp,
    /// Spelled out, none empty.
    specials: Vec<String>,
    grammar: Option<Grammar>,
    /// Tokens of a prompt that stands alone, behind which an answer of any length fits.
    longest_prompt: usize,
    lanes: Vec<Option<Lane>>,
}

/// A trip that is being told.
#[derive(Clone, Debug)]
struct Lane {
    dialogue: Dialogue,
    /// What the template made of it for the last turn, with [`ANSWER`] for each answer.
    told: String,
    /// The last token of the last answer.
    last_id: Option<u32>,
}

impl<'a> ChatVoice<'a> {
    pub fn new(
        tokenizer: &'a ShopTokenizer,
        format: &'a ChatFormat,
        config: &LmConfig,
    ) -> Result<Self, AgentError> {
        let Some(&stop_id) = format.stop_ids.first() else {
            return Err(LmError::Tokenizer("the checkpoint names no token that ends an answer".into()).into());
        };
        let specials = tokenizer.special_ids().iter().filter_map(|id| tokenizer.token(*id));
        let mut voice = Self {
            tokenizer,
            format,
            stamp: format.stamp()?,
            specials: specials.filter(|token| !token.is_empty()).collect(),
            grammar: None,
            longest_prompt: config.max_context.saturating_sub(config.max_turn_tokens),
            lanes: Vec::new(),
        };
        voice.try_template()?;
        if config.constrained {
            let form = format.dialect.form();
            let thought = form
                .thought
                .map(|tags| Thought::new(tokenizer, tags, ThoughtStart::Required, &[], form.forbidden));
            let (thought, stop) = (thought.transpose()?, tokenizer.decode(&[stop_id]));
            let say = |action: &Action| voice.acted(action);
            let max_tokens = config.max_turn_tokens;
            voice.grammar = Some(Grammar::new(tokenizer, format.dialect, thought, &stop, max_tokens, say)?);
        }
        Ok(voice)
    }

    pub fn stamp(&self) -> PromptStamp {
        self.stamp.clone()
    }

    pub fn stop_ids(&self) -> &[u32] {
        &self.format.stop_ids
    }

    pub fn dialect(&self) -> Dialect {
        self.format.dialect
    }

    /// A prompt that stands alone, in tokens: without as few of the `n_past` pages, oldest first, as leave room for an
    /// answer. Without all of them if that is not enough. `forgetting` tells it without the first so many.
    pub fn fitting(
        &self,
        n_past: usize,
        forgetting: impl Fn(usize) -> Result<Vec<Message>, AgentError>,
    ) -> Result<Vec<u32>, AgentError> {
        let n_forgettable = self.format.dialect.n_forgettable(n_past);
        let mut n_forgotten = 0;
        loop {
            let ids = self.tokenizer.encode(&self.render(&forgetting(n_forgotten)?)?)?;
            if ids.len() <= self.longest_prompt || n_forgotten == n_forgettable {
                return Ok(ids);
            }
            n_forgotten += 1;
        }
    }

    pub fn begin(&mut self, n_lanes: usize) {
        self.lanes.clear();
        self.lanes.resize_with(n_lanes, || None);
    }

    pub fn enter(&mut self, lane: usize) {
        self.lanes[lane] = None;
    }

    pub fn tell(&mut self, view: &LaneView<'_>) -> Result<(Context, Vec<u32>), AgentError> {
        let dialect = self.format.dialect;
        let mut lane = self.lanes[view.lane].take().unwrap_or_else(|| Lane {
            dialogue: Dialogue::new(dialect, view.instruction().into(), view.max_steps),
            told: String::new(),
            last_id: None,
        });
        lane.dialogue.see(view.page, view.noop.copied());
        let told = match dialect.history() {
            History::Retold => {
                let forgetting = |n| Ok(dialect.messages_forgetting(&lane.dialogue, n));
                (Context::Alone, self.fitting(lane.dialogue.past().len(), forgetting)?)
            }
            History::Kept => {
                let mut messages = lane.dialogue.messages();
                let answers = messages.iter_mut().rev().filter(|message| message.role == Role::Assistant);
                for answer in answers.take(lane.dialogue.past().len()) {
                    *answer = Message::text(Role::Assistant, ANSWER);
                }
                let text = self.render(&messages)?;
                let new = self.behind(&lane, &text)?.to_owned();
                lane.told = text;
                (Context::Kept, self.tokenizer.encode(&new)?)
            }
        };
        self.lanes[view.lane] = Some(lane);
        Ok(told)
    }

    pub fn constraint(&self, page: &Page) -> Result<Option<Constraint>, AgentError> {
        let grammar = self.grammar.as_ref();
        grammar.map(|grammar| grammar.constraint(page, |action| self.acted(action))).transpose()
    }

    /// What was said, without the token that ended it.
    pub fn words_of<'i>(&self, ids: &'i [u32]) -> &'i [u32] {
        match ids.split_last() {
            Some((last, words)) if self.format.stop_ids.contains(last) => words,
            _ => ids,
        }
    }

    pub fn hear(&mut self, view: &LaneView<'_>, ids: &[u32]) -> (String, Utterance) {
        let answer = self.tokenizer.decode(self.words_of(ids));
        let lane = self.lanes[view.lane].as_mut().expect("a page was told before an answer is heard");
        lane.last_id = ids.last().copied();
        let utterance = lane.dialogue.say(Message::text(Role::Assistant, answer.as_str()), view.page);
        (answer, utterance)
    }

    /// What is new in `text` since the last answer of the lane; all of it before the first.
    fn behind<'t>(&self, lane: &Lane, text: &'t str) -> Result<&'t str, AgentError> {
        let Some(last_id) = lane.last_id else { return Ok(text) };
        let new = text.strip_prefix(&lane.told).and_then(|rest| rest.strip_prefix(ANSWER));
        let new = new.ok_or_else(|| self.rewrites())?;
        // The template ends an answer itself, unless the model did.
        let stop = self.tokenizer.decode(&[last_id]);
        let has_stopped = self.format.stop_ids.contains(&last_id);
        Ok(if has_stopped { new.strip_prefix(&stop).unwrap_or(new) } else { new })
    }

    /// The tokens of an answer with this thought and action, and of its end.
    pub fn answer(&self, thought: &str, action: &Action) -> Result<Vec<u32>, AgentError> {
        self.said(&self.format.dialect.say(thought, action), &format!("{thought}{action}"))
    }

    /// The tokens of the part of it behind the thought.
    fn acted(&self, action: &Action) -> Result<Vec<u32>, AgentError> {
        self.said(&self.format.dialect.say_action(action), &action.to_string())
    }

    /// The tokens that say `text` and end the turn; `words` are the part of it that are not the dialect's own.
    pub(super) fn said(&self, text: &str, words: &str) -> Result<Vec<u32>, AgentError> {
        let is_harmless = !self.specials.iter().any(|special| words.contains(special));
        let ids = if is_harmless { self.tokenizer.encode(text) } else { self.tokenizer.encode_plain(text) };
        let mut ids = ids?;
        ids.extend(self.format.stop_ids.first());
        Ok(ids)
    }

    pub(super) fn render(&self, messages: &[Message]) -> Result<String, AgentError> {
        let written = messages.iter().map(|message| {
            let content = self.disarmed(&message.content);
            Message { content, ..message.clone() }.to_template()
        });
        Ok(self.format.template.render(&Conversation {
            messages: written.collect(),
            tools: self.format.dialect.tools(),
            add_generation_prompt: true,
            ..Conversation::default()
        })?)
    }

    /// Text in which no special token is spelled.
    fn disarmed(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for special in self.specials.iter().filter(|special| special.chars().count() > 1) {
            if text.contains(special.as_str()) {
                let (first, rest) = special.split_at(special.chars().next().map_or(0, char::len_utf8));
                text = text.replace(special.as_str(), &format!("{first} {rest}"));
            }
        }
        text
    }

    /// Whether what the template writes behind an answer is all it changes, tried on one with a thought.
    fn try_template(&self) -> Result<(), AgentError> {
        let dialect = self.format.dialect;
        let said = dialect.say("a thought", &Action::Click("this".into()));
        let mut messages = vec![Message::text(Role::User, "one")];
        let before = self.render(&messages)?;
        if dialect.history() == History::Retold {
            return Ok(());
        }
        messages.extend([Message::text(Role::Assistant, &said), Message::text(Role::User, "two")]);
        // Spelled as it is: what is tried is what the template does to an answer, not to a page.
        let written = messages.iter().map(Message::to_template).collect();
        let after = self.format.template.render(&Conversation {
            messages: written,
            tools: dialect.tools(),
            add_generation_prompt: true,
            ..Conversation::default()
        })?;
        let rest = after.strip_prefix(&before).and_then(|rest| rest.strip_prefix(&said));
        rest.map(|_| ()).ok_or_else(|| self.rewrites())
    }

    fn rewrites(&self) -> AgentError {
        LmError::ChatTemplate(format!(
            "the chat template writes earlier turns anew when the chat goes on, so that a trip in the dialect `{}` \
             would not be the tokens that were read and said; choose one whose prompts stand alone, `{}` or `{}`",
            self.format.dialect,
            Dialect::VerlAgent,
            Dialect::ShopR1
        ))
        .into()
    }
}
