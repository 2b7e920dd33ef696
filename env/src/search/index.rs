//! The search engine of the shop: tantivy's postings under Lucene's ranking.
//!
//! [`SearchIndex`] holds one document per product, in catalog order, and finds at most [`MAX_HITS`] [`Hit`]s
//! for a text: a bag of analyzed terms, scored by [`crate::search::bm25`], best first, ties by product id.
//! tantivy keeps the dictionary, the postings and the lengths; its query parser and its own BM25 (other
//! constants, another sum) are not used.
//!
//! A search fails only with [`TooManyTerms`]. Nothing is cached between searches; the postings may be cached
//! from one run to the next, by [`crate::search::cache`].

use crate::search::analyzer::{LuceneTokenizer, analyze};
use crate::search::bm25::{Collection, SearchExplanation, TermScore, term_score};
use crate::search::cache::CachedPostings;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::TokenizerManager;
use tantivy::{DocSet, Index, InvertedIndexReader, TantivyDocument, Term};
use tantivy::{
    directory::RamDirectory,
    index::{Segment, SegmentReader},
};
use webshop_products::{ProductId, ProductIdx};

/// The greatest number of hits of a search.
pub const MAX_HITS: usize = 50;

/// The greatest number of distinct terms of a query, as in Lucene.
pub const MAX_QUERY_TERMS: usize = 1024;

/// The field with the indexed text.
const CONTENTS: &str = "contents";

/// tantivy's floor; it only sizes the term table, since all documents form one segment.
const INDEXING_MEMORY_BYTES: usize = 15_000_000;

/// One result of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The product found.
    pub product: ProductIdx,
    /// Its BM25 score, positive; comparable only within one search.
    pub score: f32,
}

/// The query holds more than [`MAX_QUERY_TERMS`] distinct terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the query holds more than {MAX_QUERY_TERMS} distinct terms")]
pub struct TooManyTerms;

/// An immutable full-text index over products.
pub(crate) struct SearchIndex {
    field: Field,
    postings: Arc<InvertedIndexReader>,
    pub(super) lengths: FieldNormReader,
    collection: Collection,
    /// `Collection::inverse_norm` of each of the 256 lengths a document can have.
    pub(super) inverse_norms: Vec<f32>,
    /// The rank of each product in the byte order of ids, which breaks ties.
    id_ranks: Vec<u32>,
    ids: Vec<ProductId>,
    /// Score buffers for reuse, as many as were ever in use at one time.
    buffers: Mutex<Vec<Scores>>,
}

/// The score of each document in one search; [`UNTOUCHED`] between searches.
pub(super) type Scores = Box<[f64]>;

/// Marks a document that no term has touched; negative, since a score can round to zero.
pub(super) const UNTOUCHED: f64 = -1.0;

/// Up to this number of documents a score buffer is allocated for each search, which is faster than fetching
/// one from another thread's cache; above it allocation takes longer than the search.
const SMALL_BUFFER: usize = 30_000;

/// Above this number of postings, pruning pays; below it, scoring all documents is faster.
const MANY_POSTINGS: u64 = 50_000;

/// A term of a query, positioned at the first document that holds it.
#[derive(Clone)]
pub(super) struct OpenTerm {
    pub(super) postings: SegmentPostings,
    /// Upper bound of its score: its idf times its count in the query.
    pub(super) weight: f32,
}

impl SearchIndex {
    /// Indexes one document for each id; the position is the product's index. With a `cache` folder, postings
    /// are loaded from there if present and stored there otherwise.
    ///
    /// # Errors
    /// The errors of tantivy while it writes to memory.
    pub(crate) fn new(
        ids: Vec<ProductId>,
        documents: impl Iterator<Item = String> + Clone,
        cache: Option<&Path>,
    ) -> tantivy::Result<Self> {
        let cache = cache.map(|folder| CachedPostings::of(folder, documents.clone()));
        let kept = cache.as_ref().and_then(CachedPostings::load);
        let kept = kept.and_then(|directory| Index::open(directory).ok()?.searchable_segments().ok());
        let segments = match kept.filter(|segments| holds(segments, ids.len())) {
            Some(segments) => segments,
            None => {
                let directory = RamDirectory::create();
                let index = write_postings(documents, directory.clone())?;
                let segments = index.searchable_segments()?;
                if let (Some(cache), [segment]) = (cache, segments.as_slice()) {
                    let files = index.directory().list_managed_files().into_iter().collect();
                    // Without a cache the next run is slower, and that is all.
                    if let Err(error) = cache.save(&directory, segment.id(), files) {
                        tracing::warn!(
                            "the search index is not kept in `{}`: {error}",
                            cache.folder().display()
                        );
                    }
                }
                segments
            }
        };
        Self::over(&segments[0], ids)
    }

