//! Ids to text while they are still being sampled.

use crate::tokenizer::BpeTokenizer;

/// Text of tokens that arrive one by one.
///
/// A piece is handed out once no later token can change it: whole characters only, and white space not
/// before what follows it. The pieces and the last one of [`TextStream::finish`] join to the decoded whole.
#[derive(Clone, Debug)]
pub struct TextStream<'t> {
    tokenizer: &'t BpeTokenizer,
    ids: Vec<u32>,
    /// Bytes of the decoded text handed out so far.
    n_told: usize,
}

impl<'t> TextStream<'t> {
    /// A stream at its beginning.
    pub fn new(tokenizer: &'t BpeTokenizer) -> Self {
        Self { tokenizer, ids: Vec::new(), n_told: 0 }
    }

    /// Takes the next token and returns the text that has become certain, often one word behind.
    pub fn push(&mut self, id: u32) -> String {
        self.ids.push(id);
        let text = self.tokenizer.decode(&self.ids);
        // A cut character decodes to at most three replacement marks until its last byte is there.
        let certain = text.trim_end_matches(char::REPLACEMENT_CHARACTER).trim_end();
        self.tell(certain)
    }

    /// Whatever has been held back.
    pub fn finish(mut self) -> String {
        let text = self.tokenizer.decode(&self.ids);
        self.tell(&text)
    }

    fn tell(&mut self, certain: &str) -> String {
        let piece = certain.get(self.n_told..).unwrap_or_default().to_string();
        self.n_told += piece.len();
        piece
    }
}
