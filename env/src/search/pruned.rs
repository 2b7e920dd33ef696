//! Search without scoring every document (MaxScore, a window of documents at a time).
//!
//! In a large catalog most of the time of a search would go to words that half of all products hold and that
//! decide little. Each term has an upper bound of its score, exact for the collection. Once the best sums so far
//! are known, the terms with the least bounds are optional: a document that holds only these cannot be among the
//! best. The others are essential. A search goes through the postings of the essential terms in windows of
//! documents, and then through those of optional terms, the greatest bound first, for as long as that is quicker
//! than to look them up for the documents that may still be among the best. (Turtle and Flood, "Query evaluation:
//! strategies and optimizations", 1995; by windows as in Lucene's `MaxScoreBulkScorer`.)
//!
//! Scores of terms are exact here, but the order of summation differs from the query's, so sums may differ by
//! rounding. The result is therefore a set of candidates within [`SLACK`] of the best, which are summed up again
//! in the order of the query: the hits are those of a search that scores every document, to the last bit.

use crate::search::bm25::{UNTOUCHED, saturated};
use crate::search::index::{Hit, MAX_HITS, SearchIndex};
use crate::search::open_term::{BLOCK, OpenTerm};
use std::ops::Range;
use tantivy::TERMINATED;

/// Relative tolerance for rounding, about ten times that of the `f32` in which hits are compared.
const SLACK: f64 = 1e-6;

/// Documents a window: their sums stay in the cache of a core.
const WINDOW: usize = 8_192;

/// To look a posting up takes as long as to go through about this many.
const POSTINGS_PER_LOOK_UP: usize = 12;

/// The sums of a window are compared in groups of this many.
const GROUP: usize = 16;

impl SearchIndex {
    /// The best products for the terms of a query in their order.
    pub(super) fn search_pruned(&self, terms: Vec<OpenTerm>) -> Vec<Hit> {
        self.search_in_windows(terms, WINDOW)
    }

    fn search_in_windows(&self, terms: Vec<OpenTerm>, window: usize) -> Vec<Hit> {
        let candidates = Pruning::new(self, terms.clone(), window).candidates();
        let mut sums = vec![0.0; candidates.len()];
        for mut term in terms {
            for (sum, &doc) in sums.iter_mut().zip(&candidates) {
                *sum += self.score_in(&mut term, doc);
            }
        }
        self.rank(candidates.into_iter().zip(sums))
    }

    /// The score of `term` in `doc`, which is not before an earlier one.
    fn score_in(&self, term: &mut OpenTerm, doc: u32) -> f64 {
        let frequency = term.frequency_in(doc);
        f64::from(saturated(term.weight, frequency as f32 * self.inverse_norm(doc)))
    }
}

/// The search for candidates.
struct Pruning<'a> {
    index: &'a SearchIndex,
    /// The terms by their bounds, ascending: the optional ones come first.
    terms: Vec<OpenTerm>,
    /// The greatest sum of the first so many terms.
    bounds: Vec<f64>,
    /// The sums of the documents of a window.
    sums: Vec<f64>,
    best: BestSums,
    /// Documents that may be among the best, with their sums, ascending.
    found: Vec<(u32, f64)>,
}

impl<'a> Pruning<'a> {
    fn new(index: &'a SearchIndex, mut terms: Vec<OpenTerm>, window: usize) -> Self {
        terms.sort_by(|a, b| a.bound.total_cmp(&b.bound));
        let mut bounds = vec![0.0];
        bounds.extend(terms.iter().scan(0.0, |sum, term| {
            *sum += f64::from(term.bound);
            Some(*sum)
        }));
        let sums = vec![UNTOUCHED; window.next_multiple_of(GROUP)];
        Self { index, terms, bounds, sums, best: BestSums::default(), found: Vec::new() }
    }

    /// All documents that may be among the best, ascending and distinct.
    fn candidates(mut self) -> Vec<u32> {
        while let Some((window, n_optional)) = self.sum_window() {
            self.complete_window(window.start, n_optional);
            self.best.settle();
        }
        let needed = self.best.needed;
        self.found.into_iter().filter(|(_, sum)| *sum >= needed).map(|(doc, _)| doc).collect()
    }

