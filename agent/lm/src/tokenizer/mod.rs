//! Byte-level BPE tokenizers: text to token ids and back.
//!
//! A [`BpeTokenizer`] is a Hugging Face `tokenizer.json`, trained here or loaded; a [`TextStream`] turns
//! ids into text while they are still being sampled.
//!
//! Design of trained tokenizers: **a word is the same token everywhere**, because a tiny model learns to copy
//! words by copying tokens. A byte-level token for a word carries the space before it (`" black"`),
//! which `click[black]` does not have. So text is lower-cased, and a space is put before every letter or
//! digit that begins the text, follows a special token, one of `[ ( $` or a line break, or follows one of
//! `/ - & >` not itself preceded by a space. Decoding takes these spaces away again:
//!
//! ```text
//! "click[black/red]"        ·click [ ·black / ·red ]            · is the space that a token carries
//! "<think>Black, a t-shirt" <think> ·black , ·a ·t - ·shirt
//! "$34 (black)"             $ ·3 4 ·( ·black )
//! ```
//!
//! Digits are tokens of their own, and so is every mark of punctuation; both take the space before them.
//!
//! What is lost: capitals, and a space where decoding drops one although it was written (`"( black"`,
//! `"x- y"`, at the start of the text or of a line). Ids survive: `encode(decode(ids)) == ids` for ids
//! that came from `encode`. Pieces may be encoded one by one and joined where a piece begins with a
//! space, or where a space would be inserted anyway: begin each piece of a prompt with a space or a special token, and
//! never split a word.
//!
//! Not for vocabularies other than byte-level BPE: SentencePiece files are refused.

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
use crate::tokenizer::spaces::{give_spaces, take_spaces};
pub use crate::tokenizer::stream::TextStream;

/// Pads, and separates documents.
pub const END_OF_TEXT: &str = "<|endoftext|>";

/// The special tokens that every trained tokenizer has, in id order from 0: the Qwen family's own.
const SPECIAL_TOKENS: [&str; 5] = [END_OF_TEXT, "<|im_start|>", "<|im_end|>", "<think>", "</think>"];

/// The 256 byte tokens that let any text be written.
const N_BYTES: usize = 256;

/// A pair of tokens seen less often is not worth a token.
const MIN_PAIR_COUNT: u64 = 2;

/// One piece a match: a contraction, a word, a digit, a mark, each with the space before it; other space.
const PIECES: &str = concat!(
    r"['’](?:s|t|re|ve|m|ll|d)(?![\p{L}\p{M}\p{N}])",
    r"| ?[\p{L}\p{M}]+| ?\p{N}| ?[^\s\p{L}\p{M}\p{N}]|\s"
);

/// The same with runs of marks as one piece: JSON and HTML are full of them.
const QUOTED_PIECES: &str = concat!(
    r"['’](?:s|t|re|ve|m|ll|d)(?![\p{L}\p{M}\p{N}])",
    r"| ?[\p{L}\p{M}]+| ?\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s"
);

const TOKENIZER_FILE: &str = "tokenizer.json";
const CONFIG_FILE: &str = "tokenizer_config.json";

/// ChatML: each message between the turn marks, nothing else.
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
    /// As in `tokenizer.json`.
    trusted: Tokenizer,
    /// The same without added tokens, so that text cannot become a special token.
    untrusted: Tokenizer,
    /// Ascending.
    special_ids: Vec<u32>,
    /// One more than the highest id; a vocabulary may leave ids out.
    n_ids: usize,
}

