//! generation.

pub mod constraint;
pub mod generator;
pub mod group;
pub mod sampler;
pub mod self_certainty;
#[cfg(test)]
mod tests;
