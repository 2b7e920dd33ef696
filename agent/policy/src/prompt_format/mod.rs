//! Prompt formats: how pages become prompts, and completions become actions.
//!
//! A [`PromptFormat`] renders pages ([`PromptFormat::observation`]), prompts ([`PromptFormat::messages`]) and
//! completions ([`PromptFormat::render_completion`]), and parses completions ([`PromptFormat::parse`], which
//! never fails). A [`Conversation`] holds the turns of one episode. [`compact`] and `text` are laid out token by token
//! ([`Layout`]), for models that are trained here; the others are chats, which a checkpoint's template turns into tokens.
//! The formats follow their origins; the wording of the prompts is our own.
//!
//! | name | completion | history in the prompt | malformed completion |
//! |---|---|---|---|
//! | `compact` | `<think> … </think> click[⟨mark⟩]` | one growing context | no-op |
//! | `text` | `<think> … </think> click[…]` | one growing context of the original's text observations | no-op |
//! | `verl-agent` | `<think>…</think><action>…</action>` | new prompt per turn with the last two turns | its last 20 characters are the action, marked malformed |
//! | `ragen` | `<think>…</think><answer>…</answer>` | one growing chat | no-op |
//! | `agentgym-react` | `Thought: … Action: …` | one growing chat | the whole completion is the action, marked malformed |
//! | `tool-call` | a call of `search` or `click` | one growing chat | no-op |
//! | `shop-r1` | one JSON object: rationale and action | new prompt per turn with all pages and actions | no-op |
//! | `shop-r1-latest` | the same | new prompt per turn with all actions and the current page | no-op |
//! | `shop-r1-minimal` | the same | as `shop-r1-latest`, without instructions on the completion's form | no-op |
//!
//! This module has no tokens, except in layouts, and no rewards.

mod completion;
mod conversation;
mod format;
mod layout;
mod tags;

mod agentgym_react;
pub mod compact;
mod compact_renderer;
mod ragen;
mod shop_r1;
mod text;
mod tool_call;
mod verl_agent;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use webshop_env::{Action, Compat, NoopReason, Page};
use webshop_lm::chat::Message;

use crate::next_action::action::NextAction;
use crate::next_action::example::{Example, rationale_of};

pub(crate) use self::agentgym_react::{ACKNOWLEDGEMENT, parse as parse_react};
use self::compact_renderer::PromptConfig;
pub use self::completion::{CompletionForm, ParsedCompletion};
pub use self::conversation::{Conversation, Observed, PastTurn};
use self::format::Format;
pub use self::format::{History, ShopR1Variant};
pub use self::layout::{Layout, PageRenderer};
pub(crate) use self::shop_r1::page_html;

/// A prompt format. Serialized as its [name](PromptFormat::name).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PromptFormat {
    /// This project's own: few tokens, and a mark for each listed product.
    #[default]
    Compact,
    /// The original's text observation and action language, with thoughts.
    Text,
    /// One prompt per turn, with tags, as in verl-agent.
    VerlAgent,
    /// A chat with tags, as in RAGEN.
    Ragen,
    /// A ReAct chat, as in AgentGym's trajectories.
    AgentgymReact,
    /// Function calls.
    ToolCall,
    /// Pages as simplified HTML and completions as JSON, as in Shop-R1.
    ShopR1(ShopR1Variant),
}

impl PromptFormat {
    /// All formats.
    pub const ALL: [PromptFormat; 9] = [
        Self::Compact,
        Self::Text,
        Self::VerlAgent,
        Self::Ragen,
        Self::AgentgymReact,
        Self::ToolCall,
        Self::ShopR1(ShopR1Variant::AllPages),
        Self::ShopR1(ShopR1Variant::LatestPage),
        Self::ShopR1(ShopR1Variant::Minimal),
    ];

