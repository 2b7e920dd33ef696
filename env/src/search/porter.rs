//! Porter's stemmer, the first one, with its author's two later extensions.
//!
//! M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980. [`stem`] removes suffixes
//! in place, step by step, as Lucene's `PorterStemFilter` does, so that an index made here holds the
//! same terms as one made there.
//!
//! Deviations from the paper, both by Porter himself: `bli → ble` replaces `abli → able`, and
//! `logi → log` is added, in step 2. Words of one or two letters stay as they are.
//!
//! This is deliberately not Porter2 ("English" in Snowball), which tantivy ships: the two differ
//! on every thirtieth word of a shop's vocabulary. It lower-cases nothing and knows no exceptions.

/// Follows a character above U+FFFF, which Lucene counts as two letters.
const SECOND_HALF: char = '\0';

/// Cuts the suffixes of one lower-case word. Characters other than `a…z` count as consonants, those beyond
/// U+FFFF as two different ones.
///
/// ```
/// assert_eq!(webshop_env::stem("relational"), "relat");
/// assert_eq!(webshop_env::stem("10pcs"), "10pc");
/// assert_eq!(webshop_env::stem("is"), "is");
/// ```
pub fn stem(word: &str) -> String {
    stem_owned(word.to_owned())
}

/// [`stem`] in the memory of the word.
pub(crate) fn stem_owned(word: String) -> String {
    if word.is_ascii() {
        let letters = Word { letters: word.into_bytes() }.stemmed();
        return String::from_utf8(letters).expect("suffixes are ASCII, as the word is");
    }
    let halves = |c: char| [Some(c), (c.len_utf16() == 2).then_some(SECOND_HALF)].into_iter().flatten();
    let letters = Word { letters: word.chars().flat_map(halves).collect() }.stemmed();
    letters.into_iter().filter(|&letter| letter != SECOND_HALF).collect()
}

/// Step 2: where several end a word, the first listed decides, even if its stem is too short.
const DOUBLE_SUFFIXES: [(&str, &str); 21] = [
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("logi", "log"),
];

