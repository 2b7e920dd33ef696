//! Single-step prompts as tokens, and sampled completions.
//!
//! A [`SingleStepEncoder`] encodes the prompt of an [`Example`] as a rollout in the same prompt format would
//! encode the same session. Prompts without room for a completion drop their oldest pages. A
//! [`CompletionSampler`] completes such prompts, and those of a [`Layout`](crate::Layout). A completion depends only on its
//! prompt, the sampler and its coordinates.

use webshop_lm::{
    BpeTokenizer, Certainty, Completion, Context, Engine, Generator, GeneratorConfig, LmError, Request,
    SamplingCoordinates,
};
use webshop_products::Seed;

use crate::error::AgentError;
use crate::next_action::example::Example;
use crate::policies::lm::chat::{ChatEncoder, ChatFormat};
use crate::policies::lm::config::LmConfig;
use crate::policies::lm::encoder::{TurnEncoder, without_stop};
use crate::prompt_format::PromptFormat;
use crate::prompt_format::compact::END;

/// Encodes single-step prompts in a chat format of Shop-R1.
#[derive(Clone, Debug)]
pub struct SingleStepEncoder<'a> {
    encoder: ChatEncoder<'a>,
    sampler: CompletionSampler<'a>,
    /// Whether prompts contain past rationales.
    with_rationales: bool,
}

/// Samples completions of prompts that are token ids.
#[derive(Clone, Debug)]
pub struct CompletionSampler<'a> {
    tokenizer: &'a BpeTokenizer,
    stop_ids: Vec<u32>,
    config: LmConfig,
}

/// A prompt to complete.
#[derive(Clone, Debug, PartialEq)]
pub struct SingleStepPrompt<'q> {
    /// The prompt.
    pub prompt_ids: &'q [u32],
    /// The address of the first completion's draws; `sample` counts up from here.
    pub coordinates: SamplingCoordinates,
}

/// How completions of [`SingleStepPrompt`]s are sampled.
#[derive(Clone, Copy, Debug)]
pub struct SampleOptions {
    /// Completions per prompt.
    pub n_samples: usize,
    /// Prompts computed at once.
    pub lanes: usize,
    /// The seed of the draws.
    pub seed: Seed,
    /// The certainty to record; `None` for none.
    pub certainty: Option<Certainty>,
}

impl<'a> SingleStepEncoder<'a> {
    /// An encoder for the chats of `format`.
    ///
    /// # Errors
    /// If its prompt format is not one of Shop-R1, or as [`LmPolicy::chat`](crate::LmPolicy::chat).
    pub fn new(
        tokenizer: &'a BpeTokenizer,
        format: &'a ChatFormat,
        config: &LmConfig,
    ) -> Result<Self, AgentError> {
        if !format.prompt_format.is_shop_r1() {
            return Err(single_steps_unsupported(format.prompt_format));
        }
        let encoder = ChatEncoder::new(tokenizer, format, config)?;
        let sampler = CompletionSampler { tokenizer, stop_ids: encoder.stop_ids().to_vec(), config: *config };
        Ok(Self { encoder, sampler, with_rationales: false })
    }

    /// The same encoder with past rationales in prompts, which demonstrations may have and rollouts never
    /// have.
    pub fn with_rationales(self) -> Self {
        Self { with_rationales: true, ..self }
    }

    /// The prompt of an example; `None` if it leaves no room for a completion even without past pages.
    ///
    /// # Errors
    /// If the prompt cannot be rendered or encoded.
    pub fn prompt(&self, example: &Example) -> Result<Option<Vec<u32>>, AgentError> {
        let prompt_format = self.encoder.prompt_format();
        let ids = self.encoder.encode_fitting(example.context.len(), |n_dropped| {
            let messages = prompt_format.single_step_messages(example, n_dropped, self.with_rationales);
            messages.ok_or_else(|| single_steps_unsupported(prompt_format))
        })?;
        Ok(self.sampler.has_room_after(&ids).then_some(ids))
    }

