//! Search as the original's Lucene does it: analysis, BM25 and the order of the hits.

pub(crate) mod analyzer;
pub(crate) mod bm25;
pub(crate) mod cache;
mod decoded;
mod exhaustive;
pub(crate) mod index;
pub(crate) mod memo;
mod open_term;
pub(crate) mod porter;
mod pruned;
mod standard_tokenizer;
