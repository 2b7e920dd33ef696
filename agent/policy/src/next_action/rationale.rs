//! The position of the rationale in a completion.
//!
//! A rationale's tokens are those that share at least one byte with the value of its JSON string, without the
//! quotes.

use std::ops::Range;

use crate::next_action::parse::{FormatMode, NextActionCompletion};

/// The byte range of the rationale between its quotes, escapes as written. `None` if the completion is
/// malformed.
///
/// ```
/// use webshop_agent::next_action::rationale_span;
/// let text = r#"{"rationale": "I look.", "action": {"type": "terminate"}}"#;
/// assert_eq!(&text[rationale_span(text).unwrap()], "I look.");
/// ```
pub fn rationale_span(completion: &str) -> Option<Range<usize>> {
    NextActionCompletion::read(completion, FormatMode::Json).ok()?;
    // The completion is a JSON object whose key `rationale` is a string.
    let bytes = completion.as_bytes();
    let (mut depth, mut is_value, mut is_rationale) = (0, false, false);
    let mut span = None;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = closing_quote(bytes, at);
                if depth == 1 && is_value && is_rationale {
                    span = Some(at + 1..end);
                } else if depth == 1 && !is_value {
                    let key = serde_json::from_str::<String>(&completion[at..=end]);
                    is_rationale = key.is_ok_and(|key| key == "rationale");
                }
                at = end;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b':' if depth == 1 => is_value = true,
            b',' if depth == 1 => is_value = false,
            _ => (),
        }
        at += 1;
    }
    span
}

/// The quote that ends the string which begins at `open`.
fn closing_quote(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at
}

/// The positions of the tokens of the rationale, given the number of bytes that each token wrote. Empty if
/// the completion is malformed or the rationale empty.
///
/// ```
/// use webshop_agent::next_action::rationale_tokens;
/// let pieces = [r#"{"rationale":"#, r#" "I"#, " look", r#".","#, r#""action":{"type":"terminate"}}"#];
/// assert_eq!(rationale_tokens(&pieces.concat(), &pieces.map(str::len)), [1, 2, 3]);
/// ```
pub fn rationale_tokens(completion: &str, token_bytes: &[usize]) -> Vec<usize> {
    let Some(span) = rationale_span(completion) else {
        return Vec::new();
    };
    let mut start = 0;
    let mut found = Vec::new();
    for (token, n_bytes) in token_bytes.iter().enumerate() {
        let end = start + n_bytes;
        if start.max(span.start) < end.min(span.end) {
            found.push(token);
        }
        start = end;
    }
    found
}
