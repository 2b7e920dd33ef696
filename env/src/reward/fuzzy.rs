//! Fuzzy equality of phrases: `token_set_ratio` of thefuzz 0.19 over [`matching_chars`].
//!
//! A [`Phrase`] is a text reduced to its sorted set of words, made once per attribute or option;
//! [`token_set_ratio`] scores two of them 0 to 100, and [`Phrase::matches`] asks only whether the
//! score exceeds [`MATCH_ABOVE`]; for most pairs their lengths alone decide it.
//!
//! Python's rules hold: characters U+0080 to U+00FF vanish, every other non-word character is a
//! space, halves round to even. Edit-distance variants of the same library are not offered.

use regex::Regex;
use std::sync::LazyLock;
use webshop_pycompat::is_space;
use webshop_pycompat::matching_chars;

/// Two phrases match when their ratio is above this.
pub const MATCH_ABOVE: u32 = 85;

/// A text as the fuzzy matcher sees it: its distinct words in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Phrase {
    words: Vec<String>,
}

impl Phrase {
    /// Reduces a text to its words.
    pub(crate) fn new(text: &str) -> Self {
        static NON_WORD: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"[^\p{L}\p{N}_]").expect("the pattern is a constant and valid"));
        let ascii: String = text.chars().filter(|c| !('\u{80}'..='\u{ff}').contains(c)).collect();
        let spaced = NON_WORD.replace_all(&ascii, " ").to_lowercase();
        let mut words: Vec<String> =
            spaced.split(is_space).filter(|word| !word.is_empty()).map(str::to_owned).collect();
        words.sort_unstable();
        words.dedup();
        Phrase { words }
    }

    /// Whether the ratio of `self` to `other` is above [`MATCH_ABOVE`].
    pub(crate) fn matches(&self, other: &Phrase) -> bool {
        Parts::new(self, other).is_some_and(|parts| parts.ratio_above(MATCH_ABOVE))
    }
}

/// The similarity of two texts, 0 to 100; 0 if either holds no word.
///
/// ```
/// use webshop_env::token_set_ratio;
/// assert_eq!(token_set_ratio("machine wash", "wash, machine!"), 100);
/// assert_eq!(token_set_ratio("easy clean", "easy to clean"), 100);
/// assert_eq!(token_set_ratio("dining room", "denim shorts"), 43);
/// ```
pub fn token_set_ratio(first: &str, second: &str) -> u32 {
    Parts::new(&Phrase::new(first), &Phrase::new(second))
        .map_or(0, |parts| parts.pairs().iter().map(|(a, b)| ratio(a, b)).max().unwrap_or(0))
}

/// The three texts that are compared: the shared words, and these with either side's own.
struct Parts {
    shared: Vec<char>,
    first: Vec<char>,
    second: Vec<char>,
}

impl Parts {
    /// `None` if either phrase is empty.
    fn new(first: &Phrase, second: &Phrase) -> Option<Self> {
        if first.words.is_empty() || second.words.is_empty() {
            return None;
        }
        let is_in = |phrase: &Phrase, word: &String| phrase.words.binary_search(word).is_ok();
        let (shared, own): (Vec<&String>, Vec<&String>) =
            first.words.iter().partition(|word| is_in(second, word));
        let others = second.words.iter().filter(|word| !is_in(first, word));
        let joined = |own: &[&String]| {
            let mut text: Vec<char> = Vec::new();
            for word in shared.iter().chain(own) {
                if !text.is_empty() {
                    text.push(' ');
                }
                text.extend(word.chars());
            }
            text
        };
        Some(Parts { first: joined(&own), second: joined(&others.collect::<Vec<_>>()), shared: joined(&[]) })
    }

    fn pairs(&self) -> [(&[char], &[char]); 3] {
        [(&self.shared, &self.first), (&self.shared, &self.second), (&self.first, &self.second)]
    }

    fn ratio_above(&self, limit: u32) -> bool {
        self.pairs().iter().any(|(a, b)| {
            // Two upper bounds, each far quicker than what comes after it.
            let may_be = |n_matched| rounded(n_matched, a, b) > limit;
            may_be(a.len().min(b.len())) && may_be(most_shared(a, b)) && ratio(a, b) > limit
        })
    }
}

/// At least as many characters as two texts share in whatever order: characters that differ only in their high
/// bits count as one.
fn most_shared(a: &[char], b: &[char]) -> usize {
    const N_KINDS: usize = 128;
    let mut left = [0_usize; N_KINDS];
    for &c in a {
        left[c as usize % N_KINDS] += 1;
    }
    let mut n_shared = 0;
    for &c in b {
        let left = &mut left[c as usize % N_KINDS];
        n_shared += usize::from(*left > 0);
        *left = left.saturating_sub(1);
    }
    n_shared
}

/// 100 · 2 · matched / total, as a whole number; equal texts 100, one empty 0.
fn ratio(a: &[char], b: &[char]) -> u32 {
    if a == b {
        100
    } else if a.is_empty() || b.is_empty() {
        0
    } else {
        rounded(matching_chars(a, b), a, b)
    }
}

fn rounded(matched: usize, a: &[char], b: &[char]) -> u32 {
    let share = 2.0 * matched as f64 / (a.len() + b.len()) as f64;
    (100.0 * share).round_ties_even() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_a_set() {
        assert_eq!(Phrase::new("B, a; b-A"), Phrase::new("a b"));
        assert_eq!(token_set_ratio("red red", "red"), 100);
    }

    #[test]
    fn empty_phrases_match_nothing() {
        assert_eq!(token_set_ratio("", ""), 0);
        assert_eq!(token_set_ratio("®é", "®é"), 0);
        assert!(!Phrase::new("!").matches(&Phrase::new("!")));
    }

    #[test]
    fn a_shared_word_alone_is_compared_too() {
        // Shared "wash": 2·4/16 = .50 against "wash machine", 2·4/13 = .62 against "wash hand";
        // these two share "wash " and then "h" or "a" and "n": 2·7/21 = .67.
        assert_eq!(token_set_ratio("machine wash", "hand wash"), 67);
    }

    #[test]
    fn the_quick_answer_is_the_full_one() {
        let phrases = ["red", "dark red", "reddish", "easy clean", "easy cleaning", "x", ""];
        for a in phrases {
            for b in phrases {
                let quick = Phrase::new(a).matches(&Phrase::new(b));
                assert_eq!(quick, token_set_ratio(a, b) > MATCH_ABOVE, "{a:?} {b:?}");
            }
        }
    }
}
