//! Checkpoints of a run: their names and links, writing and removing them.

pub(crate) mod names;
pub(crate) mod saving;
#[cfg(test)]
mod tests;
