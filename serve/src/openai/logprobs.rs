//! Log-probabilities in the forms of chat and of text completions.
//!
//! A token's text is that of its bytes, with the space before a word; a part of a character is U+FFFD.

use serde_json::{Map, Value, json};
use webshop_lm::BpeTokenizer;

use crate::model::Scored;

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
#[derive(Debug, Default)]
pub(super) struct TextLogprobs {
    /// Characters of the tokens so far.
    offset: usize,
}

impl TextLogprobs {
    /// Those of the next tokens.
    pub(super) fn next(&mut self, tokenizer: &BpeTokenizer, tokens: &[Scored]) -> Value {
        let (mut texts, mut log_probs, mut tops, mut offsets) = (vec![], vec![], vec![], vec![]);
        for token in tokens {
            let text = text_of(tokenizer, token.id);
            offsets.push(self.offset);
            self.offset += text.chars().count();
            tops.push(token.log_prob.map(|log_prob| {
                // The token itself is always among them. Of tokens with one text, the most probable is.
                let all = token.top.iter().copied().chain([(token.id, log_prob)]);
                let mut top = Map::new();
                for (id, log_prob) in all {
                    top.entry(text_of(tokenizer, id)).or_insert_with(|| number(log_prob).into());
                }
                top
            }));
            texts.push(text);
            log_probs.push(token.log_prob.map(number));
        }
        json!({"tokens": texts, "token_logprobs": log_probs, "top_logprobs": tops, "text_offset": offsets})
    }
}
