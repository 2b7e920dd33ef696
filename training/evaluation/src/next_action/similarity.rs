//! Similarity of two texts as a fraction of integers.
//!
//! ```text
//! RL(a, b) = 2·LCS / (m + n)                                   — Similarity::rouge_l
//! RL > t with t in thousandths: 1000 · 2·LCS > (1000 t) · (m + n)      — Similarity::passes
//! ```
//!
//! LCS is the length of the longest common subsequence of the texts' words, m and n are the numbers of words.
//! A word is a run of `[a-z0-9]` in the lowercase text (ROUGE-L F1 without stemmer: Lin 2004, "ROUGE: A
//! Package for Automatic Evaluation of Summaries"). In floating point, 2PR / (P + R) is not exactly 3/4 where
//! F1 is 3/4; the fraction is.

use std::fmt;

use serde::{Deserialize, Serialize};
use webshop_pycompat::matching_chars;

/// Comparison of a similarity with a threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SimCmp {
    /// Greater than the threshold.
    #[default]
    Gt,
    /// Greater than or equal to the threshold.
    Ge,
}

/// The fraction `matched / of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Similarity {
    /// Numerator: the matching amount, at most `of`.
    pub matched: u64,
    /// Denominator; never 0.
    pub of: u64,
}

impl Similarity {
    const NONE: Self = Self { matched: 0, of: 1 };
    const FULL: Self = Self { matched: 1, of: 1 };

    /// ROUGE-L F1 of the words; 0 if a text has none.
    pub(crate) fn rouge_l(a: &str, b: &str) -> Self {
        let (a, b) = (a.to_lowercase(), b.to_lowercase());
        let (a, b): (Vec<&str>, Vec<&str>) = (words(&a).collect(), words(&b).collect());
        if a.is_empty() || b.is_empty() {
            return Self::NONE;
        }
        Self { matched: 2 * longest_common_subsequence(&a, &b), of: (a.len() + b.len()) as u64 }
    }

    /// Like [`Similarity::rouge_l`], but 1 for equal texts without words (`红色`), as in [`Similarity::exact`].
    pub(crate) fn rouge_l_or_exact(a: &str, b: &str) -> Self {
        let is_wordless = words(&a.to_lowercase()).next().is_none();
        if is_wordless { Self::exact(a, b) } else { Self::rouge_l(a, b) }
    }

    /// 1 if the trimmed texts are equal and not empty, else 0.
    pub fn exact(a: &str, b: &str) -> Self {
        let a = a.trim();
        if !a.is_empty() && a == b.trim() { Self::FULL } else { Self::NONE }
    }

    /// The re-implementation's measure: the number of characters of `a` in blocks that match `b` (Python's
    /// `difflib`), over the length of the longer text, both trimmed and in lowercase. Not symmetric.
    pub fn character_blocks(a: &str, b: &str) -> Self {
        let chars = |text: &str| text.trim().to_lowercase().chars().collect::<Vec<_>>();
        let (a, b) = (chars(a), chars(b));
        if a.is_empty() || b.is_empty() {
            return Self::NONE;
        }
        Self { matched: matching_chars(&a, &b) as u64, of: a.len().max(b.len()) as u64 }
    }

    /// The fraction as f64, 0 to 1.
    pub fn ratio(self) -> f64 {
        self.matched as f64 / self.of as f64
    }

    /// Whether the fraction passes a threshold in thousandths; compared in integers.
    pub fn passes(self, thousandths: u64, sim_cmp: SimCmp) -> bool {
        let (matched, limit) = (1000 * self.matched, thousandths * self.of);
        match sim_cmp {
            SimCmp::Gt => matched > limit,
            SimCmp::Ge => matched >= limit,
        }
    }
}

impl fmt::Display for Similarity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.matched, self.of)
    }
}

/// The runs of `[a-z0-9]`.
fn words(lower: &str) -> impl Iterator<Item = &str> {
    let is_other = |c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit();
    lower.split(is_other).filter(|word| !word.is_empty())
}

