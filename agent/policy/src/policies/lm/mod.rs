//! A language model that shops.
//!
//! [`LmPolicy`] has a [`Generator`], whose contexts have read what was shown on each lane, and a voice: the
//! plain one turns pages into tokens of its own layout, that of a [`ChatFormat`] tells them in messages through
//! the checkpoint's template. A turn feeds what the voice has to tell, samples until a stop token, and parses
//! what was said. A lane with no room left for the page and an answer gives up. A [`ChatDemonstrator`] has a chat's voice
//! tell trips that are known already, an [`Interviewer`] has it ask about single steps.

pub mod action_grammar;
pub mod chat;
pub mod compact;
pub mod demonstration;
pub mod single_step;
#[cfg(test)]
mod tests;


use std::sync::Arc;

use webshop_env::Page;
use webshop_products::Seed;

pub use crate::policies::lm::chat::ChatFormat;
use crate::policies::lm::chat::ChatVoice;
pub use crate::policies::lm::demonstration::{ChatDemonstrator, ToldTurn};
pub use crate::policies::lm::single_step::{Interviewer, Question};
use crate::policies::lm::compact::PlainVoice;
use webshop_lm::Constraint;
use crate::prompt_format::Utterance;
use webshop_lm::Engine;
use crate::episode::{EpisodeTurn, PromptStamp, Sampling, TurnTokens};
use crate::error::AgentError;
use webshop_lm::{Context, Generator, GeneratorConfig, Request};
use crate::policies::{LaneView, Move, Policy};
use crate::prompt_format::compact_renderer::PromptConfig;
use webshop_lm::{Sampler, SamplingCoordinates};
use webshop_lm::ShopTokenizer;

/// What bounds and shapes the model's turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LmConfig {
    /// How pages are read in the plain dialect.
    pub prompt: PromptConfig,
    /// How tokens are drawn.
    pub sampler: Sampler,
    /// Tokens of a context: of a whole episode, or of a turn where prompts stand alone.
    pub max_context: usize,
    /// Tokens of one answer.
    pub max_turn_tokens: usize,
    /// Whether only admissible actions can be said, none of which is then cut. Log-probabilities are then those of the constrained
    /// distribution, which the trainer does not score under: for rollouts and evaluation only.
    pub constrained: bool,
}

/// A model with its tokenizer, shopping on many lanes.
#[derive(Debug)]
pub struct LmPolicy<'a> {
    engine: Engine,
    tokenizer: &'a ShopTokenizer,
    config: LmConfig,
    seed: Seed,
    voice: Voice<'a>,
    /// By which the weights are told from others.
    model: Option<Arc<str>>,
    generator: Option<Generator>,
}

impl<'a> LmPolicy<'a> {
    /// A customer who reads and speaks the plain dialect. If `config` is `constrained`, fails where `max_turn_tokens`
    /// leave no room for what may be said; so does [`LmPolicy::in_chat`].
    pub fn new(
        engine: impl Into<Engine>,
        tokenizer: &'a ShopTokenizer,
        config: LmConfig,
        seed: Seed,
    ) -> Result<Self, AgentError> {
        let voice = Voice::Plain(PlainVoice::new(tokenizer, &config)?);
        Ok(Self { engine: engine.into(), tokenizer, config, seed, voice, model: None, generator: None })
    }

    /// A customer who chats.
    pub fn in_chat(
        engine: impl Into<Engine>,
        tokenizer: &'a ShopTokenizer,
        format: &'a ChatFormat,
        config: LmConfig,
        seed: Seed,
    ) -> Result<Self, AgentError> {
        let voice = Voice::Chat(ChatVoice::new(tokenizer, format, &config)?);
        Ok(Self { engine: engine.into(), tokenizer, config, seed, voice, model: None, generator: None })
    }

    /// The same, with a name for the weights that its trips bear: their fingerprint.
    pub fn named(self, model: Arc<str>) -> Self {
        Self { model: Some(model), ..self }
    }