    /// Sums up a window that begins at the next document that may be among the best. Returns the window and
    /// the number of terms to look up in it; `None` if there is no such document.
    fn sum_window(&mut self) -> Option<(Range<u32>, usize)> {
        let needed = self.best.needed;
        let mut n_optional = self.bounds[1..].iter().take_while(|&&bound| bound < needed).count();
        let start = self.terms[n_optional..].iter().map(OpenTerm::doc).min()?;
        if start == TERMINATED {
            return None;
        }
        let window = start..start.saturating_add(self.sums.len() as u32).min(TERMINATED);
        (n_optional..self.terms.len()).for_each(|at| self.add(at, &window));
        while n_optional > 0 {
            let floor = needed - self.bounds[n_optional];
            let n_looked_up: usize = self.sums.iter().map(|&sum| usize::from(sum >= floor)).sum();
            let n_postings = self.terms[n_optional - 1].blocks.doc_freq() as usize;
            let n_in_window = n_postings * self.sums.len() / self.index.n_documents();
            if n_looked_up * POSTINGS_PER_LOOK_UP <= n_in_window {
                break;
            }
            n_optional -= 1;
            self.add(n_optional, &window);
        }
        Some((window, n_optional))
    }

    /// Adds the scores of a term to the sums of the documents in `window`.
    fn add(&mut self, term: usize, window: &Range<u32>) {
        let term = &mut self.terms[term];
        term.seek(window.start);
        while term.doc() < window.end {
            let docs = &term.blocks.docs()[term.at..];
            let n_docs = match docs.last() {
                Some(&last) if last >= window.end => docs.partition_point(|&doc| doc < window.end),
                _ => docs.len(),
            };
            let (docs, freqs) = (&docs[..n_docs], &term.blocks.freqs()[term.at..]);
            // Three loops, of which the second divides several numbers at once.
            let mut scores = [0.0; BLOCK];
            for ((score, &doc), &frequency) in scores.iter_mut().zip(docs).zip(freqs) {
                *score = frequency as f32 * self.index.inverse_norm(doc);
            }
            for score in &mut scores[..n_docs] {
                *score = saturated(term.weight, *score);
            }
            for (&doc, &score) in docs.iter().zip(&scores) {
                self.sums[(doc - window.start) as usize] += f64::from(score);
            }
            term.at += n_docs;
            if term.at == BLOCK {
                term.blocks.advance();
                term.at = 0;
            }
        }
    }

    /// Completes the sums of a window by looking the optional terms up, keeps those that may be among the best,
    /// and empties the window.
    fn complete_window(&mut self, start: u32, n_optional: usize) {
        let Self { index, terms, bounds, sums, best, found } = self;
        let optional = &mut terms[..n_optional];
        let rest = bounds[n_optional];
        for (first, sums) in (start..).step_by(GROUP).zip(sums.chunks_exact_mut(GROUP)) {
            let floor = best.needed - rest;
            if sums.iter().fold(false, |any, &sum| any | (sum >= floor)) {
                let may_win = |sum: f64| sum >= floor && sum.is_sign_positive();
                for (doc, &sum) in (first..).zip(&*sums).filter(|(_, sum)| may_win(**sum)) {
                    let complete =
                        optional.iter_mut().zip(&bounds[1..]).rev().try_fold(sum, |sum, (term, rest)| {
                            (sum + rest >= best.needed).then(|| sum + index.score_in(term, doc))
                        });
                    if let Some(sum) = complete.filter(|sum| *sum >= best.needed) {
                        found.push((doc, sum));
                        best.add(sum);
                    }
                }
            }
            sums.fill(UNTOUCHED);
        }
    }
}

/// The [`MAX_HITS`] best sums so far.
struct BestSums {
    /// The best of all sums; now and then cut down to as many as are needed.
    sums: Vec<f64>,
    /// The least sum of a document that may be among the best; may be too low until [`BestSums::settle`].
    needed: f64,
}

impl Default for BestSums {
    fn default() -> Self {
        Self { sums: Vec::with_capacity(2 * MAX_HITS), needed: f64::NEG_INFINITY }
    }
}

impl BestSums {
    fn add(&mut self, sum: f64) {
        self.sums.push(sum);
        if self.sums.len() == 2 * MAX_HITS {
            self.settle();
        }
    }

