//! Layouts: prompt formats that a model trained here reads token by token, without a chat template.

use webshop_env::{Action, Compat, NoopReason, Page};
use webshop_lm::chat::{Message, Role};

use crate::prompt_format::compact_renderer::{
    CompactRenderer, END_THINK, PROMPT_VERSION, Piece, PromptConfig, THINK,
};
use crate::prompt_format::completion::{CompletionForm, ParsedCompletion};
use crate::prompt_format::conversation::Conversation;
use crate::prompt_format::format::Format;
use crate::prompt_format::{PromptFormat, compact, text};

/// A prompt format without a chat template. One growing context holds an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `compact`: few tokens, and a mark for each listed product.
    Compact(PromptConfig),
    /// `text`: the original's text observation.
    Text,
}

impl Layout {
    /// The prompt format.
    pub fn prompt_format(self) -> PromptFormat {
        match self {
            Self::Compact(_) => PromptFormat::Compact,
            Self::Text => PromptFormat::Text,
        }
    }

    /// A renderer at the start of an episode.
    pub fn renderer(self) -> PageRenderer {
        match self {
            Self::Compact(config) => PageRenderer::Compact(CompactRenderer::new(config)),
            Self::Text => PageRenderer::Text,
        }
    }

    /// The number of listed products with a mark.
    pub(crate) fn n_marks(self) -> usize {
        match self {
            Self::Compact(config) => config.results_shown,
            Self::Text => 0,
        }
    }

    /// A completion on `page` with its end token; without tags if `thought` is empty.
    pub fn render_completion(self, thought: &str, action: &Action, page: &Page) -> Vec<Piece> {
        match self {
            Self::Compact(_) => compact::render_completion(thought, action, page),
            Self::Text => text::render_completion(thought, action),
        }
    }

    /// Parses the decoded completion of one turn on `page` of a shop with these rules. Never fails.
    pub fn parse(self, completion: &str, page: &Page, rules: Compat) -> ParsedCompletion {
        match self {
            Self::Compact(_) => compact::parse(completion, page, rules),
            Self::Text => text::parse(completion, rules),
        }
    }
}

/// Renders the pages of one episode.
#[derive(Clone, Debug)]
pub enum PageRenderer {
    /// In `compact`, which keeps what the context already holds.
    Compact(CompactRenderer),
    /// In `text`.
    Text,
}

impl PageRenderer {
    /// What `page` adds to the context, up to and including the token that opens the model's turn; `noop` is why the
    /// previous action did nothing.
    pub fn render(&mut self, page: &Page, noop: Option<NoopReason>) -> Vec<Piece> {
        match self {
            Self::Compact(renderer) => renderer.render(page, noop),
            Self::Text => text::render(page),
        }
    }
}

/// A layout as a chat, for models that do not know it: pages and actions as text.
pub(super) struct LayoutFormat {
    name: &'static str,
    version: &'static str,
    /// Parses a completion on a page of a shop with these rules.
    parse: fn(&str, &Page, Compat) -> ParsedCompletion,
}

pub(super) const COMPACT: LayoutFormat =
    LayoutFormat { name: "compact", version: PROMPT_VERSION, parse: compact::parse };

pub(super) const TEXT: LayoutFormat = LayoutFormat {
    name: "text",
    version: text::VERSION,
    parse: |completion, _, rules| text::parse(completion, rules),
};

impl Format for LayoutFormat {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> &'static str {
        self.version
    }

    fn form(&self) -> CompletionForm {
        CompletionForm {
            thought: Some((THINK, END_THINK)),
            search: (" search[", "]"),
            forbidden: &['[', ']'],
        }
    }

    fn messages(&self, conversation: &Conversation, _n_dropped: usize) -> Vec<Message> {
        let user = |observation: &str| Message::text(Role::User, observation);
        let past = conversation.past().iter();
        let past = past.flat_map(|turn| [user(&turn.observed.observation), turn.completion.clone()]);
        past.chain([user(&conversation.current().observation)]).collect()
    }

    fn parse(&self, completion: &Message, page: &Page, rules: Compat) -> ParsedCompletion {
        (self.parse)(&completion.content, page, rules)
    }

    fn render_action(&self, action: &Action) -> String {
        action.to_string()
    }
}