    fn request(&mut self, view: &LaneView<'_>) -> Result<Request, AgentError> {
        let (context, prompt_ids) = self.voice.tell(view)?;
        let at = view.coordinates;
        Ok(Request {
            lane: view.lane,
            context,
            prompt_ids,
            coordinates: SamplingCoordinates {
                step: at.step,
                shop: at.shop,
                goal: u64::from(at.goal.0),
                sample: at.sample,
                turn: view.turn as u64,
                token: 0,
            },
            constraint: self.voice.constraint(view.page)?,
            max_new_tokens: self.config.max_turn_tokens,
        })
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
            stop_ids: self.voice.stop_ids().to_vec(),
            certainty: None,
        };
        self.generator = Some(Generator::new(self.engine.clone(), config)?);
        self.voice.begin(n_lanes);
        Ok(())
    }

    fn enter(&mut self, lane: usize) {
        self.voice.enter(lane);
        self.generator.as_mut().expect("a rollout has begun").forget(lane);
    }

    /// Tells the page again, for the voice to know what was told, and takes the tokens as they were then.
    fn recall(&mut self, view: &LaneView<'_>, turn: &EpisodeTurn) -> Result<(), AgentError> {
        let refuse = |reason: &str| AgentError::Beginning {
            turn: view.turn + 1,
            goal: view.coordinates.goal.0,
            reason: reason.into(),
        };
        let tokens = turn.tokens.as_ref().ok_or_else(|| refuse("it has no tokens"))?;
        let told = self.voice.tell(view)?;
        if told != (tokens.context, tokens.prompt_ids.clone()) {
            return Err(refuse(
                "its page was told in other tokens; go on with the prompt that it was made with",
            ));
        }
        self.voice.hear(self.tokenizer, view, &tokens.completion.ids);
        let generator = self.generator.as_mut().expect("a rollout has begun");
        generator.recall(
            view.lane,
            tokens.context,
            &[&tokens.prompt_ids[..], &tokens.completion.ids].concat(),
        );
        Ok(())
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Move>, AgentError> {
        let requests = lanes.iter().map(|view| self.request(view)).collect::<Result<Vec<_>, _>>()?;
        let generator = self.generator.as_mut().expect("a rollout has begun");
        let completions = generator.generate(&requests)?;
        let moves = lanes.iter().zip(requests).zip(completions).map(|((view, request), completion)| {
            if completion.ids.is_empty() {
                return Move::none();
            }
            let (answer, utterance) = self.voice.hear(self.tokenizer, view, &completion.ids);
            let Request { context, prompt_ids, .. } = request;
            Move::said(answer, utterance, Some(TurnTokens { context, prompt_ids, completion }))
        });
        Ok(moves.collect())
    }

    fn prompt(&self) -> Option<PromptStamp> {
        let LmConfig { sampler, max_turn_tokens, .. } = self.config;
        let sampling = Sampling {
            temperature: as_written(sampler.temperature()),
            top_p: as_written(sampler.top_p()),
            max_tokens: u32::try_from(max_turn_tokens).unwrap_or(u32::MAX),
            seed: self.seed.0,
        };
        Some(PromptStamp { model: self.model.clone(), sampling: Some(sampling), ..self.voice.stamp() })
    }
}

/// The number with the fewest digits that is rounded to this one: `0.6`, where the value itself is `0.6000000238…`.
fn as_written(value: f32) -> f64 {
    value.to_string().parse().expect("digits of a number")
}

/// How pages become tokens, and tokens what was said.
#[derive(Debug)]
enum Voice<'a> {
    Plain(PlainVoice<'a>),
    Chat(ChatVoice<'a>),
}

impl Voice<'_> {
    fn stamp(&self) -> PromptStamp {
        match self {
            Self::Plain(_) => PlainVoice::stamp(),
            Self::Chat(voice) => voice.stamp(),
        }
    }

    fn stop_ids(&self) -> &[u32] {
        match self {
            Self::Plain(voice) => voice.stop_ids(),
            Self::Chat(voice) => voice.stop_ids(),
        }
    }

    /// There are so many lanes, and nothing was told on any.
    fn begin(&mut self, n_lanes: usize) {
        match self {
            Self::Plain(voice) => voice.begin(n_lanes),
            Self::Chat(voice) => voice.begin(n_lanes),
        }
    }

    /// A new trip begins on a lane.
    fn enter(&mut self, lane: usize) {
        match self {
            Self::Plain(voice) => voice.enter(lane),
            Self::Chat(voice) => voice.enter(lane),
        }
    }

    /// What the model reads before its turn, and behind what.
    fn tell(&mut self, view: &LaneView<'_>) -> Result<(Context, Vec<u32>), AgentError> {
        match self {
            Self::Plain(voice) => voice.tell(view),
            Self::Chat(voice) => voice.tell(view),
        }
    }

    /// The turns that do something on `page`, where others are not allowed.
    fn constraint(&self, page: &Page) -> Result<Option<Constraint>, AgentError> {
        match self {
            Self::Plain(voice) => voice.constraint(page),
            Self::Chat(voice) => voice.constraint(page),
        }
    }

    /// The answer as text, and what it means.
    fn hear(&mut self, tokenizer: &ShopTokenizer, view: &LaneView<'_>, ids: &[u32]) -> (String, Utterance) {
        match self {
            Self::Plain(_) => PlainVoice::hear(tokenizer, view, ids),
            Self::Chat(voice) => voice.hear(view, ids),
        }
    }
}
