//! Layouts and the vocabularies that they need.

use super::*;
use crate::prompt_format::Layout;

#[test]
fn a_layout_needs_a_vocabulary_with_its_special_tokens() {
    let tokenizer = tokenizer();
    for layout in [PromptFormat::Compact, PromptFormat::Text].map(|format| format.layout(COMPACT).unwrap()) {
        let policy = LmPolicy::with_layout(decoder(N_TOKENS), &tokenizer, layout, config(false), Seed(1));
        let missing = if layout == Layout::Text { "<think>" } else { "<|1|>" };
        let error = policy.unwrap_err().to_string();
        assert!(error.contains(&format!("`{missing}`")), "{error}");
    }
}
