//! Published model sizes, for models with random weights.

use std::fmt;
use std::str::FromStr;

use serde_json::json;

use crate::error::LmError;
use crate::qwen2::Qwen2Config;

/// A named shape. Those of Qwen2.5 are from "Qwen2.5 Technical Report" (arXiv 2412.15115), table 1, and from
/// the published configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownShape {
    /// [`Qwen2Config::small`], for training from random weights.
    Tiny,
    /// Qwen2.5-0.5B: 494 million parameters.
    HalfBillion,
    /// Qwen2.5-1.5B: 1,544 million parameters.
    OneAndAHalfBillion,
    /// Qwen2.5-3B: 3,086 million parameters.
    ThreeBillion,
}

/// Rows of the embedding of the published models; more than their tokenizer has ids.
const PUBLISHED_VOCABULARY: usize = 151_936;

impl KnownShape {
    /// All shapes in ascending size.
    pub const ALL: [Self; 4] = [Self::Tiny, Self::HalfBillion, Self::OneAndAHalfBillion, Self::ThreeBillion];

    /// The name, in lower case; parsing ignores case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::HalfBillion => "0.5b",
            Self::OneAndAHalfBillion => "1.5b",
            Self::ThreeBillion => "3b",
        }
    }

    /// The configuration. The tiny model has a vocabulary of `n_ids`, the others their published one.
    pub fn config(self, n_ids: usize) -> Qwen2Config {
        let (hidden_size, intermediate_size, num_hidden_layers, num_attention_heads) = match self {
            Self::Tiny => return Qwen2Config::small(n_ids),
            Self::HalfBillion => (896, 4864, 24, 14),
            Self::OneAndAHalfBillion => (1536, 8960, 28, 12),
            Self::ThreeBillion => (2048, 11_008, 36, 16),
        };
        let mut config = Qwen2Config {
            hidden_size,
            intermediate_size,
            num_hidden_layers,
            num_attention_heads,
            num_key_value_heads: Some(2),
            max_position_embeddings: 32_768,
            rope_theta: 1_000_000.0,
            ..Qwen2Config::small(PUBLISHED_VOCABULARY)
        };
        for (field, value) in [
            ("attention_dropout", json!(0.0)),
            ("use_cache", json!(true)),
            ("use_sliding_window", json!(false)),
            ("sliding_window", json!(32_768)),
            ("max_window_layers", json!(num_hidden_layers)),
        ] {
            config.other.insert(field.to_owned(), value);
        }
        config
    }
}

impl fmt::Display for KnownShape {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for KnownShape {
    type Err = LmError;

    fn from_str(name: &str) -> Result<Self, LmError> {
        let known = Self::ALL.into_iter().find(|shape| shape.name().eq_ignore_ascii_case(name));
        let names = Self::ALL.map(Self::name).join(", ");
        known.ok_or_else(|| LmError::Config(format!("unknown shape `{name}`; use one of {names}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Table 1 of the report counts 0.49, 1.54 and 3.09 billion. By hand for the first: an embedding of
    // 151,936 · 896, a last gain of 896, and 24 layers of 2 · 896 gains, (896 + 1) · (896 + 2 · 128) for
    // queries, keys and values, 896 · 896 and 3 · 896 · 4864.
    #[test]
    fn published_shapes_have_the_published_sizes() {
        let size = |shape: KnownShape| shape.config(300).n_parameters();
        let layer = 2 * 896 + 897 * (896 + 256) + 896 * 896 + 3 * 896 * 4864;
        assert_eq!(size(KnownShape::HalfBillion), 151_936 * 896 + 896 + 24 * layer);
        assert_eq!(size(KnownShape::HalfBillion), 494_032_768);
        assert_eq!(size(KnownShape::OneAndAHalfBillion), 1_543_714_304);
        assert_eq!(size(KnownShape::ThreeBillion), 3_085_938_688);
        for shape in KnownShape::ALL {
            shape.config(300).validate().unwrap();
            assert_eq!(shape.name().to_uppercase().parse::<KnownShape>().unwrap(), shape);
        }
        assert!("7b".parse::<KnownShape>().unwrap_err().to_string().contains("tiny, 0.5b, 1.5b, 3b"));
    }
}
