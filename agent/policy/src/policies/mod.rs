//! Policies: the traits, policies without a model, and language models ([`lm`]).

pub(crate) mod policy;

pub(crate) mod candidates;
pub(crate) mod expert;
pub(crate) mod exploits;
pub(crate) mod named_options;
pub(crate) mod oracle;
pub(crate) mod random;
pub(crate) mod rule;

pub(crate) mod lm;

#[cfg(test)]
mod tests;
