//! What an instruction says, read from its text alone.
//!
//! An [`Instruction`] is the text before the price clause, as words, and the limit of that clause. It finds the
//! option values that the text names ([`Instruction::named`]), counts the word pairs that it shares with a title
//! ([`Instruction::shared_pairs`]), and splits it into the phrases that describe the product ([`phrases`]). It knows no goal and no
//! catalog: everything else comes from the pages that a policy passes in.
//!
//! It reads the generated instructions and the original's (`Find me a, b QUERY with c for d with color: x, and
//! size: y, and price lower than 40.00 dollars`). It knows neither synonyms nor misspellings.

pub(crate) mod phrases;
pub(crate) mod stated_options;

use std::collections::BTreeSet;

use webshop_env::{ItemPage, stem};
use webshop_products::Cents;

/// The words before the limit, with which every price clause begins.
const PRICE_CLAUSE: &str = "price lower than";

/// Characters that end a clause.
const CLAUSE_ENDS: [char; 8] = [',', ';', ':', '.', '!', '?', '(', ')'];

/// Characters that join two parts to one word, as in `x-large` and `men's`. A point joins digits only.
const JOINERS: [char; 3] = ['-', '\'', '’'];

/// Stands for a joiner inside a word.
const JOINED: char = '\0';

/// Words that name no option value: `a` is no size.
const NO_VALUES: [&str; 8] = ["a", "an", "i", "in", "it", "me", "my", "the"];

/// A word in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    /// Whether punctuation precedes it, or it is the first.
    pub(crate) starts_clause: bool,
}

impl Word {
    /// Its parts: `oil-free` has two.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &str> {
        self.text.split('-').filter(|part| !part.is_empty())
    }

    /// The stems of its parts, without a possessive `'s`.
    pub(crate) fn stems(&self) -> impl Iterator<Item = String> {
        self.parts().map(|part| stem(part.strip_suffix("'s").unwrap_or(part)))
    }
}

/// An option value that an instruction names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// The position of its list.
    pub(crate) list: usize,
    /// Its position in the list.
    pub(crate) value: usize,
    /// The place of its first word in the instruction.
    pub(crate) start: usize,
    /// The place behind its last word.
    pub(crate) end: usize,
}

/// An instruction without its price clause, and the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    query: String,
    limit: Option<Cents>,
    words: Vec<Word>,
}

impl Instruction {
    /// Reads an instruction. A text without a price clause has no limit.
    pub(crate) fn parse(text: &str) -> Self {
        let lower = text.to_lowercase();
        let (query, limit) = match lower.rfind(PRICE_CLAUSE) {
            None => (lower.as_str(), None),
            Some(at) => (&lower[..at], cents(&lower[at + PRICE_CLAUSE.len()..])),
        };
        let is_joint = |c: char| c.is_whitespace() || c == ',';
        let query = match limit {
            None => lower.as_str(),
            Some(_) => query.trim_end_matches(is_joint).trim_end_matches("and").trim_end_matches(is_joint),
        };
        Self { query: query.into(), limit, words: words(query) }
    }

    /// The text before the price clause, in lower case.
    pub(crate) fn query(&self) -> &str {
        &self.query
    }

    /// The most that the purchase may cost; `None` if the text states no limit.
    pub(crate) fn limit(&self) -> Option<Cents> {
        self.limit
    }

    /// The words before the price clause.
    pub(crate) fn words(&self) -> &[Word] {
        &self.words
    }

    /// The values of `lists` that the text names, in the order in which it names them.
    ///
    /// A value is named where all its words follow each other; `x-large` is one word and does not name `large`.
    /// Of two overlapping values, of the same list or of two, the one with more words counts, then the longer
    /// one, then the first. A value that stands in several lists is named in each.
    pub(crate) fn named(&self, lists: &[Vec<&str>]) -> Vec<Named> {
        let mut found = Vec::new();
        for (list, values) in lists.iter().enumerate() {
            for (value, text) in values.iter().enumerate() {
                let value_words: Vec<Word> = words(&text.to_lowercase());
                found.extend(self.places(&value_words).map(|(start, end)| Named { list, value, start, end }));
            }
        }
        // The sort is stable: lists and values keep their order.
        let n_chars =
            |of: &Named| self.words[of.start..of.end].iter().map(|word| word.text.len()).sum::<usize>();
        found.sort_by_key(|of| std::cmp::Reverse((of.end - of.start, n_chars(of))));
        let mut named: Vec<Named> = Vec::new();
        for one in found {
            let is_same = |other: &Named| (one.start, one.end) == (other.start, other.end);
            let overlaps = |other: &Named| one.start < other.end && other.start < one.end;
            let is_taken = |other: &Named| overlaps(other) && (other.list == one.list || !is_same(other));
            if !named.iter().any(is_taken) {
                named.push(one);
            }
        }
        named.sort_by_key(|of| (of.start, of.list));
        named
    }

    /// [`Instruction::named`] among the options of an item page; `list` is the position of the option.
    pub(crate) fn named_on(&self, page: &ItemPage) -> Vec<Named> {
        let mut lists = Vec::with_capacity(page.options.len());
        for list in &page.options {
            lists.push(list.values.iter().map(|value| &*value.text).collect());
        }
        self.named(&lists)
    }

    /// Where these words follow each other, as starts and ends.
    fn places(&self, value: &[Word]) -> impl Iterator<Item = (usize, usize)> {
        let n = value.len();
        let is_named = value.iter().any(|word| !NO_VALUES.contains(&word.text.as_str()));
        let windows = self.words.windows(n.max(1)).enumerate().filter(move |_| is_named);
        let is_equal = move |window: &[Word]| window.iter().zip(value).all(|(a, b)| a.text == b.text);
        windows.filter(move |(_, window)| is_equal(window)).map(move |(start, _)| (start, start + n))
    }

