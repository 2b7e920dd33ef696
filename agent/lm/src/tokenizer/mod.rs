//! Byte-level BPE tokenizers: text to token ids and back.
//!
//! A [`BpeTokenizer`] is a Hugging Face `tokenizer.json`, loaded or trained here. A [`TextStream`] decodes
//! ids while they are sampled.
//!
//! **Trained tokenizers encode a word as the same token in every context**, because a tiny model learns to
//! copy words by copying tokens. A byte-level token includes the space before its word (`" black"`), and the
//! word in `click[black]` has no such space. The normalizer therefore lower-cases the text and inserts a
//! space before every letter or digit at the start of the text, after a special token, after one of `[ ( $`
//! or a line break, and after one of `/ - & >` that has no space before it. The decoder removes these spaces:
//!
//! ```text
//! "click[black/red]"        ·click [ ·black / ·red ]            · is the space included in a token
//! "<think>Black, a t-shirt" <think> ·black , ·a ·t - ·shirt
//! "$34 (black)"             $ ·3 4 ·( ·black )
//! ```
//!
//! Each digit and each punctuation character is a token, which includes the space before it.
//!
//! **Not reversible**: upper case, and spaces in the input at the places where the decoder removes them (`"(
//! black"`, `"x- y"`, the start of the text or of a line). For ids returned by `encode`, `encode(decode(ids))
//! == ids`. The ids of two texts, concatenated, are the ids of the concatenated text if the second text
//! begins with a space, with a special token, or where the normalizer inserts a space. A word must not be
//! split.
//!
//! Only byte-level BPE is supported; SentencePiece files are refused.

mod bytes;
mod qwen;
mod spaces;
mod stream;
#[cfg(test)]
mod tests;

use std::path::Path;

use tokenizers::decoders::DecoderWrapper;
use tokenizers::decoders::sequence::Sequence as DecoderSequence;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::models::{ModelWrapper, TrainerWrapper};
use tokenizers::normalizers::Sequence as NormalizerSequence;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence as PreTokenizerSequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, PreTokenizerWrapper, SplitDelimiterBehavior, Tokenizer};

use crate::error::LmError;
use crate::tokenizer::spaces::{insert_spaces, remove_spaces};
pub use crate::tokenizer::stream::TextStream;

/// The padding token; Qwen2 also uses it between documents.
pub const END_OF_TEXT: &str = "<|endoftext|>";

/// The special tokens of every trained tokenizer, in id order from 0, with the names of the Qwen family.
const SPECIAL_TOKENS: [&str; 5] = [END_OF_TEXT, "<|im_start|>", "<|im_end|>", "<think>", "</think>"];

/// Number of byte tokens; with them any text can be encoded.
const N_BYTES: usize = 256;

/// Minimum count of a pair of tokens for a merge.
const MIN_PAIR_COUNT: u64 = 2;

/// Pre-tokenizer: a match is a contraction, a word, a digit or a punctuation character, each with the space
/// before it, or other white space.
const PIECES: &str = concat!(
    r"['’](?:s|t|re|ve|m|ll|d)(?![\p{L}\p{M}\p{N}])",
    r"| ?[\p{L}\p{M}]+| ?\p{N}| ?[^\s\p{L}\p{M}\p{N}]|\s"
);

/// As [`PIECES`], with runs of punctuation as one match, which are frequent in JSON and HTML.
const QUOTED_PIECES: &str = concat!(
    r"['’](?:s|t|re|ve|m|ll|d)(?![\p{L}\p{M}\p{N}])",
    r"| ?[\p{L}\p{M}]+| ?\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s"
);

const TOKENIZER_FILE: &str = "tokenizer.json";
const CONFIG_FILE: &str = "tokenizer_config.json";

/// ChatML without tools.
const CHAT_TEMPLATE: &str = "{% for message in messages %}\
    {{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}\
    {% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/// A byte-level BPE tokenizer with its special tokens.
