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
//! A [`Sample`] is a recorded step with all that stood before it.
//!
//! The dialect `shop-r1` and the single-step rewards read answers by this one reader. It shows no pages (the dialect
//! does) and judges nothing (the trainer does).

mod action;
mod certainty;
mod mapping;
mod rationale;
mod reading;
mod sample;
mod samples;
#[cfg(test)]
mod tests;

pub use action::{ActionType, NextAction, WrittenAction};
pub use certainty::{Certainty, CertaintyKind, certainty_of_likeliest};
pub use mapping::{BuyNowAs, SEARCH_INPUT, ShopMove, Unfit};
pub use rationale::{rationale_span, rationale_tokens};
pub use reading::{Answer, FormatError, FormatMode};
pub use sample::{LEAVING, PastStep, Sample, SampleSource, rationale_of};
pub use samples::{About, dead_end, samples_of};
