//! Which shop: ours, or the original with its oddities.
//!
//! [`Compat`] is chosen once, when a shop is built, and read wherever the two differ. Everything
//! not in its list is the same in both. What the original draws at random is no part of a shop's rules: its
//! prices and goals come from [`webshop_products::OriginalWorld`], its names and random listings from a
//! [`crate::Tracer`].

use serde::{Deserialize, Serialize};

/// The rules a shop keeps.
///
/// | | `Repaired` | `Original` |
/// |---|---|---|
/// | `search[a [b]]` | searches `a [b]` | is no action: the verb reaches to the last `[` |
/// | a wanted option | is compared by its value | a named one is compared as the text of a pair, and only an exact colour stands for its family |
/// | a chosen value on the page | is marked in its own group | is marked wherever its quoted text occurs in the address |
/// | a value in two groups | goes to the last group, clicked again to the one before | always goes to the last group |
/// | `< prev` | leads back where the customer came from | is misled by a query that holds the name of a page |
/// | a product named in lower case, or like a button | can be opened | cannot; the label is the button's |
/// | after the purchase | nothing happens any more | one can search, and buy, again |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compat {
    /// The default: every goal whose wishes a product meets is worth exactly 1.
    #[default]
    Repaired,
    /// As the original behaves, down to what it gets wrong.
    Original,
}
