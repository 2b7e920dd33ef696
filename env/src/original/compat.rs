//! The rules of a shop: repaired, or the original's.
//!
//! [`Compat`] is chosen when a shop is built and read wherever the two differ; everything not in its table is
//! the same in both. The original's random draws are not part of the rules: its prices and goals come from
//! [`webshop_products::OriginalWorld`], its session names and random listings from a [`crate::Tracer`].

use serde::{Deserialize, Serialize};

/// The rules of a shop.
///
/// | | `Repaired` | `Original` |
/// |---|---|---|
/// | `search[a [b]]` | searches `a [b]` | is no action: the verb reaches to the last `[` |
/// | a required option | is compared by its value | a named one is compared as the text of a pair, and only an exact color counts as its family |
/// | a selected value on the page | is marked in its own group | is marked wherever its quoted text occurs in the URL |
/// | a value in two groups | goes to the last group, clicked again to the one before | always goes to the last group |
/// | `< prev` | leads back to the previous page | leads elsewhere if the query contains the name of a page |
/// | a product with a lower-case ASIN, or one like a button of other pages | can be opened | cannot; the label is the button's |
/// | after the purchase | every action is a no-op | a [`Session`](crate::Session) and a [`Tracer`](crate::Tracer) search and buy again; a [`ShopEnv`](crate::ShopEnv) ends the episode under both rules |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compat {
    /// The default: required options are compared by value, so that the goal's own product with them meets all options.
    #[default]
    Repaired,
    /// The original's behavior, errors included.
    Original,
}
