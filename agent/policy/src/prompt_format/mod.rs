//! What is said between shop and model: the prompt formats in use, as named presets.
//!
//! A [`Dialect`] says how pages are shown, what of the past is shown again ([`History`]), how an answer is
//! written ([`Dialect::say`]) and read ([`Dialect::parse`], which never fails), and what a malformed answer
//! does. [`plain`] is this project's own, laid out token by token in [`crate::prompt_format::compact_renderer`]; the others are chats,
//! told by a [`crate::prompt_format::conversation::Dialogue`] and put into tokens by the checkpoint's own template. The prompts are our
//! own words; what a preset keeps of its origin is the format.
//!
//! | name | answer | past | malformed answer |
//! |---|---|---|---|
//! | `plain` | `<think> … </think> click[⟨mark⟩]` | one growing context | passes the turn |
//! | `verl-agent` | `<think>…</think><action>…</action>` | each turn a prompt of its own, with the last two turns | its last 20 characters are the action, marked malformed |
//! | `ragen` | `<think>…</think><answer>…</answer>` | one growing chat | passes the turn |
//! | `agentgym-react` | `Thought: … Action: …` | one growing chat | the whole answer is the action, marked malformed |
//! | `tool-call` | a call of `search` or `click` | one growing chat | passes the turn |
//! | `shop-r1` | one JSON object, rationale and action | each turn a prompt of its own, with all pages and actions | passes the turn |
//! | `shop-r1-latest` | the same | the same, with all actions | passes the turn |
//! | `shop-r1-minimal` | the same | the same, with all actions and without saying what form answers have | passes the turn |
//!
//! Nothing here knows tokens or rewards: what a malformed answer costs is the trainer's choice.

pub mod agentgym_react;
pub mod compact;
pub mod compact_renderer;
pub mod conversation;
pub mod ragen;
pub mod shop_r1;
pub mod tags;
#[cfg(test)]
mod tests;
pub mod tool_call;
pub mod verl_agent;


use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use webshop_env::{Action, Page};

use webshop_lm::{Message, Role};
use crate::prompt_format::conversation::Dialogue;
use crate::prompt_format::compact_renderer::PROMPT_VERSION;
use crate::next_action::{Sample, rationale_of};

/// A prompt format by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// This project's own: few tokens, and a mark for each candidate.
    #[default]
    Plain,
    /// Independent step prompts with tags, as verl-agent trains on.
    VerlAgent,
    /// A chat with tags, as RAGEN trains on.
    Ragen,
    /// A chat in the manner of ReAct, as AgentGym's trajectories are written.
    AgentgymReact,
    /// Function calls.
    ToolCall,
    /// Pages as HTML and answers as JSON, as Shop-R1 has them.
    #[serde(rename = "shop-r1")]
    ShopR1,
    /// The same with the present page alone.
    #[serde(rename = "shop-r1-latest")]
    ShopR1Latest,
    /// The same for models that know the form of answers.
    #[serde(rename = "shop-r1-minimal")]
    ShopR1Minimal,
}

/// What of the past stands before a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// Everything as it was said: a turn's prompt is what is new, and a trip is one sequence of tokens.
    Kept,
    /// What the dialect tells of it anew: every turn is a sequence of tokens of its own.
    Retold,
}

/// One parsed agent turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Utterance {
    /// The written thought, trimmed; `None` if the turn has no complete one.
    pub thought: Option<String>,
    /// What is done.
    pub action: Action,
    /// Whether the answer has the form that the dialect asks for. The action may be inadmissible all the same.
    pub is_well_formed: bool,
    /// Whether the customer leaves the shop; the action is then no action.
    pub leaves: bool,
}

