//! webshop_agent.

pub mod convert;
pub mod episode;
pub mod error;
pub mod expert;
pub mod next_action;
pub mod policies;
pub mod prompt_format;
pub mod rollout;

pub use crate::error::AgentError;
pub use crate::episode::prefix::Beginning;
pub use crate::policies::exploits::Canary;
pub use crate::policies::lm::demonstration::{ChatDemonstrator, ToldTurn};
pub use crate::policies::lm::chat::ChatFormat;
pub use crate::expert::{DemonstratedTurn, Demonstrator, Manner};
pub use crate::prompt_format::{Dialect, History, Utterance};
pub use crate::prompt_format::conversation::{Dialogue, PastTurn, Seen};
pub use crate::episode::{Episode, EpisodeCoordinates, EpisodeRecord, EpisodeTurn, PromptStamp, Sampling, TurnRecord, TurnTokens};
pub use crate::rollout::{InOrder, RolloutConfig, Task, rollout, rollout_each};
pub use crate::policies::lm::single_step::{Interviewer, Question};
pub use crate::policies::{LaneView, Move, PagePolicy, Policy, SeenPage};
pub use crate::policies::lm::{LmConfig, LmPolicy};
pub use crate::policies::oracle::OraclePolicy;
pub use crate::policies::random::RandomPolicy;
pub use crate::policies::rule::RulePolicy;
pub use crate::episode::file::TripFile;
pub use crate::episode::replay::remake;
pub use crate::episode::site::{SiteTrip, SiteTurn};
