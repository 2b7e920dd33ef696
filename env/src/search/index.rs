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
use crate::search::bm25::{Collection, SearchExplanation, TermScore, saturated, term_score};
use crate::search::decoded::DecodedPostings;
use crate::search::index_cache::CachedPostings;
use crate::search::open_term::{BLOCK, OpenTerm};
use std::collections::HashMap;
use std::sync::Arc;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{BlockSegmentPostings, Postings, SegmentPostings, TermInfo};
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
    /// The length of each document, as the byte that stands for it.
    lengths: Vec<u8>,
    collection: Collection,
    /// `Collection::inverse_norm` of each of the 256 lengths a document can have.
    inverse_norms: [f32; 256],
    prepared: Prepared,
    /// The rank of each product in the byte order of ids, which breaks ties.
    id_ranks: Vec<u32>,
    /// The product of each rank.
    by_id: Vec<u32>,
    ids: Vec<ProductId>,
}

/// What is computed of the postings once, for all searches.
enum Prepared {
    /// Everything, in a small catalog.
    All(DecodedPostings),
    /// The greatest `tf · inv` of each term that fills a block of postings, in a large catalog. Other terms are
    /// bounded by their weight.
    Bounds(HashMap<Box<[u8]>, f32>),
}

/// Up to this number of words in all documents, postings are decoded once; they take some megabytes then.
const MOST_DECODED: u64 = 2_000_000;

impl SearchIndex {
    /// Indexes one document for each id; the position is the product's index. Postings are loaded from `cache` if
    /// present and stored there otherwise.
    ///
    /// # Errors
    /// The errors of tantivy while it writes to memory.
    pub(crate) fn new(
        ids: Vec<ProductId>,
        documents: impl Iterator<Item = String>,
        cache: Option<CachedPostings>,
    ) -> tantivy::Result<Self> {
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
                            "the search index is not cached in `{}`: {error}",
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
        let norms = reader.get_fieldnorms_reader(field)?;
        let lengths: Vec<u8> = (0..reader.max_doc()).map(|doc| norms.fieldnorm_id(doc)).collect();
        let is_filled = |byte: &&u8| FieldNormReader::id_to_fieldnorm(**byte) > 0;
        let n_documents = lengths.iter().filter(is_filled).count();
        let collection = Collection::new(n_documents as u32, postings.total_num_tokens());
        let inverse_norms =
            std::array::from_fn(|byte| collection.inverse_norm(FieldNormReader::id_to_fieldnorm(byte as u8)));
        let by_id = by_id(&ids);
        let mut id_ranks = vec![0; ids.len()];
        for (rank, &at) in (0..).zip(&by_id) {
            id_ranks[at as usize] = rank;
        }
        let prepared = Prepared::Bounds(HashMap::new());
        let mut index = SearchIndex {
            field,
            postings,
            lengths,
            collection,
            inverse_norms,
            prepared,
            id_ranks,
            by_id,
            ids,
        };
        index.prepared = match index.postings.total_num_tokens() <= MOST_DECODED {
            true => Prepared::All(index.decoded()?),
            false => Prepared::Bounds(index.bounds()?),
        };
        Ok(index)
    }

    /// All postings.
    fn decoded(&self) -> tantivy::Result<DecodedPostings> {
        let mut decoded = DecodedPostings::default();
        let mut terms = self.postings.terms().stream()?;
        while let Some((term, info)) = terms.next() {
            let term = std::str::from_utf8(term).expect("terms are made of text");
            decoded.add(term, &self.collection, self.saturations(info)?.into_iter());
        }
        Ok(decoded)
    }

    /// The greatest saturation of each term that fills a block.
    fn bounds(&self) -> tantivy::Result<HashMap<Box<[u8]>, f32>> {
        let mut bounds = HashMap::new();
        let mut terms = self.postings.terms().stream()?;
        while let Some((term, info)) = terms.next() {
            if info.doc_freq as usize >= BLOCK {
                let greatest = self.saturations(info)?.into_iter().map(|(_, saturation)| saturation);
                bounds.insert(term.into(), greatest.fold(0.0, f32::max));
            }
        }
        Ok(bounds)
    }

    /// Searches as in a large catalog from now on.
    #[cfg(test)]
    pub(super) fn prune(&mut self) {
        self.prepared = Prepared::Bounds(self.bounds().unwrap());
    }

