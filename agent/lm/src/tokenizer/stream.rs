//! Decoding of ids one by one, while they are sampled.

use std::ops::Deref;

use crate::tokenizer::BpeTokenizer;

/// Decodes tokens that arrive one by one.
///
/// Text is returned as soon as no later token can change it: only complete characters, and white space
/// together with the text after it. All returned texts, with the last one of [`TextStream::finish`],
/// concatenate to the decoded text of all ids. `T` is a reference to the tokenizer, or shares it.
#[derive(Clone, Debug)]
pub struct TextStream<T> {
    tokenizer: T,
    ids: Vec<u32>,
    /// Bytes of the decoded text returned so far.
    n_returned: usize,
}

impl<T: Deref<Target = BpeTokenizer>> TextStream<T> {
    /// A stream without tokens.
    pub fn new(tokenizer: T) -> Self {
        Self { tokenizer, ids: Vec::new(), n_returned: 0 }
    }

    /// Appends a token and returns the text that is now final, often that of the previous word.
    pub fn push(&mut self, id: u32) -> String {
        self.ids.push(id);
        let text = self.tokenizer.decode(&self.ids);
        // An incomplete character decodes to at most three replacement characters.
        let finished = text.trim_end_matches(char::REPLACEMENT_CHARACTER).trim_end();
        self.advance(finished)
    }

    /// Returns the rest of the text, once no token follows.
    pub fn finish(&mut self) -> String {
        let text = self.tokenizer.decode(&self.ids);
        self.advance(&text)
    }

    fn advance(&mut self, finished: &str) -> String {
        let piece = finished.get(self.n_returned..).unwrap_or_default().to_string();
        self.n_returned += piece.len();
        piece
    }
}
