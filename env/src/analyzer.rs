//! Text into index terms, as the original's Lucene analyzer makes them.
//!
//! [`analyze`] is the whole chain — words by Unicode's rules, possessive `'s` off, lower case,
//! stop words out, [`stem`] — and serves documents and queries alike. [`LuceneTokenizer`] hands
//! the same terms to tantivy.
//!
//! It knows no query syntax: quotes, `+`, `AND` and brackets are plain text, since agents type
//! anything. It keeps no offsets, because nothing here highlights.

use crate::porter::stem;
use regex::Regex;
use std::sync::LazyLock;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use unicode_segmentation::UnicodeSegmentation;

/// Lucene's `StandardTokenizer` cuts longer words into pieces of this many characters.
const MAX_TERM_CHARS: usize = 255;

/// Lucene's English stop words.
const STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no",
    "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to",
    "was", "will", "with",
];

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
        .map(|word| without_possessive(word).to_lowercase())
        .filter(|word| STOP_WORDS.binary_search(&word.as_str()).is_err())
        .map(|word| stem(&word))
        .collect()
}

/// UAX #29 words that hold a letter, a digit or a pictograph, cut at [`MAX_TERM_CHARS`].
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut run_end = None;
    for (start, segment) in text.split_word_bound_indices() {
        // Scripts written without spaces: the segmenter gives single letters, Lucene the run.
        if segment.chars().any(is_unspaced_script) {
            match (words.last_mut(), run_end) {
                (Some(run), Some((run_start, end))) if end == start => {
                    *run = &text[run_start..start + segment.len()];
                    run_end = Some((run_start, start + segment.len()));
                }
                _ => {
                    words.push(segment);
                    run_end = Some((start, start + segment.len()));
                }
            }
        } else if is_word(segment) {
            push_in_pieces(segment, &mut words);
        }
    }
    words
}

fn is_word(segment: &str) -> bool {
    static WORD: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"[[\p{Alphabetic}\p{Nd}\p{Nl}]--\p{Grapheme_Extend}]|\p{Extended_Pictographic}")
            .expect("the pattern is a constant and valid")
    });
    match segment.as_bytes() {
        [byte] => byte.is_ascii_alphanumeric(),
        bytes if bytes.is_ascii() => bytes.iter().any(u8::is_ascii_alphanumeric),
        _ => WORD.is_match(segment),
    }
}

/// Thai, Lao, Myanmar and Khmer letters and marks, without their digits.
fn is_unspaced_script(c: char) -> bool {
    matches!(c,
        '\u{0e01}'..='\u{0e3a}' | '\u{0e40}'..='\u{0e4e}'
        | '\u{0e81}'..='\u{0ece}' | '\u{0edc}'..='\u{0edf}'
        | '\u{1000}'..='\u{103f}' | '\u{1050}'..='\u{108f}'
        | '\u{1780}'..='\u{17d3}' | '\u{17dc}'..='\u{17dd}')
}

fn push_in_pieces<'a>(word: &'a str, words: &mut Vec<&'a str>) {
    let mut rest = word;
    while let Some((cut, _)) = rest.char_indices().nth(MAX_TERM_CHARS) {
        let (piece, tail) = rest.split_at(cut);
        words.push(piece);
        rest = tail;
    }
    words.push(rest);
}

fn without_possessive(word: &str) -> &str {
    word.strip_suffix(['s', 'S'])
        .and_then(|stem| stem.strip_suffix(['\'', '\u{2019}', '\u{ff07}']))
        .unwrap_or(word)
}

/// [`analyze`] as a tantivy tokenizer.
#[derive(Clone, Copy, Debug, Default)]
pub struct LuceneTokenizer;

/// The terms of one text on their way into the index.
#[derive(Debug)]
pub struct LuceneTokenStream {
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
    }

    #[test]
    fn words_follow_unicode() {
        check("usb-c 2.5mm 800.00 dollars", &["usb", "c", "2.5mm", "800.00", "dollar"]);
        check("men's l’oréal’s", &["men", "l’oréal"]);
        check("(a+b) \"twin\" AND queen", &["b", "twin", "queen"]);
    }

    #[test]
    fn pictographs_and_han_are_terms_one_by_one() {
        check("★ best ™ 靴下 🙂", &["★", "best", "™", "靴", "下", "🙂"]);
    }

    #[test]
    fn a_thai_run_is_one_term() {
        check("ผ้าไหม thai ๙", &["ผ้าไหม", "thai", "๙"]);
    }

    #[test]
    fn long_words_are_cut() {
        let terms = analyze(&"x".repeat(600));
        let lengths: Vec<usize> = terms.iter().map(String::len).collect();
        assert_eq!(lengths, [255, 255, 90]);
    }
}
