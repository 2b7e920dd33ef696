//! A language model that shops.
//!
//! Reading order: [`qwen2`] is the model and [`cache`] what it remembers while it writes; [`checkpoint`] reads and writes
//! model folders, and [`lora`] adapts a model cheaply. [`device`] says where a model is computed and has the engine for
//! a GPU; an [`Engine`] is either one.
//!
//! [`tokenizer`] is text to ids and back, and [`chat_template`] a [`chat`] to the text that a checkpoint was taught.
//! [`generate`] says a turn on many lanes at once, drawing with [`sampler`], within a [`constraint`] if one is given.
//!
//! [`prompt`] is what the model reads and [`dialect`] what it says; [`shop_r1`] is what it says where single actions are
//! judged. A [`policy`] acts, [`rollout()`] makes it shop, and an [`episode`] is what comes of it, or the [`Beginning`] of
//! others; the [`demonstrator`] tells trips worth imitating, a [`Canary`] makes those that ought
//! not to pay. A [`TripFile`] keeps what was made, [`remake()`] reads it again, [`convert`] makes data of it.
//!
//! [`site`] lets those shop who need no more than pages, at a shop of others; [`remote`] lets models shop, or answer
//! at single steps, that others serve.
//!
//! The agent knows no reward and takes no gradient step.

mod error;

pub mod qwen2;

pub mod cache;
pub mod checkpoint;
pub mod lora;

pub mod device;
mod engine;

mod fused;
mod kernels;
mod ops;

pub mod chat;
pub mod chat_template;
pub mod tokenizer;

pub mod constraint;
pub mod generate;
pub mod sampler;

pub mod dialect;
mod dialogue;
pub mod prompt;
pub mod shop_r1;

mod canary;
pub mod demonstrator;
mod lm_policy;
pub mod policy;

mod beginning;
pub mod episode;
mod open_trip;
mod rollout;

pub mod convert;
mod remake;
mod trip_file;

mod connection;
pub mod remote;
pub mod site;

pub use beginning::Beginning;
pub use cache::KvCache;
pub use canary::Canary;
pub use chat::{Message, Role, ToolCall};
pub use constraint::{Allowed, Budget, Constraint, ConstraintState, FreeText, Thought, ThoughtStart};
pub use demonstrator::{DemonstratedTurn, Demonstrator, Manner};
pub use dialect::{Dialect, History, Utterance};
pub use dialogue::{Dialogue, PastTurn, Seen};
pub use engine::Engine;
pub use episode::{
    Episode, EpisodeCoordinates, EpisodeRecord, EpisodeTurn, PromptStamp, Sampling, TurnRecord, TurnTokens,
};
pub use error::AgentError;
pub use generate::{Completion, Context, Generator, GeneratorConfig, Request, StopReason};
pub use kernels::matmul::{Store, View, matmul};
pub use lm_policy::{ChatDemonstrator, ChatFormat, Interviewer, LmConfig, LmPolicy, Question, ToldTurn};
pub use policy::{LaneView, Move, OraclePolicy, PagePolicy, Policy, RandomPolicy, RulePolicy, SeenPage};
pub use qwen2::{
    Decoder, KnownShape, LaneTokens, Logits, PackedTokens, Pass, Qwen2, Qwen2Config, TokenStats,
};
pub use remake::remake;
pub use remote::{AskConfig, Endpoint, FailedTrip, RemoteConfig, RemoteInterviewer, RemotePolicy, Retries};
pub use rollout::{InOrder, RolloutConfig, Task, rollout, rollout_each};
pub use sampler::{Draw, Sampler, SamplingCoordinates};
pub use site::{Site, SiteConfig, SiteTrip, SiteTurn, shop_at};
pub use tokenizer::{END_OF_TEXT, SPECIAL_TOKENS, ShopTokenizer, TextStream};
pub use trip_file::TripFile;
