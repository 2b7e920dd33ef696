//! The encoder of the prompt format `compact`.

use webshop_env::{Action, Page, SearchPage};
use webshop_lm::{BpeTokenizer, Constraint, Context, Thought, ThoughtStart};

use crate::episode::PromptStamp;
use crate::error::AgentError;
use crate::policies::lm::action_grammar::ActionGrammar;
use crate::policies::lm::config::LmConfig;
use crate::policies::lm::encoder::TurnEncoder;
use crate::policies::policy::LaneView;
use crate::prompt_format::compact::{
    CompactRenderer, END, END_THINK, PromptConfig, THINK, encode_pieces, mark, parse, render_completion,
};
use crate::prompt_format::{ParsedCompletion, PromptFormat};

/// Encodes pages in the layout of [`CompactRenderer`].
#[derive(Debug)]
pub(super) struct CompactEncoder<'a> {
    tokenizer: &'a BpeTokenizer,
    prompt: PromptConfig,
    stop_ids: [u32; 1],
    grammar: Option<ActionGrammar>,
    /// One per lane.
    renderers: Vec<CompactRenderer>,
}

impl<'a> CompactEncoder<'a> {
    pub(super) fn new(tokenizer: &'a BpeTokenizer, config: &LmConfig) -> Result<Self, AgentError> {
        let marks = (1..=config.prompt.results_shown)
            .map(|k| tokenizer.special_id(&mark(k)))
            .collect::<Result<Vec<_>, _>>()?;
        let (prompt, stop_ids) = (config.prompt, [tokenizer.special_id(END)?]);
        let mut encoder = Self { tokenizer, prompt, stop_ids, grammar: None, renderers: Vec::new() };
        if config.constrained {
            let thought = Thought::new(tokenizer, (THINK, END_THINK), ThoughtStart::Offered, &marks, &[])?;
            // A button is rendered in the same way on every page.
            let page = Page::Search(SearchPage { instruction: "".into() });
            let encode = |action: &Action| encoder.encode_action(action, &page);
            let grammar = ActionGrammar::new(
                tokenizer,
                PromptFormat::Compact,
                Some(thought),
                END,
                config.max_turn_tokens,
                encode,
            )?;
            encoder.grammar = Some(grammar);
        }
        Ok(encoder)
    }

    /// The tokens of `action` on `page`, the end token included.
    fn encode_action(&self, action: &Action, page: &Page) -> Result<Vec<u32>, AgentError> {
        encode_pieces(self.tokenizer, &render_completion("", action, page))
    }
}

impl TurnEncoder for CompactEncoder<'_> {
    fn stamp(&self) -> PromptStamp {
        PromptStamp::new(PromptFormat::Compact, PromptFormat::Compact.version())
    }

    fn stop_ids(&self) -> &[u32] {
        &self.stop_ids
    }

    fn begin(&mut self, n_lanes: usize) {
        self.renderers = vec![CompactRenderer::new(self.prompt); n_lanes];
    }

    fn enter(&mut self, lane: usize) {
        self.renderers[lane] = CompactRenderer::new(self.prompt);
    }

    fn encode(&mut self, view: &LaneView<'_>) -> Result<(Context, Vec<u32>), AgentError> {
        let pieces = self.renderers[view.lane].render(view.page, view.noop);
        Ok((Context::Continue, encode_pieces(self.tokenizer, &pieces)?))
    }

    fn constraint(&self, page: &Page) -> Result<Option<Constraint>, AgentError> {
        let grammar = self.grammar.as_ref();
        grammar.map(|grammar| grammar.constraint(page, |action| self.encode_action(action, page))).transpose()
    }

    fn decode(&mut self, view: &LaneView<'_>, ids: &[u32]) -> (String, ParsedCompletion) {
        let text = self.tokenizer.decode(ids);
        let parsed = parse(&text, view.page, view.shop.config().compat);
        (text, parsed)
    }
}
