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

mod action;
mod certainty;
mod mapping;
mod rationale;
mod reading;
mod sample;

mod visit;

mod samples;

mod mix;
mod recorded;

mod census;
mod check;
#[cfg(test)]
mod tests;

pub use action::{ActionType, NextAction, WrittenAction};
pub use census::Census;
pub use certainty::{Certainty, CertaintyKind, certainty_of_likeliest};
pub use check::{Checker, Problem};
pub use mapping::{BuyNowAs, SEARCH_INPUT, ShopMove, Unfit};
pub use mix::{PAPER_MIX, dead_ends, n_dead_ends, n_dead_ends_of_paper, paper_mix};
pub use rationale::{rationale_span, rationale_tokens};
pub use reading::{Answer, FormatError, FormatMode};
pub use recorded::{Recordings, Skip, SkipReason};
pub use sample::{LEAVING, Sample, SampleSource, TakenStep, rationale_of};
pub use samples::{About, HOPE, dead_end, drawn_dead_end, retrace, samples_of, split_of, visit_of};
pub use visit::{Visit, offers};
