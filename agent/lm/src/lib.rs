//! A deterministic, differentiable Qwen2 on candle, with everything between a model folder and a completion.
//!
//! In reading order:
//!
//! 1. **The model.** [`Qwen2Config`] is the shape and [`Qwen2`] the weights. [`Qwen2::record`] runs
//!    [`PackedTokens`] through the model and returns a [`Pass`], which has gradients. [`lora`] adds low-rank
//!    adapters.
//! 2. **Files.** [`checkpoint`] reads and writes model folders in the Hugging Face layout, [`BpeTokenizer`]
//!    is a byte-level BPE (`tokenizer.json`), [`chat`] renders chat templates.
//! 3. **Generation.** An [`Engine`] is a snapshot of the weights on one of two backends. A [`Generator`]
//!    holds the contexts of many lanes and continues them; a [`Sampler`] draws tokens, optionally within a
//!    [`Constraint`].
//! 4. **Devices.** [`device`] selects CPU or GPU, the dtype and the kernels.
//!
//! **Two backends.** The CPU backend computes in f32 with the kernels of `webshop-kernels`: the same bits on
//! every machine, for any batch and any number of threads. The GPU backend ([`device::DeviceModel`]) runs on
//! any candle device; its results depend on the batch by rounding. Inside the crate, `qwen2/{cpu,gpu}` and
//! `ops/{cpu,gpu}` hold the two side by side.
//!
//! **Not included.** No optimizer, no task and no reward; a constraint is a list of token sequences, whatever
//! they mean. Nothing is downloaded.
//!
//! Load a model folder and generate a completion:
//!
//! ```
//! use std::sync::Arc;
//!
//! use webshop_lm::{
//!     BpeTokenizer, Context, Generator, GeneratorConfig, Qwen2, Qwen2Config, Request, Sampler, SamplingCoordinates,
//!     checkpoint,
//! };
//! use webshop_products::Seed;
//!
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! // A folder as Hugging Face's `save_pretrained` writes it; here that of a tiny model with random weights.
//! # let trained = BpeTokenizer::train_like_qwen(["a black lamp", "the black lamp"], 300)?;
//! # let shape = Qwen2Config { num_hidden_layers: 1, ..Qwen2Config::small(trained.vocab_size()) };
//! # let shape = trained.save_like_qwen(folder, &shape)?;
//! # checkpoint::save(&Qwen2::random(&shape, Seed(0))?, folder)?;
//! let model = checkpoint::load(folder)?;
//! let tokenizer = BpeTokenizer::load(folder)?;
//! let stop_tokens = checkpoint::StopTokens::load(folder, model.config(), &tokenizer)?;
//!
//! let config = GeneratorConfig {
//!     n_lanes: 1,
//!     capacity: 64,
//!     sampler: Sampler::new(0.7, 0.9)?,
//!     seed: Seed(1),
//!     stop_ids: stop_tokens.ids().to_vec(),
//!     certainty: None,
//! };
//! let mut generator = Generator::new(Arc::new(model.into_decoder()?), config)?;
//! let request = Request {
//!     lane: 0,
//!     context: Context::Continue,
//!     prompt_ids: tokenizer.encode("<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n")?,
//!     coordinates: SamplingCoordinates::default(),
//!     constraint: None,
//!     max_new_tokens: 8,
//! };
//! let completion = generator.generate(&[request])?.remove(0);
//! println!("{}", tokenizer.decode(&completion.ids));
//! # assert!((1..=8).contains(&completion.ids.len()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

mod error;
mod purpose;

pub mod lora;
mod ops;
mod qwen2;

pub mod chat;
pub mod checkpoint;
mod tokenizer;

pub mod device;
mod engine;
mod generation;

pub use crate::engine::{Engine, EngineCache};
pub use crate::error::LmError;
pub use crate::generation::{
    Allowed, Budget, Certainty, CertaintyKind, Completion, Constraint, ConstraintState, Context, Draw,
    FreeText, Generator, GeneratorConfig, Request, Sampler, SamplingCoordinates, StopReason, Thought,
    ThoughtStart, certainty_of_top_k,
};
pub use crate::qwen2::{
    Decoder, HiddenGradient, KnownShape, KvCache, LaneTokens, Logits, OutputGradients, PackedTokens, Pass,
    Qwen2, Qwen2Config, TokenStats,
};
pub use crate::tokenizer::{BpeTokenizer, END_OF_TEXT, TextStream};
