//! How well one product answers a query: BM25 as Lucene 8 computes it, to the last bit.
//!
//! S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009,
//! with the constants of the original shop. For a term that occurs `qtf` times in the query, `tf`
//! times in a document of `len` terms, and in `df` of `n` documents:
//!
//! ```text
//! idf   = ln(1 + (n − df + 0.5) / (df + 0.5))           `Collection::idf`
//! w     = qtf · idf                                     `TermScore::weight`
//! inv   = 1 / (k1 · ((1 − b) + b · len / average_len))  `Collection::inverse_norm`
//! score = w − w / (1 + tf · inv)                        `term_score`
//! ```
//!
//! Deviations from the paper, all Lucene's: no factor (k1 + 1); `len` is rounded to the nearest
//! length one byte can hold (exact up to 40); every step is `f32`, except the logarithm and the
//! sum over terms, which are `f64`. The type [`SearchExplanation`] shows the whole sum.

use std::fmt;
use webshop_products::ProductId;

/// How soon more occurrences of a term stop counting.
pub const K1: f32 = 0.9;
/// How much a long document is held against its terms.
pub const B: f32 = 0.4;

/// Statistics of all documents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Collection {
    /// Documents with at least one term.
    pub n_documents: u32,
    /// Terms per document, over those documents.
    pub average_len: f32,
}

impl Collection {
    /// A collection of `n_documents` non-empty documents that hold `n_terms` terms in all.
    pub fn new(n_documents: u32, n_terms: u64) -> Self {
        Collection { n_documents, average_len: (n_terms as f64 / f64::from(n_documents.max(1))) as f32 }
    }

    /// The inverse document frequency of a term that `document_frequency` documents hold.
    pub fn idf(&self, document_frequency: u32) -> f32 {
        let (n, df) = (f64::from(self.n_documents), f64::from(document_frequency));
        libm::log(1.0 + (n - df + 0.5) / (df + 0.5)) as f32
    }

    /// The factor by which an occurrence counts in a document of `len` terms.
    pub fn inverse_norm(&self, len: u32) -> f32 {
        1.0 / (K1 * ((1.0 - B) + B * len as f32 / self.average_len))
    }
}

/// The sum of a document that holds none of the terms. A score added to it stays as it is, and its sign tells it
/// from a score that rounds to zero.
pub(crate) const UNTOUCHED: f64 = -0.0;

/// The share of one term in a document's score.
pub(crate) fn term_score(weight: f32, tf: u32, inverse_norm: f32) -> f32 {
    saturated(weight, tf as f32 * inverse_norm)
}

/// [`term_score`] of the product `tf · inv`. It does not fall when the product grows, since rounding keeps the
/// order of numbers; so the greatest product makes the greatest score, to the last bit.
pub(crate) fn saturated(weight: f32, saturation: f32) -> f32 {
    weight - weight / (1.0 + saturation)
}

/// Why a product has the score it has for a query; `Display` prints the sum with its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchExplanation {
    /// The product explained.
    pub id: ProductId,
    /// Its place among the results, from 1; `None` if it is not listed.
    pub rank: Option<usize>,
    /// The sum of the terms' scores.
    pub score: f32,
    /// The number of terms in the product's document, as one byte remembers it.
    pub len: u32,
    /// The collection the score is relative to.
    pub collection: Collection,
    /// One entry per distinct term of the query, in the query's order.
    pub terms: Vec<TermScore>,
}

/// One term's part of a [`SearchExplanation`].
#[derive(Clone, Debug, PartialEq)]
pub struct TermScore {
    /// The analyzed term.
    pub term: String,
    /// How often the query holds it.
    pub query_frequency: u32,
    /// How many documents hold it.
    pub document_frequency: u32,
    /// [`Collection::idf`] of that number.
    pub idf: f32,
    /// How often the product's document holds it.
    pub term_frequency: u32,
    /// Its contribution to the score; 0 if the document lacks it.
    pub score: f32,
}

impl TermScore {
    /// The most this term could add, were it repeated without end.
    pub fn weight(&self) -> f32 {
        self.query_frequency as f32 * self.idf
    }
}

impl fmt::Display for SearchExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Collection { n_documents, average_len } = self.collection;
        match self.rank {
            Some(rank) => writeln!(f, "{} is result {rank}", self.id)?,
            None => writeln!(f, "{} is not among the results", self.id)?,
        }
        writeln!(
            f,
            "{:.4} = sum over the query's terms of w - w / (1 + tf * {:.4}), w = qtf * idf",
            self.score,
            self.collection.inverse_norm(self.len)
        )?;
        writeln!(
            f,
            "  {:.4} = 1 / (k1 * ((1 - b) + b * len / average)), k1 {K1}, b {B}, len {}, average {average_len:.2}",
            self.collection.inverse_norm(self.len),
            self.len
        )?;
        for part in &self.terms {
            writeln!(
                f,
                "  {:>8.4}  {:<16} qtf {}, tf {}, idf {:.4} (in {} of {n_documents})",
                part.score,
                part.term,
                part.query_frequency,
                part.term_frequency,
                part.idf,
                part.document_frequency
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_term_scores_as_by_hand() {
        // 3 documents of 4 terms each; the term is in one of them, once:
        // idf = ln(1 + 2.5 / 1.5) = ln 2.6667 = 0.980829; inv = 1 / 0.9 = 1.111111;
        // score = 0.980829 · (1 − 1 / 2.111111) = 0.516226.
        let collection = Collection::new(3, 12);
        let score = term_score(collection.idf(1), 1, collection.inverse_norm(4));
        assert!((score - 0.516_226).abs() < 1e-6, "{score}");
    }

    #[test]
    fn repeats_help_less_and_less_and_length_hurts() {
        let collection = Collection::new(100, 1000);
        let at = |tf, len| term_score(2.0, tf, collection.inverse_norm(len));
        assert!(at(2, 10) - at(1, 10) > at(3, 10) - at(2, 10));
        assert!(at(1, 5) > at(1, 50));
        assert!(at(1_000_000, 10) <= 2.0);
    }
}
