//! Generation: prompts in, completions out.
//!
//! A [`Generator`] holds the contexts of all lanes; [`group`] is the sampling loop of the lanes that are
//! decoded together. A [`Sampler`] draws a token from logits, a [`Constraint`] restricts the allowed tokens,
//! and a [`Certainty`] measures the distance of a distribution from the uniform one.

mod constraint;
mod generator;
mod group;
mod request;
pub(crate) mod sampler;
mod self_certainty;
#[cfg(test)]
mod tests;

pub use self::constraint::{Allowed, Budget, Constraint, ConstraintState, FreeText, Thought, ThoughtStart};
pub use self::generator::Generator;
pub use self::request::{Completion, Context, GeneratorConfig, Request, StopReason};
pub use self::sampler::{Draw, Sampler, SamplingCoordinates};
pub use self::self_certainty::{Certainty, CertaintyKind, certainty_of_top_k};
