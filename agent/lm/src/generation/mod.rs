//! Generation: prompts in, completions out.
//!
//! [`Generator`] holds the contexts of all lanes and runs the sampling loop; [`group`] is the loop of lanes that are
//! computed together. [`Sampler`] draws a token from logits, [`Constraint`] restricts which tokens are allowed, and
//! [`Certainty`] measures how peaked the distributions were.

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
