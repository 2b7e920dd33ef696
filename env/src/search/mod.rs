//! Search as the original's Lucene does it: analysis, BM25 and the order of the hits.

pub(crate) mod analyzer;
pub(crate) mod bm25;
mod decoded;
mod exhaustive;
pub(crate) mod index;
pub(crate) mod index_cache;
mod open_term;
pub(crate) mod porter;
mod pruned;
pub(crate) mod query_cache;
mod standard_tokenizer;