/// Length of the longest common subsequence, in time m·n and memory n.
fn longest_common_subsequence(a: &[&str], b: &[&str]) -> u64 {
    // lengths[j]: for the words of `a` so far and the first j words of `b`.
    let mut lengths = vec![0; b.len() + 1];
    for word in a {
        let mut diagonal = 0;
        for (j, other) in b.iter().enumerate() {
            let above = lengths[j + 1];
            lengths[j + 1] = if word == other { diagonal + 1 } else { above.max(lengths[j]) };
            diagonal = above;
        }
    }
    lengths[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_in_order() {
        let check = |a: &str, b: &str, expected: (u64, u64)| {
            let similarity = Similarity::rouge_l(a, b);
            assert_eq!((similarity.matched, similarity.of), expected, "{a:?} {b:?}");
            assert_eq!(Similarity::rouge_l(b, a), similarity, "it is symmetric");
        };
        check("24 inch (pack of 1)", "24 inch (pack of 2)", (8, 10));
        // "wireless bluetooth headphones" in order; "blue" is on the wrong side.
        check("blue wireless bluetooth headphones", "wireless bluetooth headphones blue", (6, 8));
        check("add_to_cart.add", "add_to_cart.buy_now", (6, 9));
        check("a b c b d a b", "b d c a b a", (8, 13));
        check("a a a", "a", (2, 4));
        // `İ` in lowercase is `i` and a combining dot, which is no word character.
        check("İx", "i x", (4, 4));
        check("café", "caf", (2, 2));
        check("", "a", (0, 1));
        check("红色", "红色", (0, 1));
    }

    #[test]
    fn equal_texts_without_words_have_similarity_one_in_rouge_l_or_exact() {
        let check = |a: &str, b: &str, expected: f64| {
            assert_eq!(Similarity::rouge_l_or_exact(a, b).ratio(), expected, "{a:?} {b:?}");
        };
        check("红色", " 红色 ", 1.0);
        check("红色", "蓝色", 0.0);
        check("", "", 0.0);
        check(" ", " ", 0.0);
        check("红色 xl", "蓝色 xl", 1.0);
        check("red", "red hat", 2.0 / 3.0);
        check("红", "red", 0.0);
    }

    #[test]
    fn three_quarters_are_compared_exactly() {
        // LCS 9 of 11 and 13 words: 18/24, which floats make .7500000000000001; LCS 3 of 5 and 3: 6/8, which
        // they make .7499999999999999.
        let over = Similarity { matched: 18, of: 24 };
        let under = Similarity { matched: 6, of: 8 };
        let float = |lcs: f64, m: f64, n: f64| 2.0 * (lcs / m) * (lcs / n) / (lcs / m + lcs / n);
        assert!(float(9.0, 11.0, 13.0) > 0.75 && float(3.0, 5.0, 3.0) < 0.75);
        for similarity in [over, under] {
            assert!(!similarity.passes(750, SimCmp::Gt) && similarity.passes(750, SimCmp::Ge));
        }
        assert!(Similarity { matched: 19, of: 25 }.passes(750, SimCmp::Gt));
        assert!(!Similarity { matched: 17, of: 23 }.passes(750, SimCmp::Ge));
        assert!(Similarity { matched: 8, of: 10 }.passes(800, SimCmp::Ge));
    }

    #[test]
    fn character_blocks_are_divided_by_the_longer_length() {
        let check = |a: &str, b: &str, expected: (u64, u64)| {
            let similarity = Similarity::character_blocks(a, b);
            assert_eq!((similarity.matched, similarity.of), expected, "{a:?} {b:?}");
        };
        check(" Add_To_Card", "add_to_cart ", (10, 11));
        check("hello", "hello world", (5, 11));
        check("abcd", "dcba", (1, 4));
        // "diet" then "tide": the order matters.
        check("tide", "diet", (1, 4));
        check("diet", "tide", (2, 4));
        check("", "", (0, 1));
    }
}
