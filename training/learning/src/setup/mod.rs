//! From a configuration to the values it describes: shop, tokenizer, generation limits, fingerprint.

pub(crate) mod fingerprint;
pub(crate) mod limits;
pub(crate) mod open_shop;
pub(crate) mod tokenizer;
