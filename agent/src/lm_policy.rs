//! A language model that shops.
//!
//! [`LmPolicy`] keeps, for each lane, a [`Transcriber`] that turns pages into tokens, and a [`Generator`]
//! whose contexts have read them. A turn feeds only what is new since the last one, samples until the end
//! mark, and parses what was said. A lane with no room left for the page and an answer gives up.

use std::sync::Arc;

use webshop_env::{Action, Page};
use webshop_products::Seed;

use crate::constraint::{Constraint, FreeText, Thought, ThoughtStart};
use crate::dialect::{Dialect, plain};
use crate::episode::{PromptStamp, TurnTokens};
use crate::error::AgentError;
use crate::generate::{Context, Generator, GeneratorConfig, Request};
use crate::policy::{LaneView, Move, Policy};
use crate::prompt::{END, END_THINK, PromptConfig, THINK, Transcriber, encode, mark};
use crate::qwen2::{Decoder, Qwen2};
use crate::sampler::{Sampler, SamplingCoordinates};
use crate::tokenizer::ShopTokenizer;

/// What bounds and shapes the model's turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LmConfig {
    /// How pages are read.
    pub prompt: PromptConfig,
    /// How tokens are drawn.
    pub sampler: Sampler,
    /// Tokens of a whole episode, pages and answers.
    pub max_context: usize,
    /// Tokens of one answer.
    pub max_turn_tokens: usize,
    /// Whether only admissible actions can be said. Log-probabilities are then those of the constrained
    /// distribution, which the trainer does not score under: for rollouts and evaluation only.
    pub constrained: bool,
}

/// A model with its tokenizer, shopping on many lanes.
#[derive(Debug)]
pub struct LmPolicy<'a> {
    decoder: Arc<Decoder>,
    tokenizer: &'a ShopTokenizer,
    config: LmConfig,
    seed: Seed,
    stop_id: u32,
    search: Arc<FreeText>,
    thought: Arc<Thought>,
    generator: Option<Generator>,
    readers: Vec<Transcriber>,
}

impl<'a> LmPolicy<'a> {
    /// A customer with the weights that `model` has now; later steps of the optimizer do not reach it.
    pub fn new(
        model: &Qwen2,
        tokenizer: &'a ShopTokenizer,
        config: LmConfig,
        seed: Seed,
    ) -> Result<Self, AgentError> {
        let marks = (1..=config.prompt.results_shown)
            .map(|k| tokenizer.special_id(&mark(k)))
            .collect::<Result<Vec<_>, _>>()?;
        // A thought, a search and the tokens around them fit into a turn, so that none is cut.
        let (max_thought, max_words) = (config.max_turn_tokens / 2, config.max_turn_tokens / 4);
        let search = FreeText::new(tokenizer, (" search[", &format!("]{END}")), max_words)?;
        let thought =
            Thought::new(tokenizer, (THINK, END_THINK), ThoughtStart::Offered, max_thought, &marks)?;
        Ok(Self {
            decoder: Arc::new(model.decoder()?),
            tokenizer,
            config,
            seed,
            stop_id: tokenizer.special_id(END)?,
            search: Arc::new(search),
            thought: Arc::new(thought),
            generator: None,
            readers: Vec::new(),
        })
    }

    fn request(&mut self, view: &LaneView<'_>) -> Result<Request, AgentError> {
        let pieces = self.readers[view.lane].read(view.shop.catalog(), view.page, view.noop);
        let at = view.coordinates;
        Ok(Request {
            lane: view.lane,
            context: Context::Kept,
            prompt_ids: encode(self.tokenizer, &pieces)?,
            coordinates: SamplingCoordinates {
                step: at.step,
                shop: at.shop,
                goal: u64::from(at.goal.0),
                sample: at.sample,
                turn: view.turn as u64,
                token: 0,
            },
            constraint: if self.config.constrained { Some(self.constraint(view.page)?) } else { None },
            max_new_tokens: self.config.max_turn_tokens,
        })
    }

    /// The admissible actions of `page` in the words of the dialect.
    fn constraint(&self, page: &Page) -> Result<Constraint, AgentError> {
        let available = page.available_actions();
        let clicks = available.clickables.into_iter().filter(|label| label != "search");
        let completions = clicks
            .map(|label| encode(self.tokenizer, &plain::utterance(&[], &Action::Click(label), page)))
            .collect::<Result<Vec<_>, _>>()?;
        // The shop takes a search on every page; the results page is where a customer may want another.
        let search = (available.has_search_bar || completions.is_empty()).then(|| self.search.clone());
        Constraint::new(&completions, search, Some(self.thought.clone()))
    }
}

impl Policy for LmPolicy<'_> {
    fn name(&self) -> &'static str {
        "lm"
    }

    fn begin(&mut self, n_lanes: usize) -> Result<(), AgentError> {
        let config = GeneratorConfig {
            n_lanes,
            capacity: self.config.max_context,
            sampler: self.config.sampler,
            seed: self.seed,
            stop_ids: vec![self.stop_id],
        };
        self.generator = Some(Generator::new(self.decoder.clone(), config));
        self.readers = vec![Transcriber::new(self.config.prompt); n_lanes];
        Ok(())
    }

    fn enter(&mut self, lane: usize) {
        self.readers[lane] = Transcriber::new(self.config.prompt);
        self.generator.as_mut().expect("a rollout has begun").forget(lane);
    }

    fn prompt(&self) -> Option<PromptStamp> {
        let dialect = Dialect::Plain;
        Some(PromptStamp { dialect, version: dialect.version().into(), model: None, sampling: None })
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Move>, AgentError> {
        let requests = lanes.iter().map(|view| self.request(view)).collect::<Result<Vec<_>, _>>()?;
        let generator = self.generator.as_mut().expect("a batch was begun before it is played");
        let completions = generator.generate(&requests)?;
        let moves = lanes.iter().zip(requests).zip(completions).map(|((view, request), completion)| {
            if completion.ids.is_empty() {
                return Move::none();
            }
            let answer = self.tokenizer.decode(&completion.ids);
            let said = plain::parse(&answer, view.page);
            let prompt_ids = request.prompt_ids;
            Move::said(answer, said, Some(TurnTokens { context: request.context, prompt_ids, completion }))
        });
        Ok(moves.collect())
    }
}
