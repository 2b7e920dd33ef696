//! Log-probabilities in the forms of chat and of text completions.
//!
//! A token's text is that of its bytes, with the space before a word; a part of a character is U+FFFD.

use serde_json::{Map, Value, json};
use webshop_lm::BpeTokenizer;

use crate::model::{Scored, decoding_context};

/// What stands for minus infinity, which JSON does not have; OpenAI's servers write it too.
const NEVER: f64 = -9999.0;

/// A log-probability in JSON.
fn number(log_prob: f32) -> f64 {
    f64::from(log_prob).max(NEVER)
}

fn text_of(tokenizer: &BpeTokenizer, id: u32) -> String {
    String::from_utf8_lossy(&tokenizer.bytes_of(id)).into_owned()
}

/// The `logprobs` of a chat completion.
pub(super) fn of_chat(tokenizer: &BpeTokenizer, tokens: &[Scored]) -> Value {
    let entry = |id: u32, log_prob: f32| {
        let bytes = tokenizer.bytes_of(id);
        let text = String::from_utf8_lossy(&bytes);
        json!({"token": text, "logprob": number(log_prob), "bytes": bytes})
    };
    let content = tokens.iter().filter_map(|token| {
        let mut shown = entry(token.id, token.log_prob?);
        shown["top_logprobs"] = token.top.iter().map(|&(id, log_prob)| entry(id, log_prob)).collect();
        Some(shown)
    });
    json!({"content": content.collect::<Vec<_>>(), "refusal": null})
}

/// The `logprobs` of text completions, piece after piece.
#[derive(Debug)]
pub(super) struct TextLogprobs {
    /// The tokens before the next one, as many as decide about its text.
    before: Vec<u32>,
    /// Characters of the reply's text so far.
    n_chars: usize,
    /// The place at which the completion begins.
    start: usize,
    /// Characters of the echoed prompt.
    n_echoed: usize,
}

impl TextLogprobs {
    /// Those of a completion behind these tokens, whose text is in the reply if it is an `echo`.
    pub(super) fn new(prompt_ids: &[u32], echo: Option<&str>) -> TextLogprobs {
        let before = if echo.is_some() { Vec::new() } else { decoding_context(prompt_ids).to_vec() };
        TextLogprobs { before, n_chars: 0, start: 0, n_echoed: echo.map_or(0, |echo| echo.chars().count()) }
    }

    /// Those of the next tokens: of the prompt, all at once and before all others, and of the completion.
    pub(super) fn next(&mut self, tokenizer: &BpeTokenizer, prompt: &[Scored], tokens: &[Scored]) -> Value {
        let mut offsets: Vec<usize> = prompt.iter().map(|token| self.place(tokenizer, token.id)).collect();
        if !prompt.is_empty() {
            // The echo is the text of the request, which may differ from that of its tokens.
            (self.n_chars, self.start) = (self.n_echoed, self.n_echoed);
        }
        offsets.extend(tokens.iter().map(|token| self.place(tokenizer, token.id)));
        let (mut texts, mut log_probs, mut tops) = (vec![], vec![], vec![]);
        for token in prompt.iter().chain(tokens) {
            tops.push(token.log_prob.map(|log_prob| {
                // The token itself is always among them. Of tokens with one text, the most probable is.
                let all = token.top.iter().copied().chain([(token.id, log_prob)]);
                let mut top = Map::new();
                for (id, log_prob) in all {
                    top.entry(text_of(tokenizer, id)).or_insert_with(|| number(log_prob).into());
                }
                top
            }));
            texts.push(text_of(tokenizer, token.id));
            log_probs.push(token.log_prob.map(number));
        }
        json!({"tokens": texts, "token_logprobs": log_probs, "top_logprobs": tops, "text_offset": offsets})
    }

    /// The place of the next token in the reply's text, in characters. The tokens of one character have its place, and a
    /// space that the decoder drops has none.
    fn place(&mut self, tokenizer: &BpeTokenizer, id: u32) -> usize {
        let text = tokenizer.decode(&self.before);
        self.before.push(id);
        let longer = tokenizer.decode(&self.before);
        self.before = decoding_context(&self.before).to_vec();
        let (n_text, n_longer) = (text.chars().count(), longer.chars().count());
        let n_common = text.chars().zip(longer.chars()).take_while(|(one, other)| one == other).count();
        let n_common = match n_common == n_longer {
            // It is one more part of a character that is not whole yet.
            true => longer.trim_end_matches(char::REPLACEMENT_CHARACTER).chars().count(),
            false => n_common,
        };
        let place = (self.n_chars + n_common).saturating_sub(n_text).max(self.start);
        self.n_chars = place + n_longer - n_common;
        place
    }
}
