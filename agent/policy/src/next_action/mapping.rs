//! The shop's actions and Shop-R1's, each as the other.
//!
//! | shop | Shop-R1 | back |
//! |---|---|---|
//! | `search[q]` | `type_and_submit` in `search_input` | where there is a search bar; white space folded, `[` to `(`, `]` to `)`; not if empty |
//! | `click[x]` | `click` on `x` | where the folded name is that of something to click |
//! | `click[buy now]` | a click, or `terminate` under [`BuyNowAs::Terminate`] | |
//! | leaving | `terminate` | |
//!
//! Names and queries are lower case in the shop, so they come back without their capitals. Folding means: trimmed, runs of
//! white space as one space, lower case. What is valid here may still pass the turn, such as a query of too many words:
//! that is the shop's business.

use std::fmt;

use serde::{Deserialize, Serialize};
use webshop_env::{Action, AvailableActions};

use crate::next_action::action::{ActionType, NextAction, WrittenAction};

/// The name of the search bar.
pub const SEARCH_INPUT: &str = "search_input";

/// The label of the button that buys.
const BUY_NOW: &str = "buy now";

/// What buying is in Shop-R1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuyNowAs {
    /// A click, as in the paper; `terminate` leaves.
    #[default]
    Click,
    /// `terminate`, so that both ends of a visit are one action. Where nothing can be bought it leaves.
    Terminate,
}

/// What an action does in the shop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShopMove {
    /// A move.
    Act(Action),
    /// The customer leaves, unpaid.
    Leave,
}

impl fmt::Display for ShopMove {
    /// The move as it is said; `END` for leaving.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Act(action) => action.fmt(f),
            Self::Leave => f.write_str("END"),
        }
    }
}

/// Why an action can do nothing on a page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A type that does not exist.
    #[error("there is no action of type `{0}`")]
    UnknownType(String),
    /// Nothing to click is called so.
    #[error("nothing to click is called `{0}`")]
    NotOnPage(String),
    /// No field is called so.
    #[error("there is no field `{0}`, only `search_input`")]
    UnknownField(String),
    /// A search on a page without search bar.
    #[error("the page has no `search_input`")]
    NoSearchBar,
    /// Nothing to search for.
    #[error("the query is empty")]
    EmptyQuery,
}

impl NextAction {
    /// The shop's action as Shop-R1's; `None` for one that is no move.
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
    /// What the action does on a page with these moves.
    ///
    /// # Errors
    /// Why it can do nothing there.
    ///
    /// ```
    /// use crate::next_action::{BuyNowAs, NextAction, WrittenAction};
    /// use webshop_env::AvailableActions;
    /// let page = AvailableActions { has_search_bar: false, clickables: vec!["buy now".into()] };
    /// let click = |name: &str| WrittenAction::from(&NextAction::Click { name: name.into() });
    /// let done = click("Buy  Now").in_shop(&page, BuyNowAs::Click).unwrap();
    /// assert_eq!(done.to_string(), "click[buy now]");
    /// let unfit = click("red").in_shop(&page, BuyNowAs::Click).unwrap_err();
    /// assert_eq!(unfit.to_string(), "nothing to click is called `red`");
    /// ```
    pub fn in_shop(&self, page: &AvailableActions, buy_now_as: BuyNowAs) -> Result<ShopMove, Unfit> {
        let action = match self.action_type() {
            None => return Err(Unfit::UnknownType(self.type_name.clone())),
            Some(ActionType::Terminate) => match buy_now_as {
                BuyNowAs::Terminate if label(page, BUY_NOW).is_some() => Action::Click(BUY_NOW.into()),
                _ => return Ok(ShopMove::Leave),
            },
            Some(ActionType::Click) => {
                Action::Click(label(page, &self.name).ok_or_else(|| Unfit::NotOnPage(self.name.clone()))?)
            }
            Some(ActionType::TypeAndSubmit) => {
                if folded(&self.name) != SEARCH_INPUT {
                    return Err(Unfit::UnknownField(self.name.clone()));
                }
                if !page.has_search_bar {
                    return Err(Unfit::NoSearchBar);
                }
                let query = folded(&self.text).replace('[', "(").replace(']', ")");
                if query.is_empty() {
                    return Err(Unfit::EmptyQuery);
                }
                Action::Search(query)
            }
        };
        Ok(ShopMove::Act(action))
    }
}

/// The label of `page` that `name` means; of several that fold alike, the first.
fn label(page: &AvailableActions, name: &str) -> Option<String> {
    let name = folded(name);
    page.labels().find(|label| folded(label) == name).map(str::to_lowercase)
}

/// Trimmed, with single spaces, in lower case.
pub(super) fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
