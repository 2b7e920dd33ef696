//! The spaces that make a word the same token wherever it stands: put before encoding, taken after decoding.

use tokenizers::NormalizerWrapper;
use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::normalizers::{Lowercase, NFC, Prepend, Replace};

/// Behind these a word never has a space of its own.
const OPENERS: [char; 4] = ['[', '(', '$', '\n'];

/// Behind these a word has no space of its own unless there is one before them too (`a-b`, `a - b`).
const JOINERS: [char; 4] = ['/', '-', '&', '>'];

/// What a word or a number begins with.
const WORD_START: &str = r"[\p{L}\p{N}]";

/// In quoted text, as JSON is, a word has no space of its own behind a quote. One behind a backslash is part of the text:
/// what it stands for (`12\" x 24\"`) has to come back as it was.
const BEHIND_QUOTE: &str = r#"(?<!\\)""#;

/// Lower case, and a space before every word that lacks one; behind quotes too in a text that `is_quoted`.
///
/// Letters are composed after lower-casing, since some compose only then: what is decoded must not change
/// when it is encoded again.
///
/// One step a mark, because a step can only write a fixed text and must replace at least one character: the
/// crate miscounts where an empty match is replaced. For the same reason the space at the start is first
/// put before everything and then taken from what is no word.
pub fn give_spaces(is_quoted: bool) -> tokenizers::Result<Vec<NormalizerWrapper>> {
    let mut steps: Vec<NormalizerWrapper> =
        vec![Lowercase.into(), NFC.into(), Prepend::new(" ".into()).into()];
    steps.push(replace(format!(r"\A (?!{WORD_START})"), "")?.into());
    for opener in OPENERS {
        let behind = replace(format!(r"{}(?={WORD_START})", in_regex(opener)), &format!("{opener} "))?;
        steps.push(behind.into());
    }
    for joiner in JOINERS {
        let behind = replace(format!(r"(?<!\s){}(?={WORD_START})", in_regex(joiner)), &format!("{joiner} "))?;
        steps.push(behind.into());
    }
    if is_quoted {
        steps.push(replace(format!("{BEHIND_QUOTE}(?={WORD_START})"), "\" ")?.into());
    }
    Ok(steps)
}

/// The inverse of [`give_spaces`], but for capitals.
pub fn take_spaces(is_quoted: bool) -> tokenizers::Result<Replace> {
    let openers: String = OPENERS.map(in_regex).concat();
    let quotes = if is_quoted { r#"|(?<=")(?<!\\")"# } else { "" };
    let joiners: String = JOINERS.map(in_regex).concat();
    let places = format!(r"\A|(?<=[{openers}])|(?<!\s[{joiners}])(?<=[{joiners}]){quotes}");
    replace(format!("(?:{places}) (?={WORD_START})"), "")
}

fn replace(pattern: String, content: &str) -> tokenizers::Result<Replace> {
    Replace::new(ReplacePattern::Regex(pattern), content)
}

/// An ASCII `mark` as a regular expression, alone or in a class: by its number, since what a backslash before
/// a mark means differs between the engines that read `tokenizer.json` (`\>` is the end of a word to some).
fn in_regex(mark: char) -> String {
    format!(r"\x{:02X}", u32::from(mark))
}
