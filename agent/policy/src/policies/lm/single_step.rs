//! Recorded steps, asked about one by one: in tokens, and answered by a model.
//!
//! An [`Interviewer`] puts [`Sample`]s into the tokens of a chat, the way a rollout in the same dialect would have put the
//! same visit, and reads what a model answers. Prompts that leave no room for an answer lose their oldest pages first; what
//! is too long without them too is told as [`Interviewer::ask`] says it, and dropped by whoever asks.
//!
//! [`Interviewer::answers`] has a model answer, several times each. An answer depends on its prompt, the sampler and its
//! coordinates alone.

use webshop_products::Seed;

use crate::policies::lm::LmConfig;
use crate::policies::lm::chat::{ChatFormat, ChatVoice};
use webshop_lm::Engine;
use crate::error::AgentError;
use webshop_lm::{Completion, Context, Generator, GeneratorConfig, Request};
use webshop_lm::SamplingCoordinates;
use webshop_lm::generation::self_certainty::Certainty;
use crate::next_action::Sample;
use webshop_lm::ShopTokenizer;

/// Asks about single steps in a dialect of Shop-R1's.
#[derive(Clone, Debug)]
pub struct Interviewer<'a> {
    voice: ChatVoice<'a>,
    tokenizer: &'a ShopTokenizer,
    config: LmConfig,
    /// Whether prompts tell past rationales.
    recalling: bool,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Question<'q> {
    /// The prompt.
    pub prompt_ids: &'q [u32],
    /// Where its answers are drawn; `sample` counts up from here.
    pub coordinates: SamplingCoordinates,
}

impl<'a> Interviewer<'a> {
    /// In the words of `format`.
    ///
    /// # Errors
    /// If its dialect is not one of Shop-R1's, or the template cannot tell it.
    pub fn new(
        tokenizer: &'a ShopTokenizer,
        format: &'a ChatFormat,
        config: &LmConfig,
    ) -> Result<Self, AgentError> {
        if !format.dialect.is_shop_r1() {
            return Err(AgentError::SingleSteps(format.dialect));
        }
        Ok(Self {
            voice: ChatVoice::new(tokenizer, format, config)?,
            tokenizer,
            config: *config,
            recalling: false,
        })
    }

    /// The same with past rationales in prompts, as demonstrations may have them and rollouts never do.
    pub fn recalling(self) -> Self {
        Self { recalling: true, ..self }
    }

    /// The prompt of a step in tokens; `None` if it leaves no room for an answer even without past pages.
    pub fn ask(&self, sample: &Sample) -> Result<Option<Vec<u32>>, AgentError> {
        let ids = self.voice.fitting(sample.context.len(), |n_forgotten| {
            let messages = self.voice.dialect().question(sample, n_forgotten, self.recalling);
            messages.ok_or_else(|| AgentError::SingleSteps(self.voice.dialect()))
        })?;
        Ok((ids.len() + self.config.max_turn_tokens <= self.config.max_context).then_some(ids))
    }

    /// Tokens of an answer at most, the one that ends it included.
    pub fn longest_answer(&self) -> usize {
        self.config.max_turn_tokens
    }

    /// The tokens of the right answer, with the one that ends it.
    pub fn gold(&self, sample: &Sample) -> Result<Vec<u32>, AgentError> {
        self.voice.said(&sample.answer(), &format!("{}{}", sample.rationale, sample.action))
    }

    /// What a model answered, without the token that ends it.
    pub fn text_of(&self, ids: &[u32]) -> String {
        self.tokenizer.decode(self.voice.words_of(ids))
    }

    /// Bytes of [`Interviewer::text_of`] that each token wrote, but for the one that ends it.
    pub fn bytes_of_each(&self, ids: &[u32]) -> Vec<usize> {
        self.tokenizer.bytes_of_each(self.voice.words_of(ids))
    }

    /// `n_samples` answers to every question, question by question. `lanes` are computed side by side; `ended` is told how
    /// many answers have come.
    pub fn answers(
        &self,
        engine: impl Into<Engine>,
        questions: &[Question<'_>],
        (n_samples, lanes): (usize, usize),
        (seed, certainty): (Seed, Option<Certainty>),
        ended: &dyn Fn(u64),
    ) -> Result<Vec<Completion>, AgentError> {
        let lanes = lanes.min(questions.len()).max(1);
        let config = GeneratorConfig {
            n_lanes: lanes,
            capacity: self.config.max_context,
            sampler: self.config.sampler,
            seed,
            stop_ids: self.voice.stop_ids().to_vec(),
            certainty,
        };
        let mut generator = Generator::new(engine, config)?;
        let mut all = Vec::with_capacity(questions.len() * n_samples);
        for questions in questions.chunks(lanes) {
            let mut of_samples = Vec::with_capacity(n_samples);
            // A lane is asked the same again and again: it has read the prompt already.
            for sample in 0..n_samples as u64 {
                let request = |(lane, question): (usize, &Question<'_>)| Request {
                    lane,
                    context: Context::Alone,
                    prompt_ids: question.prompt_ids.to_vec(),
                    coordinates: SamplingCoordinates {
                        sample: question.coordinates.sample + sample,
                        ..question.coordinates
                    },
                    constraint: None,
                    max_new_tokens: self.config.max_turn_tokens,
                };
                let requests: Vec<Request> = questions.iter().enumerate().map(request).collect();
                of_samples.push(generator.generate(&requests)?.into_iter());
                ended(questions.len() as u64);
            }
            for _ in questions {
                all.extend(of_samples.iter_mut().filter_map(Iterator::next));
            }
        }
        Ok(all)
    }
}
