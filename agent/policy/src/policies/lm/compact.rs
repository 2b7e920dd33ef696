//! The plain dialect: pages laid out token by token, see [`crate::prompt_format::compact_renderer`].

use webshop_env::{Action, Page, SearchPage};

use crate::policies::lm::LmConfig;
use crate::policies::lm::action_grammar::Grammar;
use webshop_lm::{Constraint, Thought, ThoughtStart};
use crate::prompt_format::{Dialect, Utterance, compact as plain};
use crate::episode::PromptStamp;
use crate::error::AgentError;
use webshop_lm::Context;
use crate::policies::LaneView;
use crate::prompt_format::compact_renderer::{END, END_THINK, PromptConfig, THINK, Transcriber, encode, mark};
use webshop_lm::ShopTokenizer;

/// Reads pages aloud, a reader for each lane.
#[derive(Debug)]
pub struct PlainVoice<'a> {
    tokenizer: &'a ShopTokenizer,
    prompt: PromptConfig,
    stop_ids: [u32; 1],
    grammar: Option<Grammar>,
    readers: Vec<Transcriber>,
}

impl<'a> PlainVoice<'a> {
    pub fn new(tokenizer: &'a ShopTokenizer, config: &LmConfig) -> Result<Self, AgentError> {
        let marks = (1..=config.prompt.results_shown)
            .map(|k| tokenizer.special_id(&mark(k)))
            .collect::<Result<Vec<_>, _>>()?;
        let (prompt, stop_ids) = (config.prompt, [tokenizer.special_id(END)?]);
        let mut voice = Self { tokenizer, prompt, stop_ids, grammar: None, readers: Vec::new() };
        if config.constrained {
            let thought = Thought::new(tokenizer, (THINK, END_THINK), ThoughtStart::Offered, &marks, &[])?;
            // Buttons are told by no mark, whatever the page.
            let page = Page::Search(SearchPage { instruction: "".into() });
            let say = |action: &Action| voice.said(action, &page);
            let max_tokens = config.max_turn_tokens;
            let grammar = Grammar::new(tokenizer, Dialect::Plain, Some(thought), END, max_tokens, say)?;
            voice.grammar = Some(grammar);
        }
        Ok(voice)
    }

    pub fn stamp() -> PromptStamp {
        PromptStamp::of_words(Dialect::Plain, Dialect::Plain.version())
    }

    pub fn stop_ids(&self) -> &[u32] {
        &self.stop_ids
    }

    pub fn begin(&mut self, n_lanes: usize) {
        self.readers = vec![Transcriber::new(self.prompt); n_lanes];
    }

    pub fn enter(&mut self, lane: usize) {
        self.readers[lane] = Transcriber::new(self.prompt);
    }

    pub fn tell(&mut self, view: &LaneView<'_>) -> Result<(Context, Vec<u32>), AgentError> {
        let pieces = self.readers[view.lane].read(view.shop.catalog(), view.page, view.noop);
        Ok((Context::Kept, encode(self.tokenizer, &pieces)?))
    }

    pub fn constraint(&self, page: &Page) -> Result<Option<Constraint>, AgentError> {
        let grammar = self.grammar.as_ref();
        grammar.map(|grammar| grammar.constraint(page, |action| self.said(action, page))).transpose()
    }

    pub fn hear(tokenizer: &ShopTokenizer, view: &LaneView<'_>, ids: &[u32]) -> (String, Utterance) {
        let answer = tokenizer.decode(ids);
        let utterance = plain::parse(&answer, view.page);
        (answer, utterance)
    }

    /// The tokens that say `action` on `page` and end the turn.
    fn said(&self, action: &Action, page: &Page) -> Result<Vec<u32>, AgentError> {
        encode(self.tokenizer, &plain::utterance(&[], action, page))
    }
}
