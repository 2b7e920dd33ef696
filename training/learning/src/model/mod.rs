//! The model in training: weights on a device, gradients, and how policies are loaded and saved.

pub(crate) mod base;
pub(crate) mod critic;
pub(crate) mod gradient;
pub(crate) mod kl;
pub(crate) mod load;
pub(crate) mod network;
pub(crate) mod policy;
#[cfg(test)]
mod tests;
pub(crate) mod train_state;
