//! The mapping between the shop's actions and those of Shop-R1.
//!
//! | shop | Shop-R1 | back |
//! |---|---|---|
//! | `search[q]` | `type_and_submit` in `search_input` | if there is a search bar and the query is not empty; white space folded, `[` to `(`, `]` to `)` |
//! | `click[x]` | `click` on `x` | if the page has an element with this folded name |
//! | `click[buy now]` | a click, or `terminate` under [`BuyNowAs::Terminate`] | |
//! | end without a purchase | `terminate` | |
//!
//! Names and queries are lower case in the shop, so capitals are lost. Folding means: trimmed, white space
//! collapsed to single spaces, lower case. A valid action may still be a no-op in the shop, such as a query
//! of too many words.

use std::fmt;

use serde::{Deserialize, Serialize};
use webshop_env::{Action, AvailableActions};

use crate::next_action::action::{ActionType, NextAction, WrittenAction};

/// The name of the search bar.
pub const SEARCH_INPUT: &str = "search_input";

/// The label of the button that buys.
const BUY_NOW: &str = "buy now";

/// Shop-R1's action for a purchase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuyNowAs {
    /// A click, as in the paper; `terminate` ends the session without a purchase.
    #[default]
    Click,
    /// `terminate`, so that both ends of a session are one action. On a page without `buy now` it ends the
    /// session without a purchase.
    Terminate,
}

/// The effect of an action in the shop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MappedAction {
    /// An action of the shop.
    Act(Action),
    /// The end of the session without a purchase.
    Terminate,
}

impl fmt::Display for MappedAction {
    /// The action's text; `END` for `terminate`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Act(action) => action.fmt(f),
            Self::Terminate => f.write_str("END"),
        }
    }
}

/// Why an action has no effect on a page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// The type does not exist.
    #[error("`{0}` is not an action type")]
    UnknownType(String),
    /// The page has no element with this name.
    #[error("the page has no element `{0}`")]
    NotOnPage(String),
    /// The field does not exist.
    #[error("`{0}` is not a field; the only one is `search_input`")]
    UnknownField(String),
    /// The page has no search bar.
    #[error("the page has no `search_input`")]
    NoSearchBar,
    /// The query is empty.
    #[error("the query is empty")]
    EmptyQuery,
}

impl NextAction {
    /// Shop-R1's form of an action; `None` for a no-op.
    pub fn of(action: &Action, buy_now_as: BuyNowAs) -> Option<Self> {
        match action {
            Action::Click(label) if label == BUY_NOW && buy_now_as == BuyNowAs::Terminate => {
                Some(Self::Terminate {})
            }
            Action::Click(label) => Some(Self::Click { name: label.clone() }),
            Action::Search(words) => {
                Some(Self::TypeAndSubmit { name: SEARCH_INPUT.into(), text: words.clone() })
            }
            Action::Noop(_) => None,
        }
    }
}

impl WrittenAction {
    /// The action on a page with these available actions.
    ///
    /// # Errors
    /// If it has no effect there.
    ///
    /// ```
    /// use webshop_agent::next_action::{BuyNowAs, NextAction, WrittenAction};
    /// use webshop_env::AvailableActions;
    /// let page = AvailableActions { has_search_bar: false, clickables: vec!["buy now".into()] };
    /// let click = |name: &str| WrittenAction::from(&NextAction::Click { name: name.into() });
    /// let done = click("Buy  Now").in_shop(&page, BuyNowAs::Click).unwrap();
    /// assert_eq!(done.to_string(), "click[buy now]");
    /// let error = click("red").in_shop(&page, BuyNowAs::Click).unwrap_err();
    /// assert_eq!(error.to_string(), "the page has no element `red`");
    /// ```
    pub fn in_shop(
        &self,
        page: &AvailableActions,
        buy_now_as: BuyNowAs,
    ) -> Result<MappedAction, MappingError> {
        let action = match self.action_type() {
            None => return Err(MappingError::UnknownType(self.type_name.clone())),
            Some(ActionType::Terminate) => match buy_now_as {
                BuyNowAs::Terminate if label(page, BUY_NOW).is_some() => Action::Click(BUY_NOW.into()),
                _ => return Ok(MappedAction::Terminate),
            },
            Some(ActionType::Click) => Action::Click(
                label(page, &self.name).ok_or_else(|| MappingError::NotOnPage(self.name.clone()))?,
            ),
            Some(ActionType::TypeAndSubmit) => {
                if folded(&self.name) != SEARCH_INPUT {
                    return Err(MappingError::UnknownField(self.name.clone()));
                }
                if !page.has_search_bar {
                    return Err(MappingError::NoSearchBar);
                }
                let query = folded(&self.text).replace('[', "(").replace(']', ")");
                if query.is_empty() {
                    return Err(MappingError::EmptyQuery);
                }
                Action::Search(query)
            }
        };
        Ok(MappedAction::Act(action))
    }
}

/// The first label of `page` that equals `name` after folding.
fn label(page: &AvailableActions, name: &str) -> Option<String> {
    let name = folded(name);
    page.labels().find(|label| folded(label) == name).map(str::to_lowercase)
}

/// Trimmed, with single spaces, in lower case.
pub(super) fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