    fn over(segment: &Segment, ids: Vec<ProductId>) -> tantivy::Result<Self> {
        let reader = SegmentReader::open(segment)?;
        let field = reader.schema().get_field(CONTENTS)?;
        let postings = reader.inverted_index(field)?;
        let lengths = reader.get_fieldnorms_reader(field)?;
        let n_documents = (0..reader.max_doc()).filter(|&doc| lengths.fieldnorm(doc) > 0).count();
        let collection = Collection::new(n_documents as u32, postings.total_num_tokens());
        let inverse_norms = (0..=u8::MAX)
            .map(|byte| collection.inverse_norm(FieldNormReader::id_to_fieldnorm(byte)))
            .collect();
        Ok(SearchIndex {
            field,
            postings,
            lengths,
            collection,
            inverse_norms,
            id_ranks: ranks(&ids),
            ids,
            buffers: Mutex::default(),
        })
    }

    /// The best products for a text: score descending, then id ascending; none if no term of the
    /// text is known.
    ///
    /// # Errors
    /// [`TooManyTerms`], where the original's engine throws.
    pub(crate) fn search(&self, query: &str) -> Result<Vec<Hit>, TooManyTerms> {
        let terms = self.open_all(query)?;
        let n_postings: u64 = terms.iter().map(|term| u64::from(term.postings.doc_freq())).sum();
        Ok(if n_postings > MANY_POSTINGS {
            self.search_pruned(&terms)
        } else {
            self.search_exhaustive(terms)
        })
    }

    /// Scores whatever document holds any of the terms.
    pub(super) fn search_exhaustive(&self, terms: Vec<OpenTerm>) -> Vec<Hit> {
        let mut sums = self.take_buffer();
        let mut met: Vec<u32> = Vec::new();
        for term in terms {
            self.add_to_all(term, &mut sums, &mut met);
        }
        self.rank(sums, &met)
    }

    /// Scores only documents that may be among the best; the hits are those of the exhaustive search.
    pub(super) fn search_pruned(&self, terms: &[OpenTerm]) -> Vec<Hit> {
        let candidates = self.candidates(terms);
        let mut sums = self.take_buffer();
        for term in terms {
            self.add_to_some(term.clone(), &mut sums, &candidates);
        }
        self.rank(sums, &candidates)
    }

    /// The terms of a query that any document holds, in their order.
    pub(super) fn open_all(&self, query: &str) -> Result<Vec<OpenTerm>, TooManyTerms> {
        let open = |(term, query_frequency): (String, u32)| {
            let postings = self.open(&term)?;
            let weight = query_frequency as f32 * self.collection.idf(postings.doc_freq());
            Some(OpenTerm { postings, weight })
        };
        Ok(query_terms(query)?.into_iter().filter_map(open).collect())
    }

    /// How `product` came by its score for `query`, term by term.
    ///
    /// # Errors
    /// [`TooManyTerms`], as [`SearchIndex::search`].
    pub(crate) fn explain(
        &self,
        query: &str,
        product: ProductIdx,
    ) -> Result<SearchExplanation, TooManyTerms> {
        let hits = self.search(query)?;
        let length_byte = self.lengths.fieldnorm_id(product.0);
        let terms: Vec<TermScore> = query_terms(query)?
            .into_iter()
            .map(|(term, query_frequency)| {
                let found = self.open(&term);
                let document_frequency = found.as_ref().map_or(0, SegmentPostings::doc_freq);
                let term_frequency = found.map_or(0, |postings| frequency_in(postings, product));
                let idf = self.collection.idf(document_frequency);
                let weight = query_frequency as f32 * idf;
                let inverse_norm = self.inverse_norms[length_byte as usize];
                TermScore {
                    score: term_score(weight, term_frequency, inverse_norm),
                    term,
                    query_frequency,
                    document_frequency,
                    idf,
                    term_frequency,
                }
            })
            .collect();
        Ok(SearchExplanation {
            id: self.ids[product.0 as usize].clone(),
            rank: hits.iter().position(|hit| hit.product == product).map(|at| at + 1),
            score: terms.iter().map(|part| f64::from(part.score)).sum::<f64>() as f32,
            len: FieldNormReader::id_to_fieldnorm(length_byte),
            collection: self.collection,
            terms,
        })
    }

