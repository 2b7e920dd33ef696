//! Experts, which write the demonstrations that a model clones.
//!
//! An expert takes [`turn::ExpertTurn`]s. The [`browsing`] expert knows what the model knows, the instruction and
//! the pages. The [`two_habits`] expert knows the goal's hidden criteria.

pub(crate) mod browsing;
pub(crate) mod turn;
pub(crate) mod two_habits;
