//! checkpoint.

pub mod names;
pub mod saving;
#[cfg(test)]
mod tests;
