//! Training of a tokenizer in Qwen2's layout, for models of published shapes with random weights.
//!
//! Normalization (NFC) and pre-tokenization are Qwen2's: single digits, words with the space before them.
//! Decoding restores the NFC text. Special tokens have the highest ids. Unlike with [`BpeTokenizer::train`],
//! a word at the start of a text and the same word after a space are different tokens.

use std::path::Path;

use serde_json::{Map, json};
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::models::{ModelWrapper, TrainerWrapper};
use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, PreTokenizerWrapper, SplitDelimiterBehavior, Tokenizer};

use crate::checkpoint::{save_generation_config, write_atomically};
use crate::error::LmError;
use crate::qwen2::Qwen2Config;
use crate::tokenizer::{BpeTokenizer, CONFIG_FILE, END_OF_TEXT, MIN_PAIR_COUNT, TOKENIZER_FILE, failed};

/// Qwen2's pre-tokenizer: a match is a contraction, letters with at most one punctuation character or space
/// before them, a digit, punctuation, or white space.
const PIECES: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// The token at the start of a message.
const START: &str = "<|im_start|>";

/// The token at the end of a message.
const END: &str = "<|im_end|>";

/// ChatML with tools as JSON between tags.
const CHAT_TEMPLATE: &str = include_str!("qwen.jinja");

impl BpeTokenizer {
    /// Trains at most `n_learned` tokens on `texts`, including the 256 bytes, and adds `<|endoftext|>`,
    /// `<|im_start|>` and `<|im_end|>` with the next ids. The result depends on the multiset of `texts` only.
    pub fn train_like_qwen<'t>(
        texts: impl IntoIterator<Item = &'t str>,
        n_learned: usize,
    ) -> Result<Self, LmError> {
        let trainer = BpeTrainer::builder()
            .vocab_size(n_learned)
            .min_frequency(MIN_PAIR_COUNT)
            .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
            .show_progress(false)
            .build();
        let texts: Vec<&str> = texts.into_iter().collect();
        let mut tokenizer = untrained().map_err(failed)?;
        tokenizer.train(&mut TrainerWrapper::BpeTrainer(trainer), texts.into_iter()).map_err(failed)?;
        let special = [END_OF_TEXT, START, END].map(|token| AddedToken::from(token, true));
        tokenizer.add_special_tokens(special).map_err(failed)?;
        Self::new(tokenizer)
    }

    /// Writes `tokenizer.json`, `tokenizer_config.json` with a ChatML template, and `generation_config.json`
    /// with the stop tokens into an existing model folder. Returns `config` with `bos_token_id` and
    /// `eos_token_id`. Fails if the tokenizer lacks `<|im_end|>` or `<|endoftext|>`.
    pub fn save_like_qwen(&self, folder: &Path, config: &Qwen2Config) -> Result<Qwen2Config, LmError> {
        let described = json!({
            "tokenizer_class": "Qwen2Tokenizer",
            "add_prefix_space": false,
            "bos_token": null,
            "eos_token": END,
            "pad_token": END_OF_TEXT,
            "unk_token": null,
            "errors": "replace",
            "model_max_length": config.max_position_embeddings,
            "clean_up_tokenization_spaces": false,
            "split_special_tokens": false,
            "chat_template": CHAT_TEMPLATE,
        });
        write_atomically(&folder.join(TOKENIZER_FILE), self.to_json().as_bytes())?;
        write_atomically(&folder.join(CONFIG_FILE), format!("{described:#}\n").as_bytes())?;
        let (end, end_of_text) = (self.special_id(END)?, self.special_id(END_OF_TEXT)?);
        let generation = [
            ("bos_token_id", json!(end_of_text)),
            ("eos_token_id", json!([end, end_of_text])),
            ("pad_token_id", json!(end_of_text)),
        ];
        let generation = generation.map(|(field, value)| (field.to_owned(), value));
        save_generation_config(folder, &Map::from_iter(generation))?;
        let mut config = config.clone();
        config.other.insert("bos_token_id".to_owned(), end_of_text.into());
        config.other.insert("eos_token_id".to_owned(), end.into());
        Ok(config)
    }
}

