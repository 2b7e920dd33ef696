//! Search by scoring every document: slow, and what quicker searches are compared with.

use crate::search::bm25::{UNTOUCHED, term_score};
use crate::search::index::{Hit, SearchIndex, TooManyTerms, query_terms};
use tantivy::postings::Postings;
use tantivy::{DocSet, TERMINATED};

impl SearchIndex {
    /// The hits of [`SearchIndex::search`], by the score of every document that holds a term of the query.
    ///
    /// # Errors
    /// [`TooManyTerms`].
    pub(crate) fn search_exhaustively(&self, query: &str) -> Result<Vec<Hit>, TooManyTerms> {
        let mut sums = vec![UNTOUCHED; self.n_documents()];
        for (term, query_frequency) in query_terms(query)? {
            let Some(mut postings) = self.open(&term) else { continue };
            let weight = self.weight(query_frequency, postings.doc_freq());
            while postings.doc() != TERMINATED {
                let doc = postings.doc();
                let score = term_score(weight, postings.term_freq(), self.inverse_norm(doc));
                sums[doc as usize] += f64::from(score);
                postings.advance();
            }
        }
        Ok(self.rank((0..).zip(sums).filter(|(_, sum)| sum.is_sign_positive())))
    }
}
