//! All postings of a small catalog, decoded once, so that a search only adds.
//!
//! A [`DecodedPostings`] holds for each term its documents and how much each of them saturates it. Eight bytes a
//! posting are little for thousands of products and too much for a million, which [`crate::search::pruned`]
//! serves.

use crate::search::bm25::{Collection, UNTOUCHED, saturated};
use std::collections::HashMap;
use std::ops::Range;

/// The postings of all terms.
#[derive(Default)]
pub(super) struct DecodedPostings {
    terms: HashMap<Box<str>, DecodedTerm>,
    docs: Vec<u32>,
    /// Of each posting, the term's frequency times the inverse norm of the document.
    saturations: Vec<f32>,
}

/// A term and its postings.
struct DecodedTerm {
    idf: f32,
    postings: Range<usize>,
}

impl DecodedPostings {
    /// Adds a term with its postings in the order of documents: document and saturation.
    pub(super) fn add(
        &mut self,
        term: &str,
        collection: &Collection,
        postings: impl Iterator<Item = (u32, f32)>,
    ) {
        let start = self.docs.len();
        for (doc, saturation) in postings {
            self.docs.push(doc);
            self.saturations.push(saturation);
        }
        let postings = start..self.docs.len();
        let idf = collection.idf(postings.len() as u32);
        self.terms.insert(term.into(), DecodedTerm { idf, postings });
    }

    /// The sum of each document for `terms`, which are given with their counts; negative zero, which keeps a
    /// score added to it as it is, if it holds none of them.
    pub(super) fn sums(&self, terms: &[(String, u32)], n_documents: usize) -> Vec<f64> {
        let mut sums = vec![UNTOUCHED; n_documents];
        for (term, query_frequency) in terms {
            let Some(term) = self.terms.get(term.as_str()) else { continue };
            let weight = *query_frequency as f32 * term.idf;
            let docs = &self.docs[term.postings.clone()];
            let saturations = &self.saturations[term.postings.clone()];
            for (docs, saturations) in docs.chunks(LANES).zip(saturations.chunks(LANES)) {
                let mut scores = [0.0; LANES];
                for (score, &saturation) in scores.iter_mut().zip(saturations) {
                    *score = saturated(weight, saturation);
                }
                for (&doc, &score) in docs.iter().zip(&scores) {
                    sums[doc as usize] += f64::from(score);
                }
            }
        }
        sums
    }
}

/// Scores are computed in groups of this many, by instructions that divide several numbers at once.
const LANES: usize = 16;
