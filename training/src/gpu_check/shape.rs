//! The models that are measured: the sizes of published Qwen2.5 checkpoints, and a tiny one.

use std::fmt;
use std::str::FromStr;

use webshop_agent::Qwen2Config;

/// A model by its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredShape {
    /// Hidden 128, 3 layers: for a run without a GPU.
    Tiny,
    /// Qwen2.5-0.5B.
    HalfB,
    /// Qwen2.5-1.5B.
    OneAndAHalfB,
    /// Qwen2.5-3B.
    ThreeB,
}

impl MeasuredShape {
    /// The smallest first.
    pub const ALL: [Self; 4] = [Self::Tiny, Self::HalfB, Self::OneAndAHalfB, Self::ThreeB];

    /// As it is written on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::HalfB => "0.5B",
            Self::OneAndAHalfB => "1.5B",
            Self::ThreeB => "3B",
        }
    }

    /// The configuration, as the checkpoint's `config.json` has it.
    pub fn config(self) -> Qwen2Config {
        let published = |hidden, inner, layers, heads| Qwen2Config {
            hidden_size: hidden,
            intermediate_size: inner,
            num_hidden_layers: layers,
            num_attention_heads: heads,
            num_key_value_heads: Some(2),
            max_position_embeddings: 32_768,
            rope_theta: 1e6,
            ..Qwen2Config::small(151_936)
        };
        match self {
            Self::Tiny => Qwen2Config::small(2048),
            Self::HalfB => published(896, 4864, 24, 14),
            Self::OneAndAHalfB => published(1536, 8960, 28, 12),
            Self::ThreeB => published(2048, 11_008, 36, 16),
        }
    }
}

impl fmt::Display for MeasuredShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MeasuredShape {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let found = Self::ALL.into_iter().find(|shape| shape.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| format!("`{text}` is none of tiny, 0.5B, 1.5B and 3B"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for shape in MeasuredShape::ALL {
            assert_eq!(shape.to_string().parse(), Ok(shape));
            shape.config().validate().unwrap();
        }
        assert!("7B".parse::<MeasuredShape>().unwrap_err().contains("7B"));
    }

    #[test]
    fn a_token_of_context_takes_what_the_published_sizes_say() {
        // 2 (keys and values) · 2 bytes · layers · 2 key heads · head size.
        for (shape, bytes) in [
            (MeasuredShape::HalfB, 12_288),
            (MeasuredShape::OneAndAHalfB, 28_672),
            (MeasuredShape::ThreeB, 36_864),
        ] {
            let config = shape.config();
            let head_dim = config.hidden_size / config.num_attention_heads;
            assert_eq!(2 * 2 * config.num_hidden_layers * 2 * head_dim, bytes);
        }
    }
}
