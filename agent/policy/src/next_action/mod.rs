//! Shop-R1's next actions ("Shop-R1", arXiv 2507.17842): completions, examples, and the mapping to the shop.
//!
//! ```text
//! {"rationale": "<one sentence>", "action": {"type": "click", "name": "buy now"}}
//! ```
//!
//! A [`NextAction`] is an action that a user took. A completion is parsed as a [`NextActionCompletion`] under
//! a [`FormatMode`], or refused with a [`FormatError`]; its [`WrittenAction`] is what the model wrote, valid
//! or not. [`WrittenAction::in_shop`] maps it to the shop's action, [`NextAction::of`] maps back.
//!
//! An [`Example`] is one recorded step with the steps before it. Examples come from replayed episodes
//! ([`examples_of`]), from [`SessionReader`] of people, and from pages on which `terminate` is right
//! ([`terminate_example`]). A [`ExampleValidator`] validates examples of other programs, and [`ExampleCounts`] counts
//! them. An [`ExampleCollector`] combines all sources.
//!
//! This module renders no prompts and computes no rewards of completions.

pub(crate) mod action;
pub(crate) mod example;
pub(crate) mod mapping;
pub(crate) mod parse;

mod check;
mod collector;
mod counts;
mod from_episodes;
mod human;
mod mix;
mod rationale;
mod session;

#[cfg(test)]
mod tests;

pub use self::action::{ActionType, NextAction, WrittenAction};
pub use self::check::{ExampleProblem, ExampleValidator};
pub use self::collector::{CollectionOptions, ExampleCollector, TerminateShare};
pub use self::counts::ExampleCounts;
pub use self::example::{Example, ExampleSource, TERMINATE_RATIONALE, TakenStep, rationale_of};
pub use self::from_episodes::{
    ExampleOptions, MIN_REWARD, draw_terminate_example, examples_of, replay_session, session_of,
    terminate_example,
};
pub use self::human::{SessionReader, Skip, SkipReason};
pub use self::mapping::{BuyNowAs, MappedAction, MappingError, SEARCH_INPUT};
pub use self::mix::{
    PAPER_MIX, n_terminate_examples, n_terminate_examples_of_paper, paper_mix, terminate_examples,
};
pub use self::parse::{FormatError, FormatMode, NextActionCompletion};
pub use self::rationale::{rationale_span, rationale_tokens};
pub use self::session::{UserSession, offers};
