//! Text into index terms, as the original's Lucene analyzer makes them.
//!
//! [`analyze`] is the whole chain — words by Unicode's rules, possessive `'s` off, lower case,
//! stop words out, [`crate::stem`] — and serves documents and queries alike. [`LuceneTokenizer`] hands
//! the same terms to tantivy.
//!
//! It knows no query syntax: quotes, `+`, `AND` and brackets are text, since agents type
//! anything. It keeps no offsets, because nothing here highlights.

use crate::search::porter::stem_owned;
use crate::search::standard_tokenizer::words;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// Lucene's English stop words.
const STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no",
    "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to",
    "was", "will", "with",
];

/// The bytes of the longest of them.
const LONGEST_STOP_WORD: usize = 5;

/// The terms of a text, in order, with repeats.
///
/// ```
/// use webshop_env::analyze;
/// assert_eq!(analyze("The Women's running-shoes!"), ["women", "run", "shoe"]);
/// assert!(analyze("to be, or not to be").is_empty());
/// ```
pub fn analyze(text: &str) -> Vec<String> {
    words(text)
        .into_iter()
        .map(|word| lower_case(without_possessive(word)))
        .filter(|word| word.len() > LONGEST_STOP_WORD || STOP_WORDS.binary_search(&word.as_str()).is_err())
        .map(stem_owned)
        .collect()
}

fn without_possessive(word: &str) -> &str {
    word.strip_suffix(['s', 'S'])
        .and_then(|stem| stem.strip_suffix(['\'', '\u{2019}', '\u{ff07}']))
        .unwrap_or(word)
}

/// Lower case character by character, so that no Σ at an end becomes ς and no İ two characters.
fn lower_case(word: &str) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    word.chars().map(|c| c.to_lowercase().next().unwrap_or(c)).collect()
}

/// [`analyze`] as a tantivy tokenizer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LuceneTokenizer;

/// The terms of one text on their way into the index.
#[derive(Debug)]
pub(crate) struct LuceneTokenStream {
    terms: std::vec::IntoIter<String>,
    token: Token,
}

impl Tokenizer for LuceneTokenizer {
    type TokenStream<'a> = LuceneTokenStream;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> LuceneTokenStream {
        LuceneTokenStream { terms: analyze(text).into_iter(), token: Token::default() }
    }
}

impl TokenStream for LuceneTokenStream {
    fn advance(&mut self) -> bool {
        let Some(term) = self.terms.next() else {
            return false;
        };
        self.token.position = self.token.position.wrapping_add(1);
        self.token.text = term;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(analyze(text), expected, "terms of {text:?}");
    }

    #[test]
    fn stop_words_are_sorted_for_the_search() {
        assert!(STOP_WORDS.is_sorted());
        assert_eq!(STOP_WORDS.map(str::len).into_iter().max(), Some(LONGEST_STOP_WORD));
    }

    #[test]
    fn words_follow_unicode() {
        check("usb-c 2.5mm 800.00 dollars", &["usb", "c", "2.5mm", "800.00", "dollar"]);
        check("men's l’oréal’s", &["men", "l’oréal"]);
        check("(a+b) \"twin\" AND queen", &["b", "twin", "queen"]);
    }

    #[test]
    fn capitals_are_lowered_one_by_one() {
        check("ΣΑΣ İstanbul", &["σασ", "istanbul"]);
    }
}