    fn open(&self, term: &str) -> Option<SegmentPostings> {
        let term = Term::from_field_text(self.field, term);
        self.postings
            .read_postings(&term, IndexRecordOption::WithFreqs)
            .expect("the index lies in memory and was written by this process")
    }

    /// A buffer with a score for each document.
    pub(super) fn take_buffer(&self) -> Scores {
        let is_kept = self.ids.len() > SMALL_BUFFER;
        let kept = is_kept.then(|| self.buffers.lock().expect("nobody panics while holding the lock").pop());
        kept.flatten().unwrap_or_else(|| vec![UNTOUCHED; self.ids.len()].into())
    }

    /// Keeps a buffer for the next search; every score in it must be [`UNTOUCHED`].
    pub(super) fn give_back(&self, scores: Scores) {
        if self.ids.len() > SMALL_BUFFER {
            self.buffers.lock().expect("nobody panics while holding the lock").push(scores);
        }
    }

    /// The best of `docs` by their `sums`; gives the buffer back.
    fn rank(&self, mut sums: Scores, docs: &[u32]) -> Vec<Hit> {
        let mut ranked: Vec<(f32, u32, u32)> =
            docs.iter().map(|&doc| (sums[doc as usize] as f32, self.id_ranks[doc as usize], doc)).collect();
        for &doc in docs {
            sums[doc as usize] = UNTOUCHED;
        }
        self.give_back(sums);
        let order = |a: &(f32, u32, u32), b: &(f32, u32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if ranked.len() > MAX_HITS {
            ranked.select_nth_unstable_by(MAX_HITS, order);
            ranked.truncate(MAX_HITS);
        }
        ranked.sort_unstable_by(order);
        ranked.into_iter().map(|(score, _, doc)| Hit { product: ProductIdx(doc), score }).collect()
    }
}

/// Writes the postings of all documents, in their order, as one segment.
fn write_postings(
    documents: impl Iterator<Item = String>,
    directory: RamDirectory,
) -> tantivy::Result<Index> {
    let mut schema = Schema::builder();
    let indexing =
        TextFieldIndexing::default().set_tokenizer("lucene").set_index_option(IndexRecordOption::WithFreqs);
    let options = TextOptions::default().set_indexing_options(indexing);
    let field = schema.add_text_field(CONTENTS, options);
    let tokenizers = TokenizerManager::new();
    tokenizers.register("lucene", LuceneTokenizer);

    // The usual writer hands documents to threads and may cut them into several segments;
    // this one cannot, so a document's number is its product's place in the catalog.
    let mut writer = Index::builder()
        .schema(schema.build())
        .tokenizers(tokenizers)
        .single_segment_index_writer(directory, INDEXING_MEMORY_BYTES)?;
    for contents in documents {
        let mut document = TantivyDocument::default();
        document.add_text(field, contents);
        writer.add_document(document)?;
    }
    writer.finalize()
}

/// Whether these are the postings of as many documents, in one piece.
fn holds(segments: &[Segment], n_documents: usize) -> bool {
    matches!(segments, [segment] if segment.meta().max_doc() as usize == n_documents)
}

impl std::fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchIndex").field("collection", &self.collection).finish_non_exhaustive()
    }
}

/// The distinct terms of a query in order of appearance, each with its count.
fn query_terms(query: &str) -> Result<Vec<(String, u32)>, TooManyTerms> {
    let mut counted: indexmap::IndexMap<String, u32> = indexmap::IndexMap::new();
    for term in analyze(query) {
        *counted.entry(term).or_insert(0) += 1;
    }
    if counted.len() > MAX_QUERY_TERMS {
        return Err(TooManyTerms);
    }
    Ok(counted.into_iter().collect())
}

fn frequency_in(mut postings: SegmentPostings, product: ProductIdx) -> u32 {
    let reached = if postings.doc() < product.0 { postings.seek(product.0) } else { postings.doc() };
    if reached == product.0 { postings.term_freq() } else { 0 }
}

fn ranks(ids: &[ProductId]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by_key(|&at| ids[at].as_str());
    let mut ranks = vec![0; ids.len()];
    for (rank, at) in order.into_iter().enumerate() {
        ranks[at] = rank as u32;
    }
    ranks
}