    /// The tokens of the right completion, with its stop token.
    ///
    /// # Errors
    /// If the text cannot be encoded.
    pub fn gold(&self, example: &Example) -> Result<Vec<u32>, AgentError> {
        let text = PromptFormat::single_step_completion(example);
        self.encoder.encode_completion(&text, &format!("{}{}", example.rationale, example.action))
    }

    /// The sampler of completions of its prompts.
    pub fn sampler(&self) -> &CompletionSampler<'a> {
        &self.sampler
    }
}

impl<'a> CompletionSampler<'a> {
    /// A sampler of completions in a [`Layout`](crate::Layout).
    ///
    /// # Errors
    /// If the tokenizer lacks the token that ends a turn.
    pub fn of_layout(tokenizer: &'a BpeTokenizer, config: &LmConfig) -> Result<Self, LmError> {
        Ok(Self { tokenizer, stop_ids: vec![tokenizer.special_id(END)?], config: *config })
    }

    /// The maximum tokens of a completion, the stop token included.
    pub fn max_completion_tokens(&self) -> usize {
        self.config.max_turn_tokens
    }

    /// Whether a completion of the greatest length fits into the context after this prompt.
    pub fn has_room_after(&self, prompt_ids: &[u32]) -> bool {
        prompt_ids.len() + self.config.max_turn_tokens <= self.config.max_context
    }

    /// The text of a completion without its stop token.
    pub fn text_of(&self, ids: &[u32]) -> String {
        self.tokenizer.decode(without_stop(ids, &self.stop_ids))
    }

    /// The number of bytes of [`CompletionSampler::text_of`] that each token wrote, without the stop token.
    pub fn bytes_of_each(&self, ids: &[u32]) -> Vec<usize> {
        self.tokenizer.bytes_of_each(without_stop(ids, &self.stop_ids))
    }

    /// `n_samples` completions of every prompt, prompt by prompt. `progress` gets the number of new
    /// completions.
    ///
    /// # Errors
    /// If the model cannot run.
    pub fn sample(
        &self,
        engine: impl Into<Engine>,
        prompts: &[SingleStepPrompt<'_>],
        options: SampleOptions,
        progress: &dyn Fn(u64),
    ) -> Result<Vec<Completion>, AgentError> {
        let lanes = options.lanes.min(prompts.len()).max(1);
        let config = GeneratorConfig {
            n_lanes: lanes,
            capacity: self.config.max_context,
            sampler: self.config.sampler,
            seed: options.seed,
            stop_ids: self.stop_ids.clone(),
            certainty: options.certainty,
        };
        let mut generator = Generator::new(engine, config)?;
        let mut completions = Vec::with_capacity(prompts.len() * options.n_samples);
        for prompts in prompts.chunks(lanes) {
            let mut by_sample = Vec::with_capacity(options.n_samples);
            // All samples of a prompt use the same lane, whose cache holds the prompt.
            for sample in 0..options.n_samples as u64 {
                let request = |(lane, prompt): (usize, &SingleStepPrompt<'_>)| Request {
                    lane,
                    context: Context::Fresh,
                    prompt_ids: prompt.prompt_ids.to_vec(),
                    coordinates: SamplingCoordinates {
                        sample: prompt.coordinates.sample + sample,
                        ..prompt.coordinates
                    },
                    constraint: None,
                    max_new_tokens: self.config.max_turn_tokens,
                };
                let requests: Vec<Request> = prompts.iter().enumerate().map(request).collect();
                by_sample.push(generator.generate(&requests)?.into_iter());
                progress(prompts.len() as u64);
            }
            for _ in prompts {
                completions.extend(by_sample.iter_mut().filter_map(Iterator::next));
            }
        }
        Ok(completions)
    }
}

fn single_steps_unsupported(prompt_format: PromptFormat) -> AgentError {
    AgentError::SingleSteps { prompt_format: prompt_format.name() }
}
