//! What may be said on a page, where only admissible actions may be.
//!
//! A [`Grammar`] makes the [`Constraint`] of each turn from the clicks of its page, the dialect's search and its thought.
//! It shares out the tokens of a turn so that none is cut:
//!
//! ```text
//! turn   ≥ form of the thought + thought + max(form of a search + words, longest click)
//! room   = turn − form of the thought − form of a search − 1
//! words  = 1 + ⌊room / 3⌋             thought = what is left
//! ```
//!
//! The form is what stands around free writing: tags, JSON, the token that ends a turn. A turn without the tokens for
//! that is refused, not cut.

use std::sync::Arc;

use webshop_env::{Action, Page};

use webshop_lm::{Budget, Constraint, FreeText, Thought};
use crate::prompt_format::Dialect;
use crate::error::AgentError;
use webshop_lm::ShopTokenizer;

/// The longest of the shop's own buttons, which nearly every page has.
const BUTTON: &str = "back to search";

/// The admissible answers of a dialect.
#[derive(Clone, Debug)]
pub struct Grammar {
    dialect: Dialect,
    thought: Option<Arc<Thought>>,
    search: Arc<FreeText>,
    max_turn_tokens: usize,
}

impl Grammar {
    /// Answers of at most `max_turn_tokens`, which `stop` ends. Fails if these are too few for a search or for the
    /// longest of the shop's buttons, which `say` puts into tokens.
    pub fn new(
        tokenizer: &ShopTokenizer,
        dialect: Dialect,
        thought: Option<Thought>,
        stop: &str,
        max_turn_tokens: usize,
        say: impl Fn(&Action) -> Result<Vec<u32>, AgentError>,
    ) -> Result<Self, AgentError> {
        let form = dialect.form();
        let (opening, closing) = form.search;
        let search = FreeText::new(tokenizer, (opening, &format!("{closing}{stop}")), form.forbidden)?;
        let (thought, search) = (thought.map(Arc::new), Arc::new(search));
        let grammar = Self { dialect, thought, search, max_turn_tokens };
        grammar.budget(&[say(&Action::Click(BUTTON.into()))?])?;
        Ok(grammar)
    }

    /// The answers that do something on `page`. Fails if a turn is too short for one of its clicks.
    pub fn constraint(
        &self,
        page: &Page,
        say: impl Fn(&Action) -> Result<Vec<u32>, AgentError>,
    ) -> Result<Constraint, AgentError> {
        let available = page.available_actions();
        let clicks = available.clicks().map(|click| say(&click)).collect::<Result<Vec<_>, _>>()?;
        // The shop takes a search on every page; where there is nothing to click, it is all that can be said.
        let search = (available.has_search_bar || clicks.is_empty()).then(|| self.search.clone());
        Ok(Constraint::new(&clicks, search, self.thought.clone(), self.budget(&clicks)?)?)
    }

    /// How much may be thought and searched for beside these clicks.
    fn budget(&self, clicks: &[Vec<u32>]) -> Result<Budget, AgentError> {
        let thought_form = self.thought.as_ref().map_or(0, |thought| thought.form_tokens());
        let search_form = self.search.form_tokens();
        let click = clicks.iter().map(Vec::len).max().unwrap_or(0);
        let needed = thought_form + click.max(search_form + 1);
        if needed > self.max_turn_tokens {
            let (dialect, max_turn_tokens) = (self.dialect, self.max_turn_tokens);
            return Err(AgentError::TurnTooShort { dialect, max_turn_tokens, needed });
        }
        let room = self.max_turn_tokens - thought_form - search_form - 1;
        let words = 1 + room / 3;
        let action = click.max(search_form + words);
        Ok(Budget { thought: self.max_turn_tokens - thought_form - action, words })
    }
}
