//! Flags that several commands share, one file per group: which shop, under which rules, which episodes, which
//! model, on which device, which configuration.

pub(crate) mod cache;
pub(crate) mod compute;
pub(crate) mod episodes;
pub(crate) mod examples;
pub(crate) mod experiment;
pub(crate) mod observation;
pub(crate) mod rules;
pub(crate) mod server;
pub(crate) mod shard;
pub(crate) mod shop;
