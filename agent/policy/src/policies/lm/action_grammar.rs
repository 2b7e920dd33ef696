//! The grammar of available completions, for constrained decoding.
//!
//! An [`ActionGrammar`] makes the [`Constraint`] of each turn from the clicks of the page and the prompt
//! format's forms of search and thought. It divides the tokens of a turn so that their limit cuts no completion:
//!
//! ```text
//! turn   ≥ form of the thought + thought + max(form of a search + words, longest click)
//! room   = turn − form of the thought − form of a search − 1
//! words  = 1 + ⌊room / 3⌋ at least    thought = the rest at most
//! ```
//!
//! What the thought leaves is left to the words. In formats without a thought the words have all of the room, and on a
//! page without a search bar only the longest click counts. The form is the fixed text around free text: tags,
//! JSON, the stop token. A limit below the forms is an error.

use std::sync::Arc;

use webshop_env::{Action, Page};
use webshop_lm::{BpeTokenizer, Budget, Constraint, FreeText, Thought};

use crate::error::AgentError;
use crate::prompt_format::PromptFormat;

/// The longest label of the buttons that nearly every page has.
const BUTTON: &str = "back to search";

/// The available completions of a prompt format.
#[derive(Clone, Debug)]
pub(super) struct ActionGrammar {
    prompt_format: PromptFormat,
    thought: Option<Arc<Thought>>,
    search: Arc<FreeText>,
    max_turn_tokens: usize,
}

impl ActionGrammar {
    /// Completions of at most `max_turn_tokens` that end with `stop`. `encode` encodes an action with its
    /// end.
    ///
    /// # Errors
    /// If the limit is too small for a search or for the longest button.
    pub(super) fn new(
        tokenizer: &BpeTokenizer,
        prompt_format: PromptFormat,
        thought: Option<Thought>,
        stop: &str,
        max_turn_tokens: usize,
        encode: impl Fn(&Action) -> Result<Vec<u32>, AgentError>,
    ) -> Result<Self, AgentError> {
        let form = prompt_format.form();
        let (opening, closing) = form.search;
        let search = FreeText::new(tokenizer, (opening, &format!("{closing}{stop}")), form.forbidden)?;
        let (thought, search) = (thought.map(Arc::new), Arc::new(search));
        let grammar = Self { prompt_format, thought, search, max_turn_tokens };
        grammar.budget(&[encode(&Action::Click(BUTTON.into()))?], true)?;
        Ok(grammar)
    }

    /// The completions that do something on `page`.
    ///
    /// # Errors
    /// If the limit is too small for one of its clicks.
    pub(super) fn constraint(
        &self,
        page: &Page,
        encode: impl Fn(&Action) -> Result<Vec<u32>, AgentError>,
    ) -> Result<Constraint, AgentError> {
        let available = page.available_actions();
        let clicks = available.clicks().map(|click| encode(&click)).collect::<Result<Vec<_>, _>>()?;
        // The shop accepts a search on every page; without clicks it is the only action.
        let search = (available.has_search_bar || clicks.is_empty()).then(|| self.search.clone());
        let budget = self.budget(&clicks, search.is_some())?;
        Ok(Constraint::new(&clicks, search, self.thought.clone(), budget)?)
    }

    /// The tokens of thoughts and searches beside these clicks.
    fn budget(&self, clicks: &[Vec<u32>], has_search: bool) -> Result<Budget, AgentError> {
        let thought_form = self.thought.as_ref().map_or(0, |thought| thought.n_delimiter_tokens());
        let search_form = self.search.n_delimiter_tokens();
        let click = clicks.iter().map(Vec::len).max().unwrap_or(0);
        let shortest_search = if has_search { search_form + 1 } else { 0 };
        let needed = thought_form + click.max(shortest_search);
        if needed > self.max_turn_tokens {
            let (prompt_format, max_turn_tokens) = (self.prompt_format.name(), self.max_turn_tokens);
            return Err(AgentError::TurnTooShort { prompt_format, max_turn_tokens, needed });
        }
        let room = self.max_turn_tokens - thought_form - shortest_search;
        let extra_words = if self.thought.is_some() { room / 3 } else { room };
        let action = click.max(if has_search { shortest_search + extra_words } else { 0 });
        Ok(Budget { thought: self.max_turn_tokens - thought_form - action, text: 1 + extra_words })
    }
}
