//! What a completion means: a [`ParsedCompletion`], and the [`CompletionForm`] that a grammar enforces.

use webshop_env::Action;

/// One parsed completion.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedCompletion {
    /// The written thought, trimmed; `None` if there is no complete one.
    pub thought: Option<String>,
    /// The action. It may be unavailable on the page.
    pub action: Action,
    /// Whether the completion has the form that the prompt format asks for.
    pub is_well_formed: bool,
    /// Whether the completion ends the episode without a purchase; `action` is then a no-op.
    pub terminates: bool,
}

impl ParsedCompletion {
    /// A completion that does not terminate.
    pub(crate) fn new(thought: Option<String>, action: Action, is_well_formed: bool) -> Self {
        Self { thought, action, is_well_formed, terminates: false }
    }
}

/// The fixed text of a completion: an optional thought, then a click or a search. For constrained decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionForm {
    /// The text before and after a thought; `None` if the format has no thoughts.
    pub thought: Option<(&'static str, &'static str)>,
    /// The text before and after the words of a search.
    pub search: (&'static str, &'static str),
    /// Characters that thoughts and searches must not contain, beside line breaks: they would end the field.
    pub forbidden: &'static [char],
}