fn untrained() -> tokenizers::Result<Tokenizer> {
    let split = Split::new(SplitPattern::Regex(PIECES.into()), SplitDelimiterBehavior::Isolated, false)?;
    let bytes = ByteLevel::new(false, false, false);
    let pre_tokenizer: Vec<PreTokenizerWrapper> = vec![split.into(), bytes.into()];
    let mut tokenizer = Tokenizer::new(ModelWrapper::BPE(BPE::default()));
    tokenizer.with_normalizer(Some(NFC))?;
    tokenizer.with_pre_tokenizer(Some(Sequence::new(pre_tokenizer)));
    tokenizer.with_decoder(Some(bytes));
    Ok(tokenizer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{ChatTemplate, TemplateInput};
    use crate::checkpoint::StopTokens;

    fn tokenizer() -> BpeTokenizer {
        BpeTokenizer::train_like_qwen(["a black lamp", "the black lamp costs $30"], 300).unwrap()
    }

    #[test]
    fn decoding_restores_the_text_and_special_tokens_have_the_highest_ids() {
        let tokenizer = tokenizer();
        for text in ["Black LAMP,  x\n\n 12", "crème 您好 👍", "<|im_start|>user\nhi<|im_end|>"] {
            assert_eq!(tokenizer.decode(&tokenizer.encode(text).unwrap()), text);
        }
        let n_ids = tokenizer.vocab_size() as u32;
        assert_eq!(tokenizer.special_ids(), [n_ids - 3, n_ids - 2, n_ids - 1]);
        assert_eq!(tokenizer.encode("12").unwrap().len(), 2);
        assert!(tokenizer.id("Ġblack").is_some());
    }

    #[test]
    fn the_files_of_a_saved_tokenizer_are_consistent() {
        let (tokenizer, folder) = (tokenizer(), tempfile::tempdir().unwrap());
        let shape = Qwen2Config::small(tokenizer.vocab_size());
        let config = tokenizer.save_like_qwen(folder.path(), &shape).unwrap();
        let loaded = BpeTokenizer::load(folder.path()).unwrap();
        assert_eq!(loaded.to_json(), tokenizer.to_json());
        let stop = StopTokens::load(folder.path(), &config, &loaded).unwrap();
        assert_eq!(stop.ids(), [tokenizer.id(END_OF_TEXT).unwrap(), tokenizer.id(END).unwrap()]);
        let call = json!({"function": {"name": "search", "arguments": {"query": "a \"lamp\""}}});
        let messages = vec![
            json!({"role": "system", "content": "Be brief."}),
            json!({"role": "user", "content": "hi"}),
            json!({"role": "assistant", "content": "", "tool_calls": [call]}),
            json!({"role": "tool", "content": "[Back]"}),
        ];
        let tools = Some(vec![json!({"type": "function", "function": {"name": "search"}})]);
        let template = ChatTemplate::load(folder.path()).unwrap();
        let input = TemplateInput { messages, tools, add_generation_prompt: true, ..Default::default() };
        let expected = "<|im_start|>system\nBe brief.\n\nFunctions that can be called, a JSON schema each:\n<tools>\n\
            {\"type\": \"function\", \"function\": {\"name\": \"search\"}}\n</tools>\nA call is JSON between tags: \
            <tool_call>{\"name\": …, \"arguments\": {…}}</tool_call><|im_end|>\n<|im_start|>user\nhi<|im_end|>\n\
            <|im_start|>assistant\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"a \\\"lamp\\\"\"}}\n\
            </tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n[Back]\n</tool_response><|im_end|>\n\
            <|im_start|>assistant\n";
        assert_eq!(template.render(&input).unwrap(), expected);
    }
}