///
/// ```
/// use webshop_lm::BpeTokenizer;
///
/// let texts = ["men's black t-shirt, size 3x-large", "a black shirt in black"];
/// let tokenizer = BpeTokenizer::train(texts, 300, &[])?;
/// let ids = tokenizer.encode("click[black]<|im_end|>")?;
/// assert_eq!(tokenizer.decode(&ids), "click[black]<|im_end|>");
/// // The word has the same token in both texts.
/// let black = tokenizer.id("Ġblack").expect("frequent enough to be a token");
/// assert!(ids.contains(&black));
/// assert!(tokenizer.encode("Black, or black?")?.starts_with(&[black]));
/// # Ok::<(), webshop_lm::LmError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BpeTokenizer {
    /// The tokenizer of `tokenizer.json`.
    trusted: Tokenizer,
    /// The same without added tokens: encoding never returns a special token.
    untrusted: Tokenizer,
    /// Ascending.
    special_ids: Vec<u32>,
    /// The special tokens as text, none empty, in the order of their ids.
    special_texts: Vec<String>,
    /// One more than the highest id; a vocabulary may have gaps.
    n_ids: usize,
}

impl BpeTokenizer {
    /// Trains a vocabulary of at most `vocab_size` tokens on `texts`. Ids in order: `SPECIAL_TOKENS`,
    /// `special` in the given order, the 256 bytes, and merges by descending count of the pair, ties by the
    /// lower ids.
    ///
    /// The result depends on the multiset of `texts` only, not on their order or the number of threads.
    /// Special tokens spelled out in `texts` are treated as text.
    ///
    /// Fails if `vocab_size` is less than the number of special and byte tokens, or if a special token is not
    /// of the form `<this>`.
    pub fn train<'t>(
        texts: impl IntoIterator<Item = &'t str>,
        vocab_size: usize,
        special: &[&str],
    ) -> Result<Self, LmError> {
        Self::train_in(texts, vocab_size, special, false)
    }

    /// As [`train`](Self::train) without further special tokens, for chats that contain JSON or HTML: a space
    /// is also inserted after a quotation mark without a backslash, and runs of punctuation can be one token.
    /// A space in the input after such a quotation mark is not restored by decoding either.
    ///
    /// ```
    /// use webshop_lm::BpeTokenizer;
    /// let tokenizer = BpeTokenizer::train_quoted(["a red lamp", "red", "red"], 300)?;
    /// let text = r#"{"type":"click","name":"12\" red"}<|im_end|>"#;
    /// let ids = tokenizer.encode(text)?;
    /// assert_eq!(tokenizer.decode(&ids), text);
    /// let red = tokenizer.id("Ġred").expect("frequent enough to be a token");
    /// assert!(tokenizer.encode(r#""red""#)?.contains(&red) && ids.contains(&red));
    /// # Ok::<(), webshop_lm::LmError>(())
    /// ```
    pub fn train_quoted<'t>(
        texts: impl IntoIterator<Item = &'t str>,
        vocab_size: usize,
    ) -> Result<Self, LmError> {
        Self::train_in(texts, vocab_size, &[], true)
    }

    fn train_in<'t>(
        texts: impl IntoIterator<Item = &'t str>,
        vocab_size: usize,
        special: &[&str],
        is_quoted: bool,
    ) -> Result<Self, LmError> {
        let specials = special_tokens(special)?;
        let needed = specials.len() + N_BYTES;
        if vocab_size < needed {
            return Err(LmError::Tokenizer(format!(
                "a vocabulary of `{vocab_size}` tokens has no room for the {needed} special and byte tokens"
            )));
        }
        let trainer = BpeTrainer::builder()
            .vocab_size(vocab_size)
            .min_frequency(MIN_PAIR_COUNT)
            .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
            .special_tokens(specials)
            .show_progress(false)
            .build();
        let texts: Vec<&str> = texts.into_iter().collect();
        let mut tokenizer = untrained(is_quoted).map_err(failed)?;
        // The crate counts words on all threads and in hash order. The result is still unique: counts are
        // sums, and the next merge is the maximum by (count, lowest ids). Two queue entries of equal rank
        // would need two different pairs that merge to the same string, which does not occur.
        tokenizer.train(&mut TrainerWrapper::BpeTrainer(trainer), texts.into_iter()).map_err(failed)?;
        Self::new(tokenizer)
    }

    /// Reads the text of a `tokenizer.json`.
    pub fn from_json(json: &str) -> Result<Self, LmError> {
        Self::new(json.parse().map_err(failed)?)
    }

    /// The text of `tokenizer.json`; equal tokenizers give equal texts.
    pub fn to_json(&self) -> String {
        self.trusted.to_string(true).expect("a tokenizer without custom parts can be written as JSON")
    }

    /// Reads `tokenizer.json` in the model folder `dir`.
    pub fn load(dir: &Path) -> Result<Self, LmError> {
        let path = dir.join(TOKENIZER_FILE);
        let json =
            std::fs::read_to_string(&path).map_err(|source| LmError::Read { path: path.clone(), source })?;
        Self::from_json(&json).map_err(|error| LmError::Invalid { path, reason: error.to_string() })
    }

    /// Writes `tokenizer.json` and `tokenizer_config.json` into the existing folder `dir`, as Hugging
    /// Face's `AutoTokenizer` expects them.
    pub fn save(&self, dir: &Path) -> Result<(), LmError> {
        let config = serde_json::json!({
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": null,
            "eos_token": "<|im_end|>",
            "pad_token": END_OF_TEXT,
            "unk_token": null,
            "clean_up_tokenization_spaces": false,
            "chat_template": CHAT_TEMPLATE,
        });
        for (file, text) in [(TOKENIZER_FILE, self.to_json()), (CONFIG_FILE, format!("{config:#}\n"))] {
            let path = dir.join(file);
            std::fs::write(&path, text).map_err(|source| LmError::Write { path, source })?;
        }
        Ok(())
    }

    /// The ids of trusted text: special tokens spelled out in `text` become their ids. No ids are added at
    /// the start or the end.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, LmError> {
        encode(&self.trusted, text)
    }

    /// The ids of untrusted text: special tokens spelled out in `text` are encoded as text.
    pub fn encode_text(&self, text: &str) -> Result<Vec<u32>, LmError> {
        encode(&self.untrusted, text)
    }

    /// The text of `ids`, with special tokens spelled out.
    ///
    /// An incomplete character becomes U+FFFD; an id outside the vocabulary is skipped. The texts of two
    /// parts, concatenated, can differ from the text of the whole; see [`TextStream`].
    pub fn decode(&self, ids: &[u32]) -> String {
        self.trusted.decode(ids, false).expect("joining bytes and dropping spaces cannot fail")
    }

    /// The number of bytes of the decoded text that belong to each of `ids`; the sum is the length of the
    /// decoded text. A character made of several tokens belongs to the last of them.
    pub fn bytes_of_each(&self, ids: &[u32]) -> Vec<usize> {
        let finished = |at: usize| {
            let text = self.decode(&ids[..at]);
            if at == ids.len() {
                text.len()
            } else {
                text.trim_end_matches(char::REPLACEMENT_CHARACTER).len()
            }
        };
        let ends: Vec<usize> = (0..=ids.len()).map(finished).collect();
        ends.windows(2).map(|ends| ends[1].saturating_sub(ends[0])).collect()
    }

    /// The token as the vocabulary spells it, a space as `Ġ` and a line break as `Ċ`.
    pub fn token(&self, id: u32) -> Option<String> {
        self.trusted.id_to_token(id)
    }

    /// The id of a token as the vocabulary spells it.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.trusted.token_to_id(token)
    }

    /// The id of a special token, or an error that names it.
    pub fn special_id(&self, token: &str) -> Result<u32, LmError> {
        self.id(token)
            .filter(|id| self.is_special(*id))
            .ok_or_else(|| LmError::Tokenizer(format!("no special token `{token}` in the vocabulary")))
    }

    /// Whether `id` is a special token.
    pub fn is_special(&self, id: u32) -> bool {
        self.special_ids.binary_search(&id).is_ok()
    }

    /// Ids of all special tokens, ascending.
    pub fn special_ids(&self) -> &[u32] {
        &self.special_ids
    }

    /// Whether `text` spells out a special token.
    pub fn spells_special(&self, text: &str) -> bool {
        self.special_texts.iter().any(|special| text.contains(special.as_str()))
    }

    /// One more than the highest id.
    pub fn vocab_size(&self) -> usize {
        self.n_ids
    }

    fn new(mut trusted: Tokenizer) -> Result<Self, LmError> {
        check_byte_level(&trusted)?;
        // These settings of the file would add tokens to prompts, or cut them.
        trusted.with_post_processor(None::<tokenizers::PostProcessorWrapper>);
        trusted.with_padding(None);
        trusted.with_truncation(None).map_err(failed)?;
        let mut special_ids: Vec<u32> = trusted.get_added_tokens_decoder().keys().copied().collect();
        special_ids.sort_unstable();
        let specials = special_ids.iter().filter_map(|id| trusted.id_to_token(*id));
        let special_texts = specials.filter(|special| !special.is_empty()).collect();
        let mut untrusted = Tokenizer::new(trusted.get_model().clone());
        untrusted.with_normalizer(trusted.get_normalizer().cloned()).map_err(failed)?;
        untrusted.with_pre_tokenizer(trusted.get_pre_tokenizer().cloned());
        let n_ids = trusted.get_vocab(true).into_values().max().map_or(0, |highest| highest as usize + 1);
        Ok(Self { trusted, untrusted, special_ids, special_texts, n_ids })
    }
}

