//! Shop-R1's next action: what it is, how a model writes it, and what it is in the shop ("Shop-R1", arXiv 2507.17842).
//!
//! ```text
//! {"rationale": "<one sentence>", "action": {"type": "click", "name": "buy now"}}
//! ```
//!
//! A [`NextAction`] is one that a customer took. A model's completion is read into an [`Answer`] under a
//! [`FormatMode`], or refused with a [`FormatError`] that says what is wrong; its [`WrittenAction`] is what the model
//! wrote, sensible or not. [`WrittenAction::in_shop`] says what that does on a page, [`NextAction::of`] how a move of the
//! shop's reads here. [`rationale_tokens`] says which tokens wrote the rationale.
//!
//! A [`Sample`] is a recorded step with all that stood before it. They come from trips that the shop makes again
//! ([`samples_of`]), from [`Recordings`] of people, and from pages on which to leave ([`dead_end`]); a [`Checker`] checks
//! those of others, a [`Census`] counts.
//!
//! The dialect `shop-r1` and the single-step rewards read answers by this one reader. It shows no pages (the dialect
//! does) and judges nothing (the trainer does).

pub mod action;
pub mod check;
pub mod counts;
pub mod example;
pub mod from_episodes;
pub mod human;
pub mod mapping;
pub mod mix;
pub mod parse;
pub mod rationale;
pub mod session;
#[cfg(test)]
mod tests;






pub use crate::next_action::action::{ActionType, NextAction, WrittenAction};
pub use crate::next_action::counts::Census;
pub use webshop_lm::generation::self_certainty::{Certainty, CertaintyKind, certainty_of_likeliest};
pub use crate::next_action::check::{Checker, Problem};
pub use crate::next_action::mapping::{BuyNowAs, SEARCH_INPUT, ShopMove, Unfit};
pub use crate::next_action::mix::{PAPER_MIX, dead_ends, n_dead_ends, n_dead_ends_of_paper, paper_mix};
pub use crate::next_action::rationale::{rationale_span, rationale_tokens};
pub use crate::next_action::parse::{Answer, FormatError, FormatMode};
pub use crate::next_action::human::{Recordings, Skip, SkipReason};
pub use crate::next_action::example::{LEAVING, Sample, SampleSource, TakenStep, rationale_of};
pub use crate::next_action::from_episodes::{About, HOPE, dead_end, drawn_dead_end, retrace, samples_of, split_of, visit_of};
pub use crate::next_action::session::{Visit, offers};