    /// The documents of a term, each with `tf · inv`.
    fn saturations(&self, info: &TermInfo) -> tantivy::Result<Vec<(u32, f32)>> {
        let mut blocks =
            self.postings.read_block_postings_from_terminfo(info, IndexRecordOption::WithFreqs)?;
        let mut saturations = Vec::with_capacity(info.doc_freq as usize);
        while !blocks.docs().is_empty() {
            let postings = blocks.docs().iter().zip(blocks.freqs());
            saturations.extend(postings.map(|(&doc, &tf)| (doc, tf as f32 * self.inverse_norm(doc))));
            blocks.advance();
        }
        Ok(saturations)
    }

    /// The number of documents, empty ones included; at least one if any holds a term.
    pub(super) fn n_documents(&self) -> usize {
        self.ids.len()
    }

    /// A term's idf times its count in the query.
    pub(super) fn weight(&self, query_frequency: u32, doc_freq: u32) -> f32 {
        query_frequency as f32 * self.collection.idf(doc_freq)
    }

    /// The factor by which an occurrence counts in `doc`.
    pub(super) fn inverse_norm(&self, doc: u32) -> f32 {
        self.inverse_norms[self.lengths[doc as usize] as usize]
    }

    /// The best products for a text: score descending, then id ascending; none if no term of the
    /// text is known.
    ///
    /// # Errors
    /// [`TooManyTerms`], where the original's engine throws.
    pub(crate) fn search(&self, query: &str) -> Result<Vec<Hit>, TooManyTerms> {
        let terms = query_terms(query)?;
        Ok(match &self.prepared {
            Prepared::All(decoded) => {
                let sums = (0..).zip(decoded.sums(&terms, self.ids.len()));
                self.rank(sums.filter(|(_, sum)| sum.is_sign_positive()))
            }
            Prepared::Bounds(_) => self.search_pruned(self.open_all(&terms)),
        })
    }

    /// The terms of a query that any document holds, in their order.
    pub(super) fn open_all(&self, terms: &[(String, u32)]) -> Vec<OpenTerm> {
        let open = |(term, query_frequency): &(String, u32)| {
            let info = self.postings.terms().get(term).expect(IN_MEMORY)?;
            let blocks = self.blocks(&info);
            let weight = self.weight(*query_frequency, blocks.doc_freq());
            let greatest = match &self.prepared {
                Prepared::Bounds(bounds) => bounds.get(term.as_bytes()),
                Prepared::All(_) => None,
            };
            let bound = greatest.map_or(weight, |&saturation| saturated(weight, saturation));
            Some(OpenTerm { blocks, at: 0, weight, bound })
        };
        terms.iter().filter_map(open).collect()
    }

    fn blocks(&self, info: &TermInfo) -> BlockSegmentPostings {
        let blocks = self.postings.read_block_postings_from_terminfo(info, IndexRecordOption::WithFreqs);
        blocks.expect(IN_MEMORY)
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
        let length_byte = self.lengths[product.0 as usize];
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

    /// The postings of a term, if any document holds it.
    pub(super) fn open(&self, term: &str) -> Option<SegmentPostings> {
        let term = Term::from_field_text(self.field, term);
        self.postings.read_postings(&term, IndexRecordOption::WithFreqs).expect(IN_MEMORY)
    }

    /// The best of some products by their sums.
    pub(super) fn rank(&self, sums: impl Iterator<Item = (u32, f64)>) -> Vec<Hit> {
        // The bits of positive numbers have the order of the numbers: ascending keys are descending scores, then
        // ascending ids.
        let key = |(doc, sum): (u32, f64)| {
            u64::from(!(sum as f32).to_bits()) << u32::BITS | u64::from(self.id_ranks[doc as usize])
        };
        let mut keys: Vec<u64> = Vec::with_capacity(sums.size_hint().1.unwrap_or_default());
        keys.extend(sums.map(key));
        if keys.len() > MAX_HITS {
            keys.select_nth_unstable(MAX_HITS);
            keys.truncate(MAX_HITS);
        }
        keys.sort_unstable();
        let hit = |key: u64| {
            let product = ProductIdx(self.by_id[key as u32 as usize]);
            Hit { product, score: f32::from_bits(!((key >> u32::BITS) as u32)) }
        };
        keys.into_iter().map(hit).collect()
    }
}

/// Why reading postings cannot fail.
const IN_MEMORY: &str = "the index lies in memory, written by this program or checked when it was read";

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
pub(super) fn query_terms(query: &str) -> Result<Vec<(String, u32)>, TooManyTerms> {
    let terms = analyze(query);
    let mut counted: indexmap::IndexMap<String, u32> = indexmap::IndexMap::with_capacity(terms.len());
    for term in terms {
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

/// The products in the byte order of their ids.
fn by_id(ids: &[ProductId]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..ids.len() as u32).collect();
    order.sort_by_key(|&at| ids[at as usize].as_str());
    order
}
