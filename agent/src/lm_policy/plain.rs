//! The plain dialect: pages laid out token by token, see [`crate::prompt`].

use std::sync::Arc;

use webshop_env::{Action, Page};

use super::LmConfig;
use crate::constraint::{Constraint, FreeText, Thought, ThoughtStart};
use crate::dialect::{Dialect, Utterance, plain};
use crate::episode::PromptStamp;
use crate::error::AgentError;
use crate::generate::Context;
use crate::policy::LaneView;
use crate::prompt::{END, END_THINK, PromptConfig, THINK, Transcriber, encode, mark};
use crate::tokenizer::ShopTokenizer;

/// Reads pages aloud, a reader for each lane.
#[derive(Debug)]
pub struct PlainVoice<'a> {
    tokenizer: &'a ShopTokenizer,
    prompt: PromptConfig,
    stop_ids: [u32; 1],
    search: Arc<FreeText>,
    thought: Arc<Thought>,
    readers: Vec<Transcriber>,
}

impl<'a> PlainVoice<'a> {
    pub fn new(tokenizer: &'a ShopTokenizer, config: &LmConfig) -> Result<Self, AgentError> {
        let marks = (1..=config.prompt.results_shown)
            .map(|k| tokenizer.special_id(&mark(k)))
            .collect::<Result<Vec<_>, _>>()?;
        // A thought, a search and the tokens around them fit into a turn, so that none is cut.
        let (max_thought, max_words) = (config.max_turn_tokens / 2, config.max_turn_tokens / 4);
        let form = Dialect::Plain.form();
        let closing = format!("{}{END}", form.search.1);
        let search = FreeText::new(tokenizer, (form.search.0, &closing), max_words, form.forbidden)?;
        let thought =
            Thought::new(tokenizer, (THINK, END_THINK), ThoughtStart::Offered, max_thought, &marks, &[])?;
        Ok(Self {
            tokenizer,
            prompt: config.prompt,
            stop_ids: [tokenizer.special_id(END)?],
            search: Arc::new(search),
            thought: Arc::new(thought),
            readers: Vec::new(),
        })
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

    pub fn constraint(&self, page: &Page) -> Result<Constraint, AgentError> {
        let available = page.available_actions();
        let clicks = available.clickables.into_iter().filter(|label| label != "search");
        let completions = clicks
            .map(|label| encode(self.tokenizer, &plain::utterance(&[], &Action::Click(label), page)))
            .collect::<Result<Vec<_>, _>>()?;
        // The shop takes a search on every page; the results page is where a customer may want another.
        let search = (available.has_search_bar || completions.is_empty()).then(|| self.search.clone());
        Constraint::new(&completions, search, Some(self.thought.clone()))
    }

    pub fn hear(tokenizer: &ShopTokenizer, view: &LaneView<'_>, ids: &[u32]) -> (String, Utterance) {
        let answer = tokenizer.decode(ids);
        let utterance = plain::parse(&answer, view.page);
        (answer, utterance)
    }
}