impl BpeTokenizer {
    /// Learns a vocabulary of `vocab_size` tokens from `texts`: `SPECIAL_TOKENS` first, then `special` in
    /// the given order, the 256 bytes, and merged pieces, the most frequent pair first, ties by the lower
    /// ids. Small texts may give fewer tokens.
    ///
    /// Only the multiset of `texts` matters, not their order nor the number of threads. Text that looks
    /// like a special token is learned from as plain text.
    ///
    /// Fails if `vocab_size` has no room for the special and byte tokens, or a special token does not look
    /// like `<this>`.
    pub fn train<'t>(
        texts: impl IntoIterator<Item = &'t str>,
        vocab_size: usize,
        special: &[&str],
    ) -> Result<Self, LmError> {
        Self::train_in(texts, vocab_size, special, false)
    }

    /// The same for chats in quoted forms, JSON and HTML: a word behind a quote is the word behind a space too, and runs of
    /// marks may be one token. What is lost besides is a space behind a quote that no backslash stands before.
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
        // The crate counts words on all threads and in hash order, and still the result is unique: counts
        // are sums, and the next merge is the greatest of (count, lowest ids). A string is never reached
        // by two different pairs, which alone could leave two queue entries of equal rank.
        tokenizer.train(&mut TrainerWrapper::BpeTrainer(trainer), texts.into_iter()).map_err(failed)?;
        Self::new(tokenizer)
    }

    /// Reads the text of a `tokenizer.json`.
    pub fn from_json(json: &str) -> Result<Self, LmError> {
        Self::new(json.parse().map_err(failed)?)
    }

    /// The text of `tokenizer.json`, the same for the same tokenizer.
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

    /// Ids of trusted text: special tokens spelled out in it become their ids. Nothing is added at either end.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, LmError> {
        encode(&self.trusted, text)
    }

    /// Ids of untrusted text: never a special token, even if the text spells one.
    pub fn encode_text(&self, text: &str) -> Result<Vec<u32>, LmError> {
        encode(&self.untrusted, text)
    }

    /// The text of `ids`, special tokens spelled out.
    ///
    /// Any ids have a text: an unfinished character becomes U+FFFD, an id outside the vocabulary nothing.
    /// Text of parts need not join to the text of the whole; see [`TextStream`].
    pub fn decode(&self, ids: &[u32]) -> String {
        self.trusted.decode(ids, false).expect("joining bytes and dropping spaces cannot fail")
    }

    /// The number of bytes of the decoded text that belong to each token. A character of several tokens belongs to the last
    /// one.
    pub fn bytes_of_each(&self, ids: &[u32]) -> Vec<usize> {
        let certain = |at: usize| {
            let text = self.decode(&ids[..at]);
            if at == ids.len() {
                text.len()
            } else {
                text.trim_end_matches(char::REPLACEMENT_CHARACTER).len()
            }
        };
        let ends: Vec<usize> = (0..=ids.len()).map(certain).collect();
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

    /// One more than the highest id.
    pub fn vocab_size(&self) -> usize {
        self.n_ids
    }

    fn new(mut trusted: Tokenizer) -> Result<Self, LmError> {
        check_byte_level(&trusted)?;
        // A post-processor of the file would add tokens to prompts.
        trusted.with_post_processor(None::<tokenizers::PostProcessorWrapper>);
        let mut special_ids: Vec<u32> = trusted.get_added_tokens_decoder().keys().copied().collect();
        special_ids.sort_unstable();
        let mut untrusted = Tokenizer::new(trusted.get_model().clone());
        untrusted.with_normalizer(trusted.get_normalizer().cloned()).map_err(failed)?;
        untrusted.with_pre_tokenizer(trusted.get_pre_tokenizer().cloned());
        let n_ids = trusted.get_vocab(true).into_values().max().map_or(0, |highest| highest as usize + 1);
        Ok(Self { trusted, untrusted, special_ids, n_ids })
    }
}

fn special_tokens(special: &[&str]) -> Result<Vec<AddedToken>, LmError> {
    let all = SPECIAL_TOKENS.iter().chain(special);
    all.map(|token| {
        // Marks and letters are pieces of their own, so no merge of learned text can spell such a token.
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
    let decoder: Vec<DecoderWrapper> = vec![bytes.into(), take_spaces(is_quoted)?.into()];
    let mut tokenizer = Tokenizer::new(ModelWrapper::BPE(BPE::default()));
    tokenizer.with_normalizer(Some(NormalizerSequence::new(give_spaces(is_quoted)?)))?;
    tokenizer.with_pre_tokenizer(Some(PreTokenizerSequence::new(pre_tokenizer)));
    tokenizer.with_decoder(Some(DecoderSequence::new(decoder)));
    Ok(tokenizer)
}

/// Decoding must be joining bytes, perhaps with something replaced: other decoders look at one token at a
/// time, may fail, and spell a space otherwise.
fn check_byte_level(tokenizer: &Tokenizer) -> Result<(), LmError> {
    let is_known = |decoder: &DecoderWrapper| {
        matches!(decoder, DecoderWrapper::ByteLevel(_) | DecoderWrapper::Replace(_))
    };
    let is_byte_level = match tokenizer.get_decoder() {
        Some(DecoderWrapper::Sequence(sequence)) => sequence.get_decoders().iter().all(is_known),
        Some(decoder) => is_known(decoder),
        None => false,
    };
    if is_byte_level && matches!(tokenizer.get_model(), ModelWrapper::BPE(_)) {
        return Ok(());
    }
    Err(LmError::Tokenizer("only byte-level BPE is supported, as in the Qwen family".into()))
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>, LmError> {
    Ok(tokenizer.encode_fast(text, false).map_err(failed)?.get_ids().to_vec())
}

fn failed(error: tokenizers::Error) -> LmError {
    LmError::Tokenizer(error.to_string())
}
