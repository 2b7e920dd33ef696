//! Text into words, as the tokenizer of the original's search engine cuts it.
//!
//! Lucene 8's `StandardTokenizer` follows Unicode's word boundaries (UAX #29) as of Unicode 9 and takes emoji
//! (UTS #51) as of version 11 for words; it divides no run of a script without spaces, such as Thai. Every
//! character is of one kind, called by an ASCII letter ([`KINDS`]); from left to right, a word is the longest
//! run whose kinds match [`pattern`], and characters that begin none are left out.
//!
//! A library for today's boundaries differs in some thousand characters, and cuts emoji elsewhere. What
//! becomes of words afterwards is not decided here but by [`crate::analyze`].

use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::{Class, Hir, HirKind};
use std::ops::Range;
use std::sync::LazyLock;

/// Longer words are cut into pieces of this many UTF-16 units.
const MAX_WORD_UNITS: usize = 255;

/// A character of no kind below.
const OTHER: u8 = b'.';

/// A mark that is also part of a script without spaces.
const UNSPACED_MARK: u8 = b't';

/// Kinds and their characters: today's properties, but for those that were others in Unicode 9. Of two kinds
/// that claim a character the later has it, except for [`UNSPACED_MARK`]s.
const KINDS: [(u8, &str); 26] = [
    // Marks and invisible signs, which stay with what they follow; some have become letters or digits since.
    (b'x', r"[[\p{wb=Extend}\p{wb=Format}]&&\p{age=9.0}]"),
    (b'J', r"[\p{Han}&&\p{age=9.0}]"),
    (b'A', r"[\p{wb=ALetter}&&\p{age=9.0}]"),
    (b'H', r"[\p{wb=Hebrew_Letter}&&\p{age=9.0}]"),
    (b'N', r"[[\p{wb=Numeric}&&\p{age=9.0}]\x{FF10}-\x{FF19}]"),
    (b'x', r"[\x{600}-\x{605}\x{6DD}\x{70F}\x{8E2}\x{1CF2}\x{1CF3}\x{110BD}]"),
    (b'K', r"[\p{wb=Katakana}&&\p{age=9.0}]"),
    (b'G', r"[\p{Hiragana}&&\p{age=9.0}]"),
    (b'E', r"[\p{wb=ExtendNumLet}&&\p{age=9.0}]"),
    (b'l', r"\p{wb=MidLetter}"),
    (b'n', r"\p{wb=MidNum}"),
    (b'm', r"\p{wb=MidNumLet}"),
    (b's', r"[']"),
    (b'd', r#"["]"#),
    (b'z', r"\p{wb=ZWJ}"),
    // Emoji, of which some are letters too (Ⓜ), some take a colour of skin (M), and pairs of letters (R) make
    // flags.
    (b'P', r"[[\p{Emoji}\p{Extended_Pictographic}\x{1FB00}-\x{1FBFF}]--[\#*0-9]]"),
    (b'B', r"[\p{Emoji}&&\p{wb=ALetter}]"),
    (b'Q', r"[\p{Emoji_Modifier_Base}&&\p{age=11.0}]"),
    (b'M', r"\p{Emoji_Modifier}"),
    (b'R', r"\p{wb=Regional_Indicator}"),
    // What keycaps are made of, and the marks that ask for an emoji or for none.
    (b'D', r"[0-9]"),
    (b'q', r"[\#*]"),
    (b'k', r"[\x{20E3}]"),
    (b'v', r"[\x{FE0F}]"),
    (b'w', r"[\x{FE0E}]"),
    (
        b'C',
        r"[[[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tai_Le}\p{New_Tai_Lue}\p{Tai_Tham}\p{Tai_Viet}\p{Ahom}]
          &&[\p{L}\p{M}]&&\p{age=9.0}]--[\x{1A7F}]]",
    ),
];

