//! Inserts spaces before words for encoding and removes them after decoding, so that a word is the same token
//! in every context; the rule is in [`crate::tokenizer`].

use tokenizers::NormalizerWrapper;
use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::normalizers::{Lowercase, NFC, Prepend, Replace};

/// Characters after which a space is inserted before a word, and removed.
const OPENERS: [char; 4] = ['[', '(', '$', '\n'];

/// As [`OPENERS`], but only if no white space precedes the character (`a-b`, not `a - b`).
const JOINERS: [char; 4] = ['/', '-', '&', '>'];

/// The first character of a word or a number.
const WORD_START: &str = r"[\p{L}\p{N}]";

/// In JSON and HTML, a quotation mark is treated as an opener. An escaped one (`12\" x 24\"`) is part of the
/// text and is not changed.
const OPENING_QUOTE: &str = r#"(?<!\\)""#;

/// The normalizers that lower-case a text and insert the spaces; with `is_quoted` also after quotation marks.
///
/// NFC follows lower-casing because some letters compose only in lower case; otherwise decoded text would
/// change when it is encoded again.
///
/// There is one step per character because a step writes a fixed text and must replace at least one
/// character: the crate computes wrong offsets for empty matches. For the same reason the space at the start
/// of the text is inserted always, and then removed if no word follows.
pub(super) fn insert_spaces(is_quoted: bool) -> tokenizers::Result<Vec<NormalizerWrapper>> {
    let mut steps: Vec<NormalizerWrapper> =
        vec![Lowercase.into(), NFC.into(), Prepend::new(" ".into()).into()];
    steps.push(replace(format!(r"\A (?!{WORD_START})"), "")?.into());
    for opener in OPENERS {
        let step = replace(format!(r"{}(?={WORD_START})", in_regex(opener)), &format!("{opener} "))?;
        steps.push(step.into());
    }
    for joiner in JOINERS {
        let step = replace(format!(r"(?<!\s){}(?={WORD_START})", in_regex(joiner)), &format!("{joiner} "))?;
        steps.push(step.into());
    }
    if is_quoted {
        steps.push(replace(format!("{OPENING_QUOTE}(?={WORD_START})"), "\" ")?.into());
    }
    Ok(steps)
}

/// The decoder that removes the spaces of [`insert_spaces`]; upper case is not restored.
pub(super) fn remove_spaces(is_quoted: bool) -> tokenizers::Result<Replace> {
    let openers: String = OPENERS.map(in_regex).concat();
    let quotes = if is_quoted { r#"|(?<=")(?<!\\")"# } else { "" };
    let joiners: String = JOINERS.map(in_regex).concat();
    let places = format!(r"\A|(?<=[{openers}])|(?<!\s[{joiners}])(?<=[{joiners}]){quotes}");
    replace(format!("(?:{places}) (?={WORD_START})"), "")
}

fn replace(pattern: String, content: &str) -> tokenizers::Result<Replace> {
    Replace::new(ReplacePattern::Regex(pattern), content)
}

/// An ASCII `character` as a hexadecimal escape for a regular expression or a class. A backslash before
/// punctuation has different meanings in the engines that read `tokenizer.json`: `\>` is the end of a word in
/// some.
fn in_regex(character: char) -> String {
    format!(r"\x{:02X}", u32::from(character))
}
