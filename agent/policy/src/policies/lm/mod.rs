//! A language model as a policy.
//!
//! Each turn of an [`LmPolicy`]: encode the prompt, sample until a stop token, parse the completion. Prompts
//! are encoded by a `TurnEncoder`: one for layouts, and one for chats, which uses the template
//! of a [`ChatFormat`]. An episode stops if its context has no room for the page and one token more; a completion that
//! fills the context is cut.

pub(crate) mod config;
mod encoder;

mod action_grammar;
mod layout;

pub(crate) mod chat;
pub(crate) mod model_format;

pub(crate) mod demonstration;
pub(crate) mod few_shot;
pub(crate) mod single_step;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use webshop_lm::{BpeTokenizer, Engine, Generator, GeneratorConfig, Request, SamplingCoordinates};
use webshop_products::Seed;

use crate::episode::{PromptProvenance, Sampling, Turn, TurnTokens};
use crate::error::AgentError;
use crate::policies::lm::chat::{ChatEncoder, ChatFormat};
use crate::policies::lm::config::LmConfig;
use crate::policies::lm::encoder::TurnEncoder;
use crate::policies::lm::layout::LayoutEncoder;
use crate::policies::policy::{Decision, LaneView, Policy};
use crate::prompt_format::Layout;

/// A language model with its tokenizer.
#[derive(Debug)]
pub struct LmPolicy<'a> {
    engine: Engine,
    config: LmConfig,
    seed: Seed,
    encoder: Box<dyn TurnEncoder + 'a>,
    /// The fingerprint of the weights.
    model: Option<Arc<str>>,
    generator: Option<Generator>,
}

impl<'a> LmPolicy<'a> {
    /// A model that is prompted in a layout.
    ///
    /// # Errors
    /// If the tokenizer lacks a special token of the layout, or `config` is `constrained` and `max_turn_tokens` too small.
    pub fn with_layout(
        engine: impl Into<Engine>,
        tokenizer: &'a BpeTokenizer,
        layout: Layout,
        config: LmConfig,
        seed: Seed,
    ) -> Result<Self, AgentError> {
        let encoder = Box::new(LayoutEncoder::new(tokenizer, layout, &config)?);
        Ok(Self { engine: engine.into(), config, seed, encoder, model: None, generator: None })
    }

    /// A model that is prompted in a chat.
    ///
    /// # Errors
    /// If the chat template changes earlier turns and the format appends, or `config` is `constrained` and
    /// `max_turn_tokens` too small.
    pub fn chat(
        engine: impl Into<Engine>,
        tokenizer: &'a BpeTokenizer,
        format: &'a ChatFormat,
        config: LmConfig,
        seed: Seed,
    ) -> Result<Self, AgentError> {
        let encoder = Box::new(ChatEncoder::new(tokenizer, format, &config)?);
        Ok(Self { engine: engine.into(), config, seed, encoder, model: None, generator: None })
    }

    /// The same policy; its episodes record `model`, the fingerprint of the weights.
    pub fn with_model_name(self, model: Arc<str>) -> Self {
        Self { model: Some(model), ..self }
    }

    fn request(&mut self, view: &LaneView<'_>) -> Result<Request, AgentError> {
        let (context, prompt_ids) = self.encoder.encode(view)?;
        let at = view.coordinates;
        Ok(Request {
            lane: view.lane,
            context,
            prompt_ids,
            coordinates: SamplingCoordinates {
                step: at.step,
                environment: at.shop,
                task: u64::from(at.goal.0),
                sample: at.sample,
                turn: view.turn as u64,
                token: 0,
            },
            constraint: self.encoder.constraint(view.page)?,
            max_new_tokens: self.config.max_turn_tokens,
        })
    }
}

impl Policy for LmPolicy<'_> {
    fn name(&self) -> &'static str {
        "lm"
    }

    fn begin_rollout(&mut self, n_lanes: usize) -> Result<(), AgentError> {
        let config = GeneratorConfig {
            n_lanes,
            capacity: self.config.max_context,
            sampler: self.config.sampler,
            seed: self.seed,
            stop_ids: self.encoder.stop_ids().to_vec(),
            certainty: None,
        };
        self.generator = Some(Generator::new(self.engine.clone(), config)?);
        self.encoder.begin_rollout(n_lanes);
        Ok(())
    }

    fn begin_episode(&mut self, lane: usize) {
        self.encoder.begin_episode(lane);
        self.generator.as_mut().expect("`begin_rollout` was called").clear_lane(lane);
    }

    /// Encodes the prompt again, for the memory of the encoder, and takes the recorded tokens.
    fn replay_turn(&mut self, view: &LaneView<'_>, turn: &Turn) -> Result<(), AgentError> {
        let refuse = |reason: &str| AgentError::Prefix {
            turn: view.turn + 1,
            goal: view.coordinates.goal.0,
            reason: reason.into(),
        };
        let tokens = turn.agent.tokens.as_ref().ok_or_else(|| refuse("the turn has no tokens"))?;
        if self.encoder.encode(view)? != (tokens.context, tokens.prompt_ids.clone()) {
            return Err(refuse("its prompt has other tokens here; use the prompt format of the recording"));
        }
        self.encoder.decode(view, &tokens.completion.ids);
        let generator = self.generator.as_mut().expect("`begin_rollout` was called");
        let ids = [&tokens.prompt_ids[..], &tokens.completion.ids].concat();
        generator.extend_context(view.lane, tokens.context, &ids);
        Ok(())
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Decision>, AgentError> {
        let requests = lanes.iter().map(|view| self.request(view)).collect::<Result<Vec<_>, _>>()?;
        let generator = self.generator.as_mut().expect("`begin_rollout` was called");
        let completions = generator.generate(&requests)?;
        let decisions = lanes.iter().zip(requests).zip(completions).map(|((view, request), completion)| {
            if completion.ids.is_empty() {
                return Decision::Stop;
            }
            let (text, parsed) = self.encoder.decode(view, &completion.ids);
            let Request { context, prompt_ids, .. } = request;
            Decision::completed(text, parsed, Some(TurnTokens { context, prompt_ids, completion }))
        });
        Ok(decisions.collect())
    }

    fn prompt(&self) -> Option<PromptProvenance> {
        let LmConfig { sampler, max_turn_tokens, .. } = self.config;
        let sampling = Sampling {
            temperature: shortest_decimal(sampler.temperature()),
            top_p: shortest_decimal(sampler.top_p()),
            max_tokens: u32::try_from(max_turn_tokens).unwrap_or(u32::MAX),
            seed: self.seed.0,
        };
        Some(PromptProvenance {
            model: self.model.clone(),
            sampling: Some(sampling),
            ..self.encoder.provenance()
        })
    }
}

/// The number with the fewest digits that rounds to `value`: `0.6` instead of `0.6000000238…`.
fn shortest_decimal(value: f32) -> f64 {
    value.to_string().parse().expect("the digits of a number")
}
