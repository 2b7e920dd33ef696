//! The encoder of layouts, the prompt formats without a chat template.

use webshop_env::{Action, Page, SearchPage};
use webshop_lm::{BpeTokenizer, Constraint, Context, Thought, ThoughtStart};

use crate::episode::PromptProvenance;
use crate::error::AgentError;
use crate::policies::lm::action_grammar::ActionGrammar;
use crate::policies::lm::config::LmConfig;
use crate::policies::lm::encoder::TurnEncoder;
use crate::policies::policy::LaneView;
use crate::prompt_format::compact::{END, END_THINK, THINK, TURN, encode_pieces, mark};
use crate::prompt_format::{Layout, PageRenderer, ParsedCompletion};

/// Encodes pages in a layout.
#[derive(Debug)]
pub(super) struct LayoutEncoder<'a> {
    tokenizer: &'a BpeTokenizer,
    layout: Layout,
    stop_ids: [u32; 1],
    grammar: Option<ActionGrammar>,
    /// One per lane.
    renderers: Vec<PageRenderer>,
}

impl<'a> LayoutEncoder<'a> {
    pub(super) fn new(
        tokenizer: &'a BpeTokenizer,
        layout: Layout,
        config: &LmConfig,
    ) -> Result<Self, AgentError> {
        let marks =
            (1..=layout.n_marks()).map(|k| tokenizer.special_id(&mark(k))).collect::<Result<Vec<_>, _>>()?;
        for token in [TURN, THINK, END_THINK] {
            tokenizer.special_id(token)?;
        }
        let stop_ids = [tokenizer.special_id(END)?];
        let mut encoder = Self { tokenizer, layout, stop_ids, grammar: None, renderers: Vec::new() };
        if config.constrained {
            let thought = Thought::new(tokenizer, (THINK, END_THINK), ThoughtStart::Offered, &marks, &[])?;
            // A button is rendered in the same way on every page.
            let page = Page::Search(SearchPage { instruction: "".into() });
            let encode = |action: &Action| encoder.encode_action(action, &page);
            let grammar = ActionGrammar::new(
                tokenizer,
                layout.prompt_format(),
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
        encode_pieces(self.tokenizer, &self.layout.render_completion("", action, page))
    }
}

impl TurnEncoder for LayoutEncoder<'_> {
    fn provenance(&self) -> PromptProvenance {
        let prompt_format = self.layout.prompt_format();
        PromptProvenance::new(prompt_format, prompt_format.version())
    }

    fn stop_ids(&self) -> &[u32] {
        &self.stop_ids
    }

    fn begin_rollout(&mut self, n_lanes: usize) {
        self.renderers = vec![self.layout.renderer(); n_lanes];
    }

    fn begin_episode(&mut self, lane: usize) {
        self.renderers[lane] = self.layout.renderer();
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
        let parsed = self.layout.parse(&text, view.page, view.shop.config().compat);
        (text, parsed)
    }
}