fn special_tokens(special: &[&str]) -> Result<Vec<AddedToken>, LmError> {
    let all = SPECIAL_TOKENS.iter().chain(special);
    all.map(|token| {
        // Punctuation and letters never share a pre-token, so no merge can spell such a token.
        let looks_special = token.len() >= 3 && token.starts_with('<') && token.ends_with('>');
        if !looks_special || token.contains(char::is_whitespace) {
            return Err(LmError::Tokenizer(format!("special token `{token}` must look like `<this>`")));
        }
        Ok(AddedToken::from(*token, true))
    })
    .collect()
}

fn untrained(is_quoted: bool) -> tokenizers::Result<Tokenizer> {
    let pieces = if is_quoted { QUOTED_PIECES } else { PIECES };
    let split = Split::new(SplitPattern::Regex(pieces.into()), SplitDelimiterBehavior::Isolated, false)?;
    let bytes = ByteLevel::new(false, false, false);
    let pre_tokenizer: Vec<PreTokenizerWrapper> = vec![split.into(), bytes.into()];
    let decoder: Vec<DecoderWrapper> = vec![bytes.into(), remove_spaces(is_quoted)?.into()];
    let mut tokenizer = Tokenizer::new(ModelWrapper::BPE(BPE::default()));
    tokenizer.with_normalizer(Some(NormalizerSequence::new(insert_spaces(is_quoted)?)))?;
    tokenizer.with_pre_tokenizer(Some(PreTokenizerSequence::new(pre_tokenizer)));
    tokenizer.with_decoder(Some(DecoderSequence::new(decoder)));
    Ok(tokenizer)
}

