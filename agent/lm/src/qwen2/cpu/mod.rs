//! The CPU backend of the model: f32, the same bits on every machine.
//!
//! [`pass`] is training (packed sequences, gradients), [`decoder`] generation with a [`kv_cache`], and
//! [`memory`] the memory that a training pass takes.

pub(crate) mod decoder;
pub(crate) mod kv_cache;
mod memory;
pub(crate) mod pass;