    fn format(self) -> &'static dyn Format {
        match self {
            Self::Compact => &layout::COMPACT,
            Self::Text => &layout::TEXT,
            Self::VerlAgent => &verl_agent::VerlAgent,
            Self::Ragen => &ragen::Ragen,
            Self::AgentgymReact => &agentgym_react::AgentgymReact,
            Self::ToolCall => &tool_call::ToolCalls,
            Self::ShopR1(ShopR1Variant::AllPages) => &shop_r1::ALL_PAGES,
            Self::ShopR1(ShopR1Variant::LatestPage) => &shop_r1::LATEST_PAGE,
            Self::ShopR1(ShopR1Variant::Minimal) => &shop_r1::MINIMAL,
        }
    }

    /// The name, as in flags, configurations and recordings.
    pub fn name(self) -> &'static str {
        self.format().name()
    }

    /// The version of the layout, recorded with every result. A change of layout changes it.
    pub fn version(self) -> &'static str {
        self.format().version()
    }

    /// How a turn's prompt relates to earlier turns.
    pub fn history(self) -> History {
        self.format().history()
    }

    /// The layout, which shows as much of a page as `compact` says if it is `compact`; `None` for a chat.
    pub fn layout(self, compact: PromptConfig) -> Option<Layout> {
        match self {
            Self::Compact => Some(Layout::Compact(compact)),
            Self::Text => Some(Layout::Text),
            _ => None,
        }
    }

    /// Whether a chat template turns it into tokens.
    pub fn is_chat(self) -> bool {
        !matches!(self, Self::Compact | Self::Text)
    }

    /// A page as prompts show it. For `compact`, which renders tokens, the text of the page.
    pub fn observation(self, page: &Page) -> String {
        self.format().observation(page)
    }

    /// Adds the page of the next turn; `noop` is why the previous action did nothing.
    pub fn add_page(self, conversation: &mut Conversation, page: &Page, noop: Option<NoopReason>) {
        let observation = self.observation(page);
        conversation.add_observation(Observed { observation, available: page.available_actions(), noop });
    }

    /// Adds and parses the completion of the current turn, whose page is `page`, by the rules of the shop.
    ///
    /// # Panics
    /// If no page was added since the last completion.
    pub fn add_completion(
        self,
        conversation: &mut Conversation,
        completion: Message,
        page: &Page,
        rules: Compat,
    ) -> ParsedCompletion {
        let parsed = self.parse(&completion, page, rules);
        conversation.add_completion(completion, parsed.action.clone());
        parsed
    }

    /// The prompt of the current turn.
    ///
    /// # Panics
    /// If no page was added since the last completion.
    pub fn messages(self, conversation: &Conversation) -> Vec<Message> {
        self.messages_without(conversation, 0)
    }

    /// The prompt without the pages of the first `n_dropped` turns, for formats that can drop pages.
    pub(crate) fn messages_without(self, conversation: &Conversation, n_dropped: usize) -> Vec<Message> {
        self.format().messages(conversation, n_dropped)
    }

    /// How many of `n` past pages can be dropped from a prompt.
    pub fn n_droppable(self, n: usize) -> usize {
        if self == Self::ShopR1(ShopR1Variant::AllPages) { n } else { 0 }
    }

    /// Whether this is a format of Shop-R1.
    pub fn is_shop_r1(self) -> bool {
        matches!(self, Self::ShopR1(_))
    }

    /// Whether single steps have prompts in this format: in those of Shop-R1 and, as parts of demonstrated episodes, in layouts.
    pub fn has_single_steps(self) -> bool {
        self.is_shop_r1() || !self.is_chat()
    }

    /// The prompt of a single-step example, without the pages of its first `n_dropped` steps.
    /// `with_rationales` includes past rationales. `None` if this is not a format of Shop-R1.
    pub fn single_step_messages(
        self,
        example: &Example,
        n_dropped: usize,
        with_rationales: bool,
    ) -> Option<Vec<Message>> {
        let Self::ShopR1(variant) = self else { return None };
        Some(shop_r1::example_messages(example, variant, n_dropped, with_rationales))
    }

    /// The right completion of a single-step example: its rationale and action.
    pub fn single_step_completion(example: &Example) -> String {
        Self::next_action_completion(&example.rationale, &example.action)
    }

    /// A completion in Shop-R1's form with this rationale and action.
    pub fn next_action_completion(rationale: &str, action: &NextAction) -> String {
        shop_r1::render_step(rationale, action)
    }

    /// The tools the model may call, as JSON schemas; `None` if completions are text.
    pub fn tools(self) -> Option<Vec<Value>> {
        self.format().tools()
    }

    /// Parses a completion given on `page` of a shop with these rules. Never fails: what cannot be parsed is a no-op.
    ///
    /// Also a tool call is the action that its text `search[…]` or `click[…]` is to the shop. The formats of Shop-R1 name
    /// their actions otherwise, which `rules` do not change.
    pub fn parse(self, completion: &Message, page: &Page, rules: Compat) -> ParsedCompletion {
        self.format().parse(completion, page, rules)
    }

    /// A completion as one text: a structured tool call is written as a model writes it.
    pub fn completion_text(self, completion: &Message) -> String {
        self.format().completion_text(completion)
    }

    /// The inverse of [`PromptFormat::completion_text`]. A tool call gets the id `call_id`.
    pub fn completion_message(self, text: &str, call_id: &str) -> Message {
        self.format().completion_message(text, call_id)
    }

    /// The completion with this thought and action. The thought is left out if the format has none.
    pub fn render_completion(self, thought: &str, action: &Action) -> String {
        let format = self.format();
        let thought = match format.form().thought {
            Some((opening, closing)) => format!("{opening}{}{closing}", format.escape_thought(thought)),
            None => String::new(),
        };
        thought + &format.render_action(action)
    }

    /// The part of a completion after the thought.
    pub fn render_action(self, action: &Action) -> String {
        self.format().render_action(action)
    }

    /// The fixed text of completions.
    pub fn form(self) -> CompletionForm {
        self.format().form()
    }

    /// The thought that a demonstration of `action` writes: `thought` itself, or in Shop-R1 a sentence.
    pub fn demonstrated_thought(self, thought: &str, action: &Action) -> String {
        if self.is_shop_r1() { rationale_of(thought, action) } else { thought.to_owned() }
    }
}

impl fmt::Display for PromptFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PromptFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            format!("`{name}` is not a prompt format; choose one of {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

impl Serialize for PromptFormat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for PromptFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
