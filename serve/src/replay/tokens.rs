//! The sampled tokens of a turn, with their log-probabilities and, where a tokenizer is known to be theirs, their texts.

use webshop_agent::ModelTurn;
use webshop_lm::BpeTokenizer;

/// The number of shades of a token, by its probability.
const SHADES: u8 = 10;

/// A sampled token.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) id: u32,
    /// Its text, with marks for what cannot be seen; `None` if it is unknown.
    pub(super) text: Option<String>,
    pub(super) log_prob: f32,
    /// From 0, improbable, to [`SHADES`] − 1.
    pub(super) shade: u8,
}

impl Token {
    /// The log-probability as text.
    pub(super) fn figure(&self) -> String {
        formatted(self.log_prob)
    }

    fn new(id: u32, log_prob: f32, text: Option<String>) -> Token {
        // A conversion to an integer saturates, so that no probability is beyond the shades.
        let shade = (log_prob.exp() * f32::from(SHADES)) as u8;
        Token { id, text, log_prob, shade: shade.min(SHADES - 1) }
    }
}

/// A log-probability with three decimals and the minus sign U+2212.
pub(super) fn formatted(log_prob: f32) -> String {
    let text = format!("{log_prob:.3}").replace('-', "−");
    // What rounds to zero has no sign.
    if text == "−0.000" { "0.000".to_owned() } else { text }
}

/// The sampled tokens of a turn; empty if none are recorded. They have texts if `tokenizer` spells the recorded completion
/// with them: a recording does not name its tokenizer, and that of another model would spell other words.
pub(super) fn tokens(turn: &ModelTurn, tokenizer: Option<&BpeTokenizer>) -> Vec<Token> {
    let Some(completion) = turn.tokens.as_ref().map(|tokens| &tokens.completion) else { return Vec::new() };
    let recorded = turn.completion.as_deref().unwrap_or_default();
    let tokenizer = tokenizer.filter(|tokenizer| spells(tokenizer, &completion.ids, recorded));
    let text = |id: u32| tokenizer.map(|tokenizer| visible(&tokenizer.bytes_of(id)));
    let pairs = completion.ids.iter().zip(&completion.log_probs);
    pairs.map(|(id, log_prob)| Token::new(*id, *log_prob, text(*id))).collect()
}

/// The text of the prompt's tokens that are new in a turn; `None` if they are not recorded, or `tokenizer` does not spell the
/// recorded completion.
pub(super) fn prompt(turn: &ModelTurn, tokenizer: Option<&BpeTokenizer>) -> Option<String> {
    let tokens = turn.tokens.as_ref()?;
    let recorded = turn.completion.as_deref().unwrap_or_default();
    let tokenizer = tokenizer.filter(|tokenizer| spells(tokenizer, &tokens.completion.ids, recorded))?;
    Some(tokenizer.decode(&tokens.prompt_ids))
}

/// Whether the tokens are a completion, with or without the token that ended it.
fn spells(tokenizer: &BpeTokenizer, ids: &[u32], completion: &str) -> bool {
    let without_end = &ids[..ids.len().saturating_sub(1)];
    [ids, without_end].iter().any(|ids| tokenizer.decode(ids) == completion)
}

/// Bytes as text: line breaks as `↵`, and as `\x…` bytes that are part of a character only.
fn visible(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text += &chunk.valid().replace('\n', "↵");
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02X}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use webshop_agent::TurnTokens;
    use webshop_lm::{Completion, Context, StopReason};

    #[test]
    fn a_token_is_shaded_by_its_probability() {
        let shade = |log_prob| Token::new(1, log_prob, None).shade;
        assert_eq!((shade(0.0), shade(f32::NEG_INFINITY)), (9, 0));
        // e^-0.7 = 0.497
        assert_eq!(shade(-0.7), 4);
    }

    #[test]
    fn what_rounds_to_zero_has_no_sign() {
        assert_eq!([-0.0004, 0.0, -0.0006].map(formatted), ["0.000", "0.000", "−0.001"]);
        assert_eq!(formatted(f32::NEG_INFINITY), "−inf");
    }

    #[test]
    fn what_cannot_be_seen_has_a_mark() {
        assert_eq!(visible(b" a\n"), " a↵");
        assert_eq!(visible(&"漢".as_bytes()[..2]), "\\xE6\\xBC");
        assert_eq!(visible(b""), "");
    }

    #[test]
    fn texts_are_those_of_the_tokenizer_that_spells_the_completion() {
        let tokenizer = BpeTokenizer::train_like_qwen(["a black lamp", "the lamp"], 300).expect("it trains");
        let mut ids = tokenizer.encode_text("a lamp\n漢").expect("a text");
        ids.push(tokenizer.special_id("<|im_end|>").expect("a special token"));
        let turn = |completion: &str| ModelTurn {
            completion: Some(completion.to_owned()),
            tokens: Some(TurnTokens {
                context: Context::Fresh,
                prompt_ids: vec![],
                completion: Completion {
                    log_probs: vec![-0.5; ids.len()],
                    entropy: vec![0.0; ids.len()],
                    certainty: vec![],
                    ids: ids.clone(),
                    stop: StopReason::EndOfTurn,
                },
            }),
            ..ModelTurn::default()
        };
        let texts = |completion: &str, tokenizer| -> Option<String> {
            tokens(&turn(completion), tokenizer).into_iter().map(|token| token.text).collect()
        };
        let spelled = Some("a lamp↵\\xE6\\xBC\\xA2<|im_end|>".to_owned());
        assert_eq!(texts("a lamp\n漢", Some(&tokenizer)), spelled);
        assert_eq!(texts("a lamp\n漢<|im_end|>", Some(&tokenizer)), spelled);
        assert_eq!(texts("a desk", Some(&tokenizer)), None, "of another tokenizer");
        assert_eq!(texts("a lamp\n漢", None), None);
        assert!(tokens(&ModelTurn::default(), Some(&tokenizer)).is_empty());
    }
}
