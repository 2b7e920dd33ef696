//! A language model that shops.
//!
//! Reading order: [`qwen2`] is the model and [`cache`] what it remembers while it writes;
//! [`checkpoint`] reads and writes model folders.

pub mod cache;
pub mod checkpoint;
mod error;
pub mod kernels;
pub mod ops;
pub mod qwen2;

pub use cache::KvCache;
pub use error::AgentError;
pub use ops::log_prob::TokenStats;
pub use qwen2::{Decoder, LaneTokens, Logits, PackedTokens, Qwen2, Qwen2Config};
