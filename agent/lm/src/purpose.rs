//! The purposes for which this crate draws random numbers. The tags are part of every draw's key.

use webshop_products::Purpose;

/// Initial weights of a random model.
pub(crate) const INIT: Purpose = Purpose::new("init");
/// Initial matrices of a LoRA adapter.
pub(crate) const ADAPTER: Purpose = Purpose::new("adapter");
/// Sampled tokens.
pub(crate) const DECODING: Purpose = Purpose::new("decoding");
/// Random texts in the tokenizer's tests.
#[cfg(test)]
pub(crate) const TOKENIZER: Purpose = Purpose::new("tokenizer");
