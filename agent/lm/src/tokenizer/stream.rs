//! Decoding a stream of ids while they are sampled.

use crate::tokenizer::BpeTokenizer;

/// Text of tokens that arrive one by one.
///
/// A piece is returned once no later token can change it: whole characters only, and white space not
/// before what follows it. The pieces and the last one of [`TextStream::finish`] join to the decoded whole.
#[derive(Clone, Debug)]
pub struct TextStream<'t> {
    tokenizer: &'t BpeTokenizer,
    ids: Vec<u32>,
    /// Bytes of the decoded text returned so far.
    n_returned: usize,
}

impl<'t> TextStream<'t> {
    /// A stream at its beginning.
    pub fn new(tokenizer: &'t BpeTokenizer) -> Self {
        Self { tokenizer, ids: Vec::new(), n_returned: 0 }
    }

    /// Takes the next token and returns the text that has become certain, often one word behind.
    pub fn push(&mut self, id: u32) -> String {
        self.ids.push(id);
        let text = self.tokenizer.decode(&self.ids);
        // A cut character decodes to at most three replacement marks until its last byte is there.
        let certain = text.trim_end_matches(char::REPLACEMENT_CHARACTER).trim_end();
        self.advance(certain)
    }

    /// The text that was held back.
    pub fn finish(mut self) -> String {
        let text = self.tokenizer.decode(&self.ids);
        self.advance(&text)
    }

    fn advance(&mut self, certain: &str) -> String {
        let piece = certain.get(self.n_returned..).unwrap_or_default().to_string();
        self.n_returned += piece.len();
        piece
    }
}
