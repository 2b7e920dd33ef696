//! The shop as a deterministic decision process.
//!
//! A [`Shop`] is the immutable part: catalog, goals, search and rewards. A [`Session`] is the state of one
//! episode; it has a [`Page`] and takes an [`Action`]. [`ShopEnv`] is a Gymnasium environment of both,
//! [`VecEnv`] many of them. An [`Episode`] is a recorded episode, which [`replay()`] plays again and
//! [`transcript()`] writes for people.
//!
//! ```
//! use std::sync::Arc;
//! use webshop_env::{Action, EnvConfig, Shop, ShopEnv};
//! use webshop_products::{EmbeddedCatalog, GoalId, GoalKind};
//!
//! let shop = Arc::new(Shop::embedded(EmbeddedCatalog::Hundred, GoalKind::Both));
//!
//! let mut env = ShopEnv::new(shop, EnvConfig::default());
//! let start = env.reset(GoalId(0));
//! assert!(start.content().starts_with("WebShop [SEP] Instruction: [SEP] "));
//! let step = env.step(&Action::Search("shoes".into()));
//! assert!(step.observation.available_actions().clickables.contains(&"next >".to_owned()));
//! assert_eq!((step.reward, step.terminated, step.truncated), (0.0, false, false));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate has no tokens of a language model, no policy and no learning.

#![forbid(unsafe_code)]

mod action;
mod version;

mod original;
mod page;
mod search;

mod reward;
mod session;

mod fingerprint;
mod generated;
mod search_statistics;
mod shop;
mod shop_env;
mod vec_env;

mod trajectory;

pub use action::{Action, NoopReason};
pub use fingerprint::{GeneratedCatalog, ShopFingerprint};
pub use original::compat::Compat;
pub use original::deviations::{Deviation, DeviationReport, NounChoice, NounReference};
pub use original::trace::{
    ScriptedEpisode, SessionName, TraceError, TracedEpisode, TracedPage, TracedSession, TracedStep, Tracer,
};
pub use page::available_actions::AvailableActions;
pub use page::foreign::{ForeignPage, Link, Links, Method, read_html};
pub use page::html::HtmlText;
pub use page::observation_mode::ObservationMode;
pub use page::{
    Detail, DetailPage, DonePage, ItemPage, Node, NodeKind, OptionLabel, OptionList, Page, ResultItem,
    ResultsPage, SearchPage,
};
pub use reward::best_purchase::Purchase;
pub use reward::color::{COLORS, normalize_color};
pub use reward::fuzzy::{MATCH_ABOVE, token_set_ratio};
pub use reward::nouns::{NounTable, title_nouns};
pub use reward::original_fields::VerboseInfo;
pub use reward::{RewardBreakdown, RewardExplanation};
pub use search::analyzer::analyze;
pub use search::bm25::{B, Collection, K1, SearchExplanation, TermScore};
pub use search::index::{Hit, MAX_HITS, MAX_QUERY_TERMS, TooManyTerms};
pub use search::porter::stem;
pub use search_statistics::SearchStatistics;
pub use session::address::{Address, Choice, Listing};
pub use session::envelope::SnapshotError;
pub use session::{Outcome, RESULTS_PER_PAGE, Session, Transition, Walk};
pub use shop::{EnvError, Shop, ShopConfig};
pub use shop_env::{EnvConfig, Observation, ShopEnv, Step, StepInfo};
pub use trajectory::record::{Difference, Episode, EpisodeError, TransitionDigest, Turn};
pub use trajectory::replay::{EpisodeDifference, Replay, ReplayError, replay, replay_in};
pub use trajectory::transcript::{transcript, transcript_of_actions};
pub use vec_env::VecEnv;
pub use version::{ENVIRONMENT_ID, EPISODE_FORMAT};