/// Letters that Unicode 9 did not take for letters of words, and signs that it took for South-East Asian
/// ones.
const CORRECTIONS: [(u8, &str); 2] = [
    (
        OTHER,
        r"[\x{2C2}-\x{2C5}\x{2D2}-\x{2D7}\x{2DE}\x{2DF}\x{2E5}-\x{2EB}\x{2ED}\x{2EF}-\x{2FF}\x{55A}-\x{55C}
          \x{55E}\x{58A}\x{A708}-\x{A716}\x{A720}\x{A721}\x{A789}\x{A78A}\x{AB5B}]",
    ),
    (
        b'C',
        r"[\x{109E}\x{109F}\x{19DA}\x{19DE}\x{19DF}\x{1AA0}-\x{1AAD}\x{AA77}-\x{AA79}\x{AADE}\x{AADF}\x{1173A}
          \x{1173B}\x{1173F}]",
    ),
];

/// The kinds of characters in a word.
fn pattern() -> String {
    let extended = |kinds: &str| format!("(?:[{kinds}][xzvwkt]*)");
    let [any_letter, hebrew, digit, katakana] = ["ABH", "H", "ND", "K"].map(extended);
    let [line, quote, quotes] = ["E", "s", "d"].map(extended);
    let [in_word, in_number] = ["lms", "nms"].map(extended);
    let letters = format!("{any_letter}(?:(?:{line}*|{in_word}){any_letter})*");
    let number = format!("{digit}(?:(?:{line}*|{in_number}){digit})*");
    let hebrew = format!("{hebrew}(?:{quote}|{quotes}{hebrew})");
    let part = format!("(?:{katakana}(?:{line}*{katakana})*|(?:{hebrew}|{number}|{letters})+)");
    let word = format!("{line}*{part}(?:{line}+{part})*{line}*");
    // Emoji are joined by ZWJ, and marks stay with them up to the one that asks for an emoji.
    let marks = "[xzkt]*";
    let emoji = format!("(?:[PBQ]{marks}v?|Q{marks}M{marks})");
    let tone = format!("M{marks}");
    let joined = format!("(?:z*{emoji}|{tone})(?:z(?:{emoji}|{tone}))*");
    let [unspaced, han, hiragana, half_flag] = ["Ct", "J", "G", "R"].map(extended);
    format!("{word}|{unspaced}+|{han}|{hiragana}|{joined}|[Dq]{marks}v?k{marks}|{half_flag}{half_flag}")
}

/// The kinds of all characters, and the automaton that reads them.
struct Rules {
    kinds: Vec<u8>,
    words: dense::DFA<Vec<u32>>,
}

static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let mut kinds = vec![OTHER; char::MAX as usize + 1];
    for (kind, characters) in KINDS.into_iter().chain(CORRECTIONS) {
        for of_character in members(characters).flat_map(|(first, last)| first as usize..=last as usize) {
            let known = &mut kinds[of_character];
            *known = if (*known, kind) == (b'x', b'C') { UNSPACED_MARK } else { kind };
        }
    }
    let longest = dense::Config::new().match_kind(MatchKind::All).start_kind(StartKind::Anchored);
    let words = dense::Builder::new().configure(longest).build(&pattern());
    Rules { kinds, words: words.expect("the pattern is a constant and valid") }
});

/// The ranges of a class of characters.
fn members(class: &str) -> impl Iterator<Item = (char, char)> {
    let parsed = syntax::parse_with(class, &syntax::Config::new().ignore_whitespace(true));
    match parsed.map(Hir::into_kind) {
        Ok(HirKind::Class(Class::Unicode(class))) => {
            let ranges: Vec<_> = class.ranges().iter().map(|range| (range.start(), range.end())).collect();
            ranges.into_iter()
        }
        Ok(HirKind::Literal(one)) => {
            let one = std::str::from_utf8(&one.0).ok().and_then(|text| text.chars().next());
            one.map(|one| (one, one)).into_iter().collect::<Vec<_>>().into_iter()
        }
        other => unreachable!("`{class}` is a constant and a class: {other:?}"),
    }
}

impl Rules {
    /// The end of the word that begins at the start of `range`; that start if none begins.
    fn word_end(&self, kinds: &[u8], range: Range<usize>) -> usize {
        let input = Input::new(kinds).range(range.clone()).anchored(Anchored::Yes);
        let found =
            self.words.try_search_fwd(&input).expect("the automaton searches anchored and never quits");
        found.map_or(range.start, |found| found.offset())
    }
}

