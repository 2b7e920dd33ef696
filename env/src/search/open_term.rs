//! A term of a query while its postings are gone through.

use tantivy::postings::BlockSegmentPostings;

/// Postings are decoded in blocks of this many.
pub(super) const BLOCK: usize = 128;

/// A term of a query, positioned at one of its postings.
#[derive(Clone)]
pub(super) struct OpenTerm {
    /// The block of the posting; after the last posting, its document is [`tantivy::TERMINATED`].
    pub(super) blocks: BlockSegmentPostings,
    /// The posting's place in the block.
    pub(super) at: usize,
    /// The term's idf times its count in the query.
    pub(super) weight: f32,
    /// The greatest score of the term in any document, or a greater number.
    pub(super) bound: f32,
}

impl OpenTerm {
    /// The document of the posting.
    pub(super) fn doc(&self) -> u32 {
        self.blocks.doc(self.at)
    }

    /// Goes to the first posting from `doc` on, unless it is there or behind already.
    pub(super) fn seek(&mut self, doc: u32) {
        if self.doc() < doc {
            self.at = self.blocks.seek(doc);
        }
    }

    /// How often the term occurs in `doc`, which is not before an earlier one; 0 if it does not.
    pub(super) fn frequency_in(&mut self, doc: u32) -> u32 {
        self.seek(doc);
        if self.doc() == doc { self.blocks.freq(self.at) } else { 0 }
    }
}
