//! Search without scoring every document (MaxScore, term at a time).
//!
//! In a large catalog most of the time of a search goes to words that half of all products hold and that
//! decide little. Terms are taken in descending order of their greatest score. Every document that holds one
//! is summed up as in the exhaustive search, until the remaining terms cannot lift a new document among the
//! best. From then on only documents met before are looked up, and those that the remaining terms cannot lift
//! among the best are dropped. (Turtle and Flood, "Query evaluation: strategies and optimizations", 1995.)
//!
//! The order of summation differs from the exhaustive search, so sums may differ by rounding. The result is
//! therefore a set of candidates within [`SLACK`] of the best, which are scored again exhaustively: the hits
//! are the same.

use crate::search::bm25::term_score;
use crate::search::index::{MAX_HITS, OpenTerm, SearchIndex, UNTOUCHED};
use tantivy::postings::Postings;
use tantivy::{DocSet, TERMINATED};

/// Relative tolerance for rounding, about ten times that of the `f32` in which hits are compared.
const SLACK: f64 = 1e-6;

impl SearchIndex {
    /// All documents that may be among the best [`MAX_HITS`] for `terms`, ascending and distinct.
    pub(super) fn candidates(&self, terms: &[OpenTerm]) -> Vec<u32> {
        let mut terms: Vec<&OpenTerm> = terms.iter().collect();
        terms.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        // No score of a term exceeds its weight, however often a document holds it.
        let mut left: f64 = terms.iter().map(|term| f64::from(term.weight)).sum();
        let mut sums = self.take_buffer();
        let mut met: Vec<u32> = Vec::new();
        let mut terms = terms.into_iter();
        let mut needed = f64::NEG_INFINITY;
        while left >= needed
            && let Some(term) = terms.next()
        {
            self.add_to_all(term.clone(), &mut sums, &mut met);
            left -= f64::from(term.weight);
            needed = needed_score(&met, &sums);
        }
        let can_win = |sums: &[f64], doc: u32, left: f64, needed: f64| sums[doc as usize] + left >= needed;
        let mut alive: Vec<u32> =
            met.iter().copied().filter(|&doc| can_win(&sums, doc, left, needed)).collect();
        alive.sort_unstable();
        for term in terms {
            self.add_to_some(term.clone(), &mut sums, &alive);
            left -= f64::from(term.weight);
            needed = needed_score(&alive, &sums);
            alive.retain(|&doc| can_win(&sums, doc, left, needed));
        }
        for doc in met {
            sums[doc as usize] = UNTOUCHED;
        }
        self.give_back(sums);
        alive
    }

    /// Adds the score of `term` to every document that holds it.
    pub(super) fn add_to_all(&self, mut term: OpenTerm, sums: &mut [f64], met: &mut Vec<u32>) {
        let mut doc = term.postings.doc();
        while doc != TERMINATED {
            let score = self.score_here(&term);
            let sum = &mut sums[doc as usize];
            if *sum == UNTOUCHED {
                met.push(doc);
                *sum = score;
            } else {
                *sum += score;
            }
            doc = term.postings.advance();
        }
    }

    /// Adds the score of `term` to those of `docs` (ascending) that hold it.
    pub(super) fn add_to_some(&self, mut term: OpenTerm, sums: &mut [f64], docs: &[u32]) {
        for &doc in docs {
            let reached =
                if term.postings.doc() < doc { term.postings.seek(doc) } else { term.postings.doc() };
            if reached == doc {
                let sum = &mut sums[doc as usize];
                *sum = sum.max(0.0) + self.score_here(&term);
            }
        }
    }

    /// The score of a term for the document it is positioned at.
    fn score_here(&self, term: &OpenTerm) -> f64 {
        let inverse_norm = self.inverse_norms[self.lengths.fieldnorm_id(term.postings.doc()) as usize];
        f64::from(term_score(term.weight, term.postings.term_freq(), inverse_norm))
    }
}

/// The least final score of a document among the best [`MAX_HITS`], given the partial `sums`.
fn needed_score(docs: &[u32], sums: &[f64]) -> f64 {
    let mut best: Vec<f64> = Vec::with_capacity(2 * MAX_HITS);
    let mut least = f64::NEG_INFINITY;
    for &doc in docs {
        let sum = sums[doc as usize];
        if sum > least {
            best.push(sum);
            if best.len() == 2 * MAX_HITS {
                best.select_nth_unstable_by(MAX_HITS - 1, |a, b| b.total_cmp(a));
                best.truncate(MAX_HITS);
                least = best[MAX_HITS - 1];
            }
        }
    }
    if best.len() < MAX_HITS {
        return f64::NEG_INFINITY;
    }
    best.select_nth_unstable_by(MAX_HITS - 1, |a, b| b.total_cmp(a));
    best[MAX_HITS - 1] * (1.0 - SLACK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;
    use webshop_products::{ProductId, Purpose, Seed};

    /// Documents of words of which some are in most of them and most in few.
    fn index(n_documents: usize, rng: &mut impl Rng) -> SearchIndex {
        let mut word = || {
            let rarity: f64 = rng.random();
            format!("w{}", (rarity.powi(4) * 60.0) as u32)
        };
        let documents: Vec<String> = (0..n_documents)
            .map(|at| (0..5 + at % 7).map(|_| word()).collect::<Vec<_>>().join(" "))
            .collect();
        let ids = (0..n_documents).map(|at| ProductId::new(&format!("B{at}")).unwrap()).collect();
        SearchIndex::new(ids, documents.iter().cloned(), None).unwrap()
    }

    #[test]
    fn the_hits_are_those_of_the_plain_search() {
        let mut rng = Seed(0).rng(Purpose::CATALOG, &[]);
        let mut n_pruned = 0;
        for n_documents in [1, 40, 60, 3_000] {
            let index = index(n_documents, &mut rng);
            for n_words in 0..40 {
                let words = (0..n_words % 13).map(|_| format!("w{} ", rng.random_range(0..70)));
                let query: String = words.collect();
                let open = || index.open_all(&query).unwrap();
                assert_eq!(index.search_pruned(&open()), index.search_exhaustive(open()), "{query}");
                let mut sums = index.take_buffer();
                let mut met = Vec::new();
                open().into_iter().for_each(|term| index.add_to_all(term, &mut sums, &mut met));
                n_pruned += usize::from(index.candidates(&open()).len() < met.len());
            }
        }
        assert!(n_pruned > 30, "only {n_pruned} searches were any shorter");
    }

    #[test]
    fn equal_documents_are_all_candidates() {
        let ids = (0..200).rev().map(|at| ProductId::new(&format!("B{at:03}")).unwrap()).collect();
        let documents = (0..200).map(|_| "oak lamp".to_owned());
        let index = SearchIndex::new(ids, documents, None).unwrap();
        let terms = index.open_all("lamp oak").unwrap();
        assert_eq!(index.candidates(&terms).len(), 200);
        assert_eq!(index.search_pruned(&terms)[0].product.0, 199, "the first name wins");
    }
}
