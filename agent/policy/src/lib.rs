//! Agents for the shop: policies, prompt formats, rollouts and recorded episodes.
//!
//! A [`Policy`] decides actions; [`rollout`] runs it and returns [`Episode`]s. An [`LmPolicy`] is a language
//! model that is prompted in a [`PromptFormat`]. A [`BrowsingExpert`] or an [`Expert`] writes demonstrations. [`convert`] exports
//! episodes as chats and imports them; [`next_action`] has the single-step examples of Shop-R1.
//!
//! The crate computes no rewards and no gradients.

#![forbid(unsafe_code)]

mod error;

mod episode;
mod instruction;
mod prompt_format;

mod policies;

mod rollout;

mod expert;

pub mod convert;
pub mod next_action;

pub use episode::failure::FailureKind;
pub use episode::file::{EpisodeFile, complete_lines};
pub use episode::prefix::EpisodePrefix;
pub use episode::read::read_episode;
pub use episode::site::{SiteEpisode, SiteTurn};
pub use episode::{
    Episode, EpisodeCoordinates, EpisodeExt, EpisodeMeta, ModelTurn, PromptProvenance, Sampling, Turn,
    TurnTokens,
};
pub use error::AgentError;
pub use expert::browsing::{BrowsingExpert, BrowsingHabits, Demonstrated};
pub use expert::turn::ExpertTurn;
pub use expert::two_habits::{Expert, ExpertKind};
pub use policies::candidates::CandidatePolicy;
pub use policies::expert::ExpertPolicy;
pub use policies::exploits::ExploitPolicy;
pub use policies::lm::LmPolicy;
pub use policies::lm::chat::ChatFormat;
pub use policies::lm::config::LmConfig;
pub use policies::lm::demonstration::{DemonstrationRenderer, RenderedTurn};
pub use policies::lm::few_shot::FewShot;
pub use policies::lm::model_format::ModelFormat;
pub use policies::lm::single_step::{CompletionSampler, SampleOptions, SingleStepEncoder, SingleStepPrompt};
pub use policies::named_options::NamedOptionsPolicy;
pub use policies::oracle::OraclePolicy;
pub use policies::policy::{Decision, LaneView, PagePolicy, Policy, VisiblePage};
pub use policies::random::RandomPolicy;
pub use policies::rule::RulePolicy;
pub use prompt_format::{
    CompletionForm, Conversation, History, Layout, Observed, PageRenderer, ParsedCompletion, PastTurn,
    PromptFormat, ShopR1Variant, compact,
};
pub use rollout::lane::Lane;
pub use rollout::task::Task;
pub use rollout::{InOrder, RolloutConfig, rollout, rollout_each};