    /// The number of distinct pairs of neighboring words that `title` and the text have in common, compared by
    /// [stem](webshop_env::stem).
    pub(crate) fn shared_pairs(&self, title: &str) -> usize {
        let (own, other) = (stems(&self.query), stems(title));
        pairs(&own).intersection(&pairs(&other)).count()
    }
}

/// The words of `text`, which is in lower case: letters and digits, with single joiners between them.
fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let (mut before, mut starts_clause) = (' ', true);
    let mut rest = text.chars().peekable();
    while let Some(char) = rest.next() {
        let next = rest.peek().copied().unwrap_or(' ');
        let is_joiner = JOINERS.contains(&char) && before.is_alphanumeric() && next.is_alphanumeric()
            || char == '.' && before.is_ascii_digit() && next.is_ascii_digit();
        let continues = before == JOINED || before.is_alphanumeric();
        match char.is_alphanumeric() || is_joiner {
            true if continues => words.last_mut().expect("the word has begun").text.push(char),
            true => words.push(Word { text: char.into(), starts_clause }),
            false => starts_clause = CLAUSE_ENDS.contains(&char) || starts_clause && !continues,
        }
        before = if is_joiner { JOINED } else { char };
    }
    words
}

/// The stems of a text's words.
pub(crate) fn stems(text: &str) -> Vec<String> {
    let words = words(&text.to_lowercase());
    words.iter().flat_map(|word| word.stems()).collect()
}

/// The pairs of neighbors.
fn pairs(words: &[String]) -> BTreeSet<(&str, &str)> {
    words.windows(2).map(|pair| (pair[0].as_str(), pair[1].as_str())).collect()
}

/// The amount in front of `dollars`, such as ` 40.00 dollars`; fractions of a cent are dropped.
fn cents(text: &str) -> Option<Cents> {
    let number = text.split_whitespace().next()?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole: i64 = whole.parse().ok()?;
    let fraction = fraction.trim_end_matches(|c: char| !c.is_ascii_digit());
    let hundredths: i64 = format!("{fraction:0<2}").get(..2)?.parse().ok()?;
    whole.checked_mul(100).map(|cents| Cents(cents + hundredths))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The named values in order.
    fn named<'a>(instruction: &str, lists: &[&[&'a str]]) -> Vec<&'a str> {
        let lists: Vec<Vec<&str>> = lists.iter().map(|list| list.to_vec()).collect();
        let named = Instruction::parse(instruction).named(&lists);
        named.iter().map(|of| lists[of.list][of.value]).collect()
    }

    #[test]
    fn the_price_clause_is_the_limit_and_not_a_part_of_the_query() {
        let read = |text: &str| {
            let instruction = Instruction::parse(text);
            (instruction.query().to_owned(), instruction.limit())
        };
        assert_eq!(
            read("A red Lamp, and price lower than 40.00 dollars"),
            ("a red lamp".into(), Some(Cents(4000)))
        );
        assert_eq!(read("a lamp with color: red, and price lower than 7.5 dollars.").1, Some(Cents(750)));
        assert_eq!(read("a lamp"), ("a lamp".into(), None));
        assert_eq!(read("a price lower than the others"), ("a price lower than the others".into(), None));
    }

    #[test]
    fn the_longest_value_is_named() {
        let sizes: &[&str] = &["large", "x-large", "xx-large tall", "small"];
        assert_eq!(named("a shirt in size x-large.", &[sizes]), ["x-large"]);
        assert_eq!(named("a shirt in xx-large tall", &[sizes]), ["xx-large tall"]);
        assert_eq!(named("a large shirt", &[sizes]), ["large"]);
        assert_eq!(named("an enlarged shirt", &[sizes]), [""; 0]);
        let packs: &[&str] = &["pack of 1", "pack of 12", "12"];
        assert_eq!(named("crackers, pack of 12", &[packs]), ["pack of 12"]);
        assert_eq!(named("size 10.5 shoes", &[&["10", "10.5", "5"]]), ["10.5"]);
    }

    #[test]
    fn overlapping_values_of_two_lists_exclude_each_other_unless_they_are_equal() {
        let lists: &[&[&str]] = &[&["large print", "plain"], &["large", "small"]];
        assert_eq!(
            named("a shirt with color: large print, and size: small", lists),
            ["large print", "small"]
        );
        assert_eq!(named("red all over", &[&["red"], &["red", "blue"]]), ["red", "red"]);
    }

    #[test]
    fn values_are_named_in_the_order_of_the_text_whatever_their_punctuation() {
        let lists: &[&[&str]] = &[&["28\" x 28\"", "16\" x 16\""], &["blue | red", "blue", "red"]];
        assert_eq!(named("blue | red pillows of 28\" x 28\"", lists), ["blue | red", "28\" x 28\""]);
        assert_eq!(named("first blue then red", lists), ["blue", "red"]);
        assert_eq!(named("a lamp in it", &[&["a", "in", "+", ""]]), [""; 0]);
    }

    #[test]
    fn pairs_of_neighboring_words_are_counted_once() {
        let instruction = Instruction::parse("machine washable shorts with elastic waist, machine washable");
        assert_eq!(instruction.shared_pairs("Short, Machine-Washable, Elastic Waists"), 2);
        assert_eq!(instruction.shared_pairs("washable machine"), 0);
        assert_eq!(instruction.shared_pairs(""), 0);
    }
}
