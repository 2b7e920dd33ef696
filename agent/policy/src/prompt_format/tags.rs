//! Text between tags, and the list of available actions as text.

use webshop_env::AvailableActions;

/// The text between the first `opening` and the first `closing` after it.
pub(super) fn between<'t>(text: &'t str, opening: &str, closing: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(opening)?;
    Some(rest.split_once(closing)?.0)
}

/// The available actions as text, the search first.
pub(super) fn action_list(available: &AvailableActions) -> Vec<String> {
    let search = available.has_search_bar.then(|| "search[<your query>]".to_owned());
    search.into_iter().chain(available.clicks().map(|click| click.to_string())).collect()
}
