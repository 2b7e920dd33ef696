//! Answers between tags, which two dialects have in common, and the list of what can be done.

use webshop_env::AvailableActions;

/// The text between the first `opening` and the first `closing` behind it.
pub fn between<'t>(text: &'t str, opening: &str, closing: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(opening)?;
    Some(rest.split_once(closing)?.0)
}

/// Every legal move as it is said, the search first; its words are left to the customer.
pub fn moves(available: &AvailableActions) -> Vec<String> {
    let search = available.has_search_bar.then(|| "search[<your query>]".to_owned());
    search.into_iter().chain(available.clicks().map(|click| click.to_string())).collect()
}
