//! A language model that shops.
//!
//! Reading order: [`qwen2`] is the model and [`cache`] what it remembers while it writes; [`checkpoint`]
//! reads and writes model folders; [`tokenizer`] is text to ids and back, and [`chat_template`] a conversation
//! to the text that a checkpoint was taught; [`lora`] adapts a model cheaply. Where a model is computed is [`device`]'s
//! choice, and an [`Engine`] is one either way. [`generate`] says a turn on many
//! lanes at once, drawing with [`sampler`], within a [`constraint`] if one is given.
//!
//! [`prompt`] is what the model reads and [`dialect`] what it says. A [`policy`] acts, [`rollout()`] makes it
//! shop, and an [`episode`] is what comes of it; the [`demonstrator`] tells trips worth imitating, a [`Canary`]
//! makes those that ought not to pay. [`site`] lets those shop who need no more than pages, at a shop of others;
//! [`remote`] lets models shop that others serve. [`remake()`] reads recorded trips, [`convert`] makes data of them.
//!
//! The agent knows no reward and takes no gradient step.

pub mod cache;
pub mod chat_template;
pub mod checkpoint;
pub mod device;
mod engine;
mod error;
mod fused;
mod kernels;
pub mod lora;
mod ops;
pub mod qwen2;

pub mod constraint;
pub mod generate;
pub mod sampler;
pub mod tokenizer;

pub mod chat;
pub mod dialect;
mod dialogue;

mod canary;
pub mod demonstrator;
pub mod episode;
mod lm_policy;
mod open_trip;
pub mod policy;
pub mod prompt;
mod remake;
mod rollout;
mod trip_file;

pub mod convert;
pub mod remote;
pub mod site;

pub use cache::KvCache;
pub use canary::Canary;
pub use chat::{Message, Role, ToolCall};
pub use constraint::{Allowed, Budget, Constraint, ConstraintState, FreeText, Thought, ThoughtStart};
pub use demonstrator::{DemonstratedTurn, Demonstrator, Manner};
pub use device::{Compute, ComputeDtype, DeviceRequest, KernelChoice};
pub use dialect::{Dialect, History, Utterance};
pub use dialogue::{Dialogue, PastTurn, Seen};
pub use engine::Engine;
pub use episode::{
    Episode, EpisodeCoordinates, EpisodeRecord, EpisodeTurn, PromptStamp, Sampling, TurnRecord, TurnTokens,
};
pub use error::AgentError;
pub use fused::adamw::{self, Coefficients as AdamwCoefficients, State as AdamwState};
pub use fused::twins::{TwinCheck, TwinSizes};
pub use generate::{Completion, Context, Generator, GeneratorConfig, LANES_PER_GROUP, Request, StopReason};
pub use kernels::launch::Kernels;
pub use kernels::matmul::{Store, View, matmul};
pub use lm_policy::{ChatFormat, LmConfig, LmPolicy};
pub use policy::{LaneView, Move, OraclePolicy, PagePolicy, Policy, RandomPolicy, RulePolicy, SeenPage};
pub use qwen2::device::{DeviceCache, DeviceModel, DevicePass, Parameters, Stepper};
pub use qwen2::{
    Decoder, KnownShape, LaneTokens, Logits, PackedTokens, Pass, Qwen2, Qwen2Config, TokenStats,
};
pub use remake::remake;
pub use remote::{Endpoint, FailedTrip, RemoteConfig, RemotePolicy, Retries};
pub use rollout::{InOrder, RolloutConfig, Task, rollout, rollout_each};
pub use sampler::{Draw, Sampler, SamplingCoordinates};
pub use site::{Site, SiteConfig, SiteTrip, SiteTurn, shop_at};
pub use tokenizer::{END_OF_TEXT, SPECIAL_TOKENS, ShopTokenizer, TextStream};
pub use trip_file::TripFile;