/// The outer form of answers, for decoding within a grammar: an optional thought, then a click or a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerForm {
    /// What stands before and behind a thought, if the dialect wants one.
    pub thought: Option<(&'static str, &'static str)>,
    /// What stands before and behind the words of a search.
    pub search: (&'static str, &'static str),
    /// What thoughts and searches may not hold, as it would end or break them; line breaks neither.
    pub forbidden: &'static [char],
}

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 8] = [
        Self::Plain,
        Self::VerlAgent,
        Self::Ragen,
        Self::AgentgymReact,
        Self::ToolCall,
        Self::ShopR1,
        Self::ShopR1Latest,
        Self::ShopR1Minimal,
    ];

    /// The name of the preset.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::VerlAgent => "verl-agent",
            Self::Ragen => "ragen",
            Self::AgentgymReact => "agentgym-react",
            Self::ToolCall => "tool-call",
            Self::ShopR1 => "shop-r1",
            Self::ShopR1Latest => "shop-r1-latest",
            Self::ShopR1Minimal => "shop-r1-minimal",
        }
    }

    /// Version of the layout. It travels with every result; a change of layout is a change of version.
    pub fn version(self) -> &'static str {
        match self {
            Self::Plain => PROMPT_VERSION,
            Self::VerlAgent => verl_agent::VERSION,
            Self::Ragen => ragen::VERSION,
            Self::AgentgymReact => agentgym_react::VERSION,
            Self::ToolCall => tool_call::VERSION,
            Self::ShopR1 => shop_r1::VERSION,
            Self::ShopR1Latest => shop_r1::LATEST_VERSION,
            Self::ShopR1Minimal => shop_r1::MINIMAL_VERSION,
        }
    }

    /// What of the past stands before a turn.
    pub fn history(self) -> History {
        match self {
            Self::Plain | Self::Ragen | Self::AgentgymReact | Self::ToolCall => History::Kept,
            Self::VerlAgent | Self::ShopR1 | Self::ShopR1Latest | Self::ShopR1Minimal => History::Retold,
        }
    }

    /// A page as the dialect shows it. In `plain`, which shows tokens, it is the text of the page.
    pub fn observe(self, page: &Page) -> String {
        match self {
            Self::VerlAgent => verl_agent::observe(page),
            Self::ShopR1 | Self::ShopR1Latest | Self::ShopR1Minimal => shop_r1::observe(page),
            Self::Plain | Self::Ragen | Self::AgentgymReact | Self::ToolCall => page.text(),
        }
    }

    /// What the model is asked with for the next turn of the trip.
    pub fn messages(self, trip: &Dialogue) -> Vec<Message> {
        match self {
            Self::Plain => compact::messages(trip),
            Self::VerlAgent => verl_agent::messages(trip),
            Self::Ragen => ragen::messages(trip),
            Self::AgentgymReact => agentgym_react::messages(trip),
            Self::ToolCall => tool_call::messages(trip),
            Self::ShopR1 | Self::ShopR1Latest | Self::ShopR1Minimal => self.messages_forgetting(trip, 0),
        }
    }

    /// The same without the pages of the first `n` turns, where the dialect can do without them.
    pub(crate) fn messages_forgetting(self, trip: &Dialogue, n: usize) -> Vec<Message> {
        match self.shop_r1_prompt() {
            Some(prompt) => shop_r1::messages(trip, prompt, n),
            None => self.messages(trip),
        }
    }

    /// How many of `n` past pages could be left out of a prompt.
    pub fn n_forgettable(self, n: usize) -> usize {
        if self == Self::ShopR1 { n } else { 0 }
    }

    /// Whether answers are Shop-R1's, which can be judged one by one.
    pub fn is_shop_r1(self) -> bool {
        self.shop_r1_prompt().is_some()
    }

    /// What a recorded step is asked with, without the pages of the first `n_forgotten` turns, and with past rationales if
    /// it is `recalling` them; `None` if answers are not Shop-R1's.
    pub fn question(self, sample: &Sample, n_forgotten: usize, recalling: bool) -> Option<Vec<Message>> {
        self.shop_r1_prompt().map(|prompt| shop_r1::question(sample, prompt, n_forgotten, recalling))
    }

    fn shop_r1_prompt(self) -> Option<shop_r1::Prompt> {
        match self {
            Self::ShopR1 => Some(shop_r1::Prompt::Paper),
            Self::ShopR1Latest => Some(shop_r1::Prompt::Latest),
            Self::ShopR1Minimal => Some(shop_r1::Prompt::Minimal),
            Self::Plain | Self::VerlAgent | Self::Ragen | Self::AgentgymReact | Self::ToolCall => None,
        }
    }

    /// The tools that the model may call, as JSON schemas; `None` where answers are text.
    pub fn tools(self) -> Option<Vec<Value>> {
        (self == Self::ToolCall).then(tool_call::tools)
    }

    /// Reads an answer given on `page`. Never fails: what cannot be understood passes the turn.
    pub fn parse(self, answer: &Message, page: &Page) -> Utterance {
        let text = answer.content.trim();
        match self {
            Self::Plain => compact::parse(text, page),
            Self::VerlAgent => verl_agent::parse(text),
            Self::Ragen => ragen::parse(text),
            Self::AgentgymReact => agentgym_react::parse(text),
            Self::ToolCall => tool_call::parse(answer),
            Self::ShopR1 | Self::ShopR1Latest | Self::ShopR1Minimal => shop_r1::parse(text, page),
        }
    }

    /// An answer as one text: a call that a server handed out apart stands where a model of our own writes it.
    pub fn written(self, answer: &Message) -> String {
        match self {
            Self::ToolCall => tool_call::written(answer),
            _ => answer.content.clone(),
        }
    }

    /// The answer that was [`Dialect::written`] so, as servers have it; a call in it is called `id`.
    pub fn answered(self, written: &str, id: &str) -> Message {
        match self {
            Self::ToolCall => tool_call::answered(written, id),
            _ => Message::text(Role::Assistant, written),
        }
    }

    /// An answer with this thought and action; what the dialect has no place for is left out.
    pub fn say(self, thought: &str, action: &Action) -> String {
        let thought = match self.form().thought {
            Some((opening, closing)) => format!("{opening}{}{closing}", self.in_thought(thought)),
            None => String::new(),
        };
        thought + &self.say_action(action)
    }

    /// The part of an answer behind the thought.
    pub fn say_action(self, action: &Action) -> String {
        match self {
            Self::Plain | Self::AgentgymReact => action.to_string(),
            Self::VerlAgent => format!("<action>{action}</action>"),
            Self::Ragen => format!("<answer>{action}</answer>"),
            Self::ToolCall => tool_call::say(action),
            Self::ShopR1 | Self::ShopR1Latest | Self::ShopR1Minimal => shop_r1::say(action),
        }
    }

    /// The outer form of answers.
    pub fn form(self) -> AnswerForm {
        match self {
            Self::Plain => compact::FORM,
            Self::VerlAgent => verl_agent::FORM,
            Self::Ragen => ragen::FORM,
            Self::AgentgymReact => agentgym_react::FORM,
            Self::ToolCall => tool_call::FORM,
            Self::ShopR1 | Self::ShopR1Latest | Self::ShopR1Minimal => shop_r1::FORM,
        }
    }

    /// What is demonstrated as the reason of `action`, where this was thought.
    pub fn reason(self, thought: &str, action: &Action) -> String {
        if self.is_shop_r1() { rationale_of(thought, action) } else { thought.to_owned() }
    }

    /// A thought as it can stand in an answer.
    fn in_thought(self, thought: &str) -> String {
        if self.is_shop_r1() { shop_r1::in_string(thought) } else { thought.to_owned() }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name).ok_or_else(|| {
            format!("no dialect is called `{name}`; there are {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

impl Utterance {
    /// A turn whose action is all there is to say of it.
    fn of(thought: Option<String>, action: Action, is_well_formed: bool) -> Self {
        Self { thought, action, is_well_formed, leaves: false }
    }
}
