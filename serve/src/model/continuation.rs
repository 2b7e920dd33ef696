//! The text of a completion, which may continue the text of its prompt.
//!
//! A decoder removes spaces, for instance at the start of a text, and several tokens may make one character. So a
//! completion that continues a prompt is decoded behind the prompt's tokens, and has what the prompt's own text lacks:
//! of the prompt "a lamp" and the token `" lamp"` the text is `" lamp"`. A turn of a chat is a text of its own.

use std::sync::Arc;

use webshop_lm::{BpeTokenizer, TextStream};

/// The number of tokens before a token that decide about its text. The decoder looks at the two characters before a
/// space, and part of a character has at most three bytes: 12 bytes, and a token has at least one.
const N_CONTEXT: usize = 12;

/// The last of `ids`, as many as the text of what follows depends on.
pub(crate) fn decoding_context(ids: &[u32]) -> &[u32] {
    &ids[ids.len().saturating_sub(N_CONTEXT)..]
}

/// Decodes the tokens of a completion as they are drawn.
pub(super) struct Continuation {
    stream: TextStream<Arc<BpeTokenizer>>,
    /// The end of the prompt's text that the stream still holds back: white space, or part of a character.
    held: String,
}

impl Continuation {
    /// The text behind that of `prompt_ids`, none for a text of its own.
    pub(super) fn new(tokenizer: Arc<BpeTokenizer>, prompt_ids: &[u32]) -> Continuation {
        let before = decoding_context(prompt_ids);
        let text = tokenizer.decode(before);
        let mut stream = TextStream::new(tokenizer);
        let n_passed: usize = before.iter().map(|id| stream.push(*id).len()).sum();
        Continuation { stream, held: text.get(n_passed..).unwrap_or_default().to_owned() }
    }

    /// Appends a token and returns the text that no later token changes.
    pub(super) fn push(&mut self, id: u32) -> String {
        let text = self.stream.push(id);
        self.without_held(text)
    }

    /// The rest of the text, once no token follows.
    pub(super) fn finish(&mut self) -> String {
        let text = self.stream.finish();
        self.without_held(text)
    }

    /// The text without what the prompt's text has of it already.
    fn without_held(&mut self, text: String) -> String {
        let n_common = common(&self.held, &text);
        match n_common == text.len() {
            true => drop(self.held.drain(..n_common)),
            // A space that the prompt's text still had may be gone.
            false => self.held.clear(),
        }
        text[n_common..].to_owned()
    }
}

/// The number of bytes of the characters that two texts begin with.
fn common(one: &str, other: &str) -> usize {
    let pairs = one.chars().zip(other.chars());
    pairs.take_while(|(one, other)| one == other).map(|(one, _)| one.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The prompt's text, and that of the completion, token by token.
    fn pieces(prompt: &[&str], completion: &[&str]) -> (String, Vec<String>) {
        let tokenizer = BpeTokenizer::train(["a lamp"; 2], 300, &[]).expect("room for all bytes");
        let ids = |tokens: &[&str]| -> Vec<u32> {
            tokens.iter().map(|token| tokenizer.id(token).expect("a token")).collect()
        };
        let (prompt_ids, completion_ids) = (ids(prompt), ids(completion));
        let mut text = Continuation::new(Arc::new(tokenizer.clone()), &prompt_ids);
        let mut pieces: Vec<String> = completion_ids.iter().map(|id| text.push(*id)).collect();
        pieces.push(text.finish());
        let whole = tokenizer.decode(&[prompt_ids.clone(), completion_ids].concat());
        let prompt = tokenizer.decode(&prompt_ids);
        assert!(whole.ends_with(&pieces.concat()), "{whole:?}, {pieces:?}");
        (prompt, pieces)
    }

    #[test]
    fn a_continuation_keeps_the_space_before_its_first_word() {
        let lamp = " lamp".to_owned();
        let (prompt, continued) = pieces(&["Ġa"], &["Ġlamp", "Ġlamp"]);
        assert_eq!((prompt.as_str(), continued), ("a", vec![lamp.clone(), lamp.clone(), String::new()]));
        let long = vec!["Ġlamp"; 2 * N_CONTEXT];
        assert_eq!(pieces(&long, &["Ġlamp"]).1.concat(), lamp);
        // A text of its own has none.
        assert_eq!(pieces(&[], &["Ġlamp", "Ġlamp"]).1.concat(), "lamp lamp");
        // Neither has one behind a bracket.
        assert_eq!(pieces(&["["], &["Ġlamp", "]"]).1.concat(), "lamp]");
    }

    #[test]
    fn what_the_prompt_has_is_not_repeated() {
        assert_eq!(pieces(&["Ġa", "Ċ"], &["Ġlamp"]), ("a\n".into(), vec!["lamp".into(), String::new()]));
        assert_eq!(pieces(&["Ġa", "Ġ"], &["Ġlamp"]), ("a ".into(), vec![" lamp".into(), String::new()]));
        assert_eq!(pieces(&["Ġa", "Ċ"], &[]), ("a\n".into(), vec![String::new()]));
        assert_eq!(pieces(&["Ġa", "Ċ"], &["Ċ"]), ("a\n".into(), vec![String::new(), "\n".into()]));
        // U+00E9 has the bytes C3 A9, which the vocabulary spells so.
        assert_eq!(pieces(&["Ġa", "Ã"], &["©"]), ("a\u{fffd}".into(), vec!["é".into(), String::new()]));
    }
}