/// Step 3, read as step 2 is.
const SINGLE_SUFFIXES: [(&str, &str); 7] = [
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

/// Step 4, read as step 2 is; `ion` counts only after `s` or `t`.
const LAST_SUFFIXES: [&str; 19] = [
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism",
    "ate", "iti", "ous", "ive", "ize",
];

/// A word of bytes, if it is ASCII, or of characters.
struct Word<L> {
    letters: Vec<L>,
}

impl<L: Copy + PartialEq + From<u8>> Word<L> {
    fn stemmed(mut self) -> Vec<L> {
        if self.letters.len() > 2 {
            self.plurals_and_participles();
            self.final_y();
            self.replace_first(&DOUBLE_SUFFIXES);
            self.replace_first(&SINGLE_SUFFIXES);
            self.drop_last_suffix();
            self.final_e_and_double_l();
        }
        self.letters
    }

    fn is_any(&self, at: usize, letters: &[u8]) -> bool {
        letters.iter().any(|&letter| self.letters[at] == letter.into())
    }

    fn is_consonant(&self, at: usize) -> bool {
        if self.is_any(at, b"y") { at == 0 || !self.is_consonant(at - 1) } else { !self.is_any(at, b"aeiou") }
    }

    /// Porter's m of the first `len` letters: how often a vowel run is followed by a consonant.
    fn measure(&self, len: usize) -> usize {
        (1..len).filter(|&at| self.is_consonant(at) && !self.is_consonant(at - 1)).count()
    }

    fn has_vowel(&self, len: usize) -> bool {
        (0..len).any(|at| !self.is_consonant(at))
    }

    fn ends_in_double_consonant(&self) -> bool {
        let n = self.letters.len();
        n >= 2 && self.letters[n - 1] == self.letters[n - 2] && self.is_consonant(n - 1)
    }

    /// Whether the first `len` letters end in consonant, vowel, consonant, the last not w, x, y.
    fn ends_cvc(&self, len: usize) -> bool {
        len >= 3
            && self.is_consonant(len - 3)
            && !self.is_consonant(len - 2)
            && self.is_consonant(len - 1)
            && !self.is_any(len - 1, b"wxy")
    }

    /// The length of the stem before `suffix`, if the word ends with it.
    fn stem_before(&self, suffix: &str) -> Option<usize> {
        let stem = self.letters.len().checked_sub(suffix.len())?;
        // From the end, where most words differ from a suffix.
        let is_same = |(&letter, byte): (&L, u8)| letter == byte.into();
        self.letters[stem..].iter().rev().zip(suffix.bytes().rev()).all(is_same).then_some(stem)
    }

    fn replace(&mut self, stem: usize, ending: &str) {
        self.letters.truncate(stem);
        self.letters.extend(ending.bytes().map(L::from));
    }

    /// Steps 1a and 1b.
    fn plurals_and_participles(&mut self) {
        if let Some(stem) = self.stem_before("sses") {
            self.replace(stem, "ss");
        } else if let Some(stem) = self.stem_before("ies") {
            self.replace(stem, "i");
        } else if self.stem_before("s").is_some() && self.stem_before("ss").is_none() {
            self.letters.pop();
        }
        if let Some(stem) = self.stem_before("eed") {
            if self.measure(stem) > 0 {
                self.letters.pop();
            }
            return;
        }
        let participle = self.stem_before("ed").or_else(|| self.stem_before("ing"));
        if let Some(stem) = participle.filter(|&stem| self.has_vowel(stem)) {
            self.letters.truncate(stem);
            self.mend_participle();
        }
    }

    /// The end of step 1b: a word that lost `ed` or `ing` gets back its `e`, or loses a doubled letter.
    fn mend_participle(&mut self) {
        let n = self.letters.len();
        let wants_e = ["at", "bl", "iz"].iter().any(|ending| self.stem_before(ending).is_some());
        if wants_e {
            self.letters.push(b'e'.into());
        } else if self.ends_in_double_consonant() {
            if !self.is_any(n - 1, b"lsz") {
                self.letters.pop();
            }
        } else if self.measure(n) == 1 && self.ends_cvc(n) {
            self.letters.push(b'e'.into());
        }
    }

    /// Step 1c.
    fn final_y(&mut self) {
        if let Some(stem) = self.stem_before("y")
            && self.has_vowel(stem)
        {
            self.replace(stem, "i");
        }
    }

    fn replace_first(&mut self, rules: &[(&str, &str)]) {
        let found = rules.iter().find_map(|(suffix, ending)| Some((self.stem_before(suffix)?, ending)));
        if let Some((stem, ending)) = found
            && self.measure(stem) > 0
        {
            self.replace(stem, ending);
        }
    }

    fn drop_last_suffix(&mut self) {
        let found = LAST_SUFFIXES.iter().find_map(|&suffix| {
            let stem = self.stem_before(suffix)?;
            let is_after_s_or_t = stem.checked_sub(1).is_some_and(|before| self.is_any(before, b"st"));
            (suffix != "ion" || is_after_s_or_t).then_some(stem)
        });
        if let Some(stem) = found
            && self.measure(stem) > 1
        {
            self.letters.truncate(stem);
        }
    }

    /// Step 5.
    fn final_e_and_double_l(&mut self) {
        if let Some(stem) = self.stem_before("e") {
            let m = self.measure(stem);
            if m > 1 || (m == 1 && !self.ends_cvc(stem)) {
                self.letters.pop();
            }
        }
        let n = self.letters.len();
        if self.stem_before("ll").is_some() && self.measure(n) > 1 {
            self.letters.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn each_step_cuts_its_suffix() {
        // The paper's own examples, one or two of each step.
        let cases = [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("cats", "cat"),
            ("agreed", "agre"),
            ("feed", "feed"),
            ("plastered", "plaster"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("filing", "file"),
            ("happy", "happi"),
            ("sky", "sky"),
            ("vietnamization", "vietnam"),
            ("hopefulness", "hope"),
            ("electriciti", "electr"),
            ("adoption", "adopt"),
            ("rate", "rate"),
            ("cease", "ceas"),
            ("controll", "control"),
        ];
        for (word, expected) in cases {
            assert_eq!(stem(word), expected, "stem of {word}");
        }
    }

    #[test]
    fn the_authors_extensions_are_in() {
        // `possibli` ends in `bli`, not `abli`; `analogi` has m(ana) = 1 before `logi`.
        assert_eq!(stem("possibly"), "possibl");
        assert_eq!(stem("analogy"), "analog");
    }

    #[test]
    fn other_scripts_pass_through() {
        assert_eq!(stem("crème"), "crème");
        assert_eq!(stem("靴"), "靴");
        // Two letters each, as Lucene counts them: long enough to lose an `s`, and no double one.
        assert_eq!(stem("𝐚s"), "𝐚");
        assert_eq!(stem("ab𝐚𝐚ed"), "ab𝐚𝐚");
    }
}
