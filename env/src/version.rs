//! Versions of everything that decides about a result or a record.

/// The name of the environment; it changes when an action does something else or a page looks different.
///
/// - `webshop-1`: the first version.
/// - `webshop-2`: searches split text in every script, and emoji, as the original's engine does.
/// - `webshop-3`: generated catalogs have the statistics of the original's, and the default split cuts no family.
pub const ENVIRONMENT_ID: &str = "webshop-3";

/// The version of the reward rules.
pub(crate) const REWARD_VERSION: &str = "reward-1";

/// The format of a recorded [`Episode`](crate::Episode).
///
/// - `webshop-episode-1`: the first version with this name.
pub const EPISODE_FORMAT: &str = "webshop-episode-1";