    fn settle(&mut self) {
        if self.sums.len() >= MAX_HITS {
            self.sums.select_nth_unstable_by(MAX_HITS - 1, |a, b| b.total_cmp(a));
            self.sums.truncate(MAX_HITS);
            self.needed = self.sums[MAX_HITS - 1] * (1.0 - SLACK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::index::query_terms;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use webshop_products::{ProductId, ProductIdx};

    fn index(documents: &[String]) -> SearchIndex {
        // The order of ids is not that of the catalog: 7 divides no power of ten.
        let id = |at: usize| ProductId::new(&format!("B{:04}", at * 7 % 10_000)).unwrap();
        SearchIndex::new((0..documents.len()).map(id).collect(), documents.iter().cloned(), None).unwrap()
    }

    /// Texts of words of which some are in most texts and most are in few.
    fn text(n_words: Range<usize>) -> impl Strategy<Value = String> {
        let word = (0.0..1.0_f64).prop_map(|rarity| format!("w{} ", (rarity.powi(4) * 60.0) as u32));
        vec(word, n_words).prop_map(|words| words.concat())
    }

    /// Every document that holds a term of the query, by its explanation.
    fn plain_search(index: &SearchIndex, query: &str) -> Vec<(ProductIdx, u32)> {
        let explained = |at| index.explain(query, ProductIdx(at)).unwrap();
        let all = (0..index.n_documents() as u32).map(|at| (at, explained(at)));
        let mut hits: Vec<_> =
            all.filter(|(_, why)| why.terms.iter().any(|term| term.term_frequency > 0)).collect();
        hits.sort_by(|(_, a), (_, b)| b.score.total_cmp(&a.score).then(a.id.as_str().cmp(b.id.as_str())));
        hits.truncate(MAX_HITS);
        hits.into_iter().map(|(at, why)| (ProductIdx(at), why.score.to_bits())).collect()
    }

    fn bits(hits: &[Hit]) -> Vec<(ProductIdx, u32)> {
        hits.iter().map(|hit| (hit.product, hit.score.to_bits())).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn the_hits_are_those_of_a_search_that_scores_every_document(
            documents in vec(text(0..12), 1..300),
            queries in vec(text(0..9), 4),
            window in 1_usize..400,
        ) {
            let mut index = index(&documents);
            let expected: Vec<_> = queries.iter().map(|query| plain_search(&index, query)).collect();
            for (query, expected) in queries.iter().zip(&expected) {
                prop_assert_eq!(&bits(&index.search(query).unwrap()), expected, "decoded: {}", query);
                prop_assert_eq!(&bits(&index.search_exhaustively(query).unwrap()), expected, "{}", query);
            }
            index.prune();
            for (query, expected) in queries.iter().zip(&expected) {
                let terms = index.open_all(&query_terms(query).unwrap());
                prop_assert_eq!(&bits(&index.search_in_windows(terms, window)), expected, "pruned: {}", query);
            }
        }

        #[test]
        fn in_a_larger_catalog_most_documents_are_not_scored(
            documents in vec(text(5..12), 3_000),
            queries in vec(text(3..13), 12),
        ) {
            let mut index = index(&documents);
            let expected: Vec<_> = queries.iter().map(|query| index.search(query).unwrap()).collect();
            index.prune();
            let mut n_found = 0;
            for (query, expected) in queries.iter().zip(&expected) {
                let terms = index.open_all(&query_terms(query).unwrap());
                n_found += Pruning::new(&index, terms.clone(), 256).candidates().len();
                prop_assert_eq!(&bits(&index.search_in_windows(terms, 256)), &bits(expected), "{}", query);
            }
            prop_assert!(n_found < queries.len() * 1_000, "{} documents of {}", n_found, queries.len() * 3_000);
        }
    }

    #[test]
    fn equal_documents_are_all_candidates() {
        let ids = (0..200).rev().map(|at| ProductId::new(&format!("B{at:03}")).unwrap()).collect();
        let mut index = SearchIndex::new(ids, (0..200).map(|_| "oak lamp".to_owned()), None).unwrap();
        index.prune();
        let terms = index.open_all(&query_terms("lamp oak").unwrap());
        assert_eq!(Pruning::new(&index, terms, WINDOW).candidates().len(), 200);
        assert_eq!(index.search("lamp oak").unwrap()[0].product.0, 199, "the first name wins");
    }
}
