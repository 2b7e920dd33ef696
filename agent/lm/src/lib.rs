//! webshop_lm.

pub mod chat;
pub mod checkpoint;
pub mod device;
pub mod engine;
pub mod error;
pub mod generation;
pub mod lora;
pub mod ops;
pub mod qwen2;
pub mod tokenizer;

pub use crate::generation::constraint::{Allowed, Budget, Constraint, ConstraintState};
pub use crate::generation::generator::{Completion, Context, Generator, GeneratorConfig, Request, StopReason};
pub use crate::qwen2::cpu::decoder::Decoder;
pub use crate::generation::sampler::{Draw, Sampler, SamplingCoordinates};
pub use crate::tokenizer::{END_OF_TEXT, SPECIAL_TOKENS, ShopTokenizer};
pub use crate::engine::Engine;
pub use crate::error::LmError;
pub use crate::generation::constraint::free::{FreeText, Thought, ThoughtStart};
pub use crate::qwen2::shapes::KnownShape;
pub use crate::qwen2::cpu::kv_cache::KvCache;
pub use crate::qwen2::batch::{LaneTokens, Logits};
pub use crate::chat::message::{Message, Role, ToolCall};
pub use crate::qwen2::cpu::pass::{PackedTokens, Pass, TokenStats};
pub use crate::qwen2::Qwen2;
pub use crate::qwen2::config::Qwen2Config;
pub use crate::tokenizer::stream::TextStream;
