//! The bytes of single tokens.
//!
//! A byte-level vocabulary spells every byte as a printable character: a byte that is a printable character of
//! Latin-1 as that character, the others, in ascending order, as the characters from U+0100 on.

use crate::tokenizer::BpeTokenizer;

impl BpeTokenizer {
    /// The bytes that the token stands for, as in the vocabulary: with the space before a word, and perhaps part
    /// of a character only. Special tokens are spelled out; an id outside the vocabulary has no bytes.
    ///
    /// ```
    /// use webshop_lm::BpeTokenizer;
    /// let tokenizer = BpeTokenizer::train(["a lamp", "the lamp"], 300, &[])?;
    /// let lamp = tokenizer.id("Ġlamp").expect("frequent enough to be a token");
    /// assert_eq!(tokenizer.bytes_of(lamp), b" lamp");
    /// assert_eq!(tokenizer.bytes_of(tokenizer.special_id("<|im_end|>")?), b"<|im_end|>");
    /// # Ok::<(), webshop_lm::LmError>(())
    /// ```
    pub fn bytes_of(&self, id: u32) -> Vec<u8> {
        let Some(spelled) = self.token(id) else { return Vec::new() };
        let bytes = if self.is_special(id) { None } else { spelled.chars().map(byte_of).collect() };
        bytes.unwrap_or_else(|| spelled.into_bytes())
    }
}

/// The byte that a character of the vocabulary stands for; `None` for a character that stands for none.
fn byte_of(character: char) -> Option<u8> {
    let code = u32::from(character);
    let byte = match code {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => code,
        // The other bytes: 0 to 32, 127 to 160, and 173.
        0x100..=0x120 => code - 0x100,
        0x121..=0x142 => code - 0x121 + 127,
        0x143 => 173,
        _ => return None,
    };
    u8::try_from(byte).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_one_character() {
        let mut bytes: Vec<u8> = (0..0x200).filter_map(|code| byte_of(char::from_u32(code)?)).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn the_bytes_of_tokens_are_those_of_the_text() {
        let tokenizer = BpeTokenizer::train_like_qwen(["a black lamp", "the black lamp"], 300).unwrap();
        let text = "a black \u{ad}\u{7f} lamp\n 漢 👟\0<|im_end|>";
        let ids = tokenizer.encode(text).unwrap();
        let bytes: Vec<u8> = ids.iter().flat_map(|id| tokenizer.bytes_of(*id)).collect();
        assert_eq!(String::from_utf8(bytes).unwrap(), text);
        assert_eq!(tokenizer.bytes_of(1_000_000), b"");
    }
}