/// Fails unless the model is BPE without dropout, which makes encoding random, and the decoder only joins bytes and
/// replaces text. Other decoders work token by token, can fail, and represent spaces differently.
fn check_byte_level(tokenizer: &Tokenizer) -> Result<(), LmError> {
    let is_known = |decoder: &DecoderWrapper| {
        matches!(decoder, DecoderWrapper::ByteLevel(_) | DecoderWrapper::Replace(_))
    };
    let is_byte_level = match tokenizer.get_decoder() {
        Some(DecoderWrapper::Sequence(sequence)) => sequence.get_decoders().iter().all(is_known),
        Some(decoder) => is_known(decoder),
        None => false,
    };
    match tokenizer.get_model() {
        ModelWrapper::BPE(model) if is_byte_level => match model.dropout {
            None | Some(0.0) => Ok(()),
            Some(dropout) => Err(LmError::Tokenizer(format!(
                "the dropout of {dropout} would encode a text in another way each time; set `model.dropout` to null"
            ))),
        },
        _ => Err(LmError::Tokenizer("only byte-level BPE is supported, as in the Qwen family".into())),
    }
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>, LmError> {
    Ok(tokenizer.encode_fast(text, false).map_err(failed)?.get_ids().to_vec())
}

fn failed(error: tokenizers::Error) -> LmError {
    LmError::Tokenizer(error.to_string())
}