/// The words of a text, in order.
pub(crate) fn words(text: &str) -> Vec<&str> {
    let rules = &*RULES;
    if text.is_ascii() {
        let kinds: Vec<u8> = text.bytes().map(|byte| rules.kinds[byte as usize]).collect();
        return words_at(text, &kinds, |at| at);
    }
    let kinds: Vec<u8> = text.chars().map(|c| rules.kinds[c as usize]).collect();
    let places: Vec<usize> = text.char_indices().map(|(place, _)| place).chain([text.len()]).collect();
    words_at(text, &kinds, |at| places[at])
}

/// The words of a text, given the kind of each character and the place where it begins.
fn words_at<'a>(text: &'a str, kinds: &[u8], place: impl Fn(usize) -> usize) -> Vec<&'a str> {
    let rules = &*RULES;
    let mut words = Vec::new();
    let mut at = 0;
    while at < kinds.len() {
        let mut end = rules.word_end(kinds, at..kinds.len().min(at + MAX_WORD_UNITS));
        let fitting = n_fitting(&text[place(at)..place(end)]);
        if fitting < end - at {
            end = rules.word_end(kinds, at..at + fitting);
        }
        if end > at {
            words.push(&text[place(at)..place(end)]);
        }
        at = end.max(at + 1);
    }
    words
}

/// How many characters of a word fit into [`MAX_WORD_UNITS`].
fn n_fitting(word: &str) -> usize {
    if word.is_ascii() {
        return word.len().min(MAX_WORD_UNITS);
    }
    let mut units = 0;
    let fits = |c: &char| {
        units += c.len_utf16();
        units <= MAX_WORD_UNITS
    };
    word.chars().take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::words;

    /// Each right side is what Lucene 8.11 made of the left one.
    fn check(cases: &[(&str, &[&str])]) {
        for (text, expected) in cases {
            assert_eq!(words(text), *expected, "words of {text:?}");
        }
    }

    #[test]
    fn letters_digits_and_lines_hold_together() {
        check(&[
            ("don't 1,234.50 u.s.a. a_b _ __a", &["don't", "1,234.50", "u.s.a", "a_b", "__a"]),
            ("1;2 1:2 a:b a.1 1.a x\u{301}y", &["1;2", "1", "2", "a:b", "a", "1", "1", "a", "x\u{301}y"]),
            ("ש\"ש ש׳ 漢字カタ カーひら 々a", &["ש\"ש", "ש׳", "漢", "字", "カタ", "カー", "ひ", "ら", "々a"]),
        ]);
    }

    #[test]
    fn what_unicode_has_decided_since_does_not_count() {
        // Letters of Unicode 10 and later, a sign that became a letter, and a mark that stays one.
        check(&[("𗓡 ˅a 𑀅", &["a", "𑀅"]), ("\u{940}a \u{940}", &["a"]), ("゛ ⺩", &["゛", "⺩"])]);
    }

    #[test]
    fn emoji_are_words_with_all_that_joins_them() {
        check(&[
            ("★ ™ 🙂🙂", &["★", "™", "🙂", "🙂"]),
            ("👍🏽👍 🀄🏽 🏽", &["👍🏽", "👍", "🀄", "🏽", "🏽"]),
            ("👩\u{200d}👧 ❤\u{fe0f}x ↔\u{fe0e}", &["👩\u{200d}👧", "❤\u{fe0f}", "x", "↔"]),
            ("1\u{fe0f}\u{20e3} #\u{20e3} # 🇺🇸🇩", &["1\u{fe0f}\u{20e3}", "#\u{20e3}", "🇺🇸"]),
            ("🇺\u{fe0f}🇸", &["🇺\u{fe0f}🇸"]),
        ]);
    }

    #[test]
    fn scripts_without_spaces_are_not_divided() {
        check(&[("ผ้าไหมx ๙ ក្រ", &["ผ้าไหม", "x", "๙", "ក្រ"])]);
    }

    #[test]
    fn long_words_are_cut_by_units_of_utf_16() {
        let lengths = |text: &str| words(text).iter().map(|word| word.chars().count()).collect::<Vec<_>>();
        assert_eq!(lengths(&"x".repeat(600)), [255, 255, 90]);
        assert_eq!(lengths(&"𝐚".repeat(300)), [127, 127, 46]);
        // The rest after the cut begins with no letter.
        assert_eq!(lengths(&format!("{}.5x", "1".repeat(255))), [255, 2]);
    }
}
