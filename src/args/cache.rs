//! The folder in which search indexes of catalogs are cached between runs.

use std::env;
use std::path::PathBuf;

use webshop_products::EmbeddedCatalog;

/// Whether indexes are cached.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct CacheArgs {
    /// Build the search index of a catalog folder again and do not store it. By default it is cached in the
    /// folder that `WEBSHOP_CACHE` names, else in the user's cache folder
    #[arg(long)]
    no_cache: bool,
}

impl CacheArgs {
    /// The folder for the index of a catalog. `None` for an embedded catalog: building its index is faster
    /// than reading it.
    pub(crate) fn folder_for(self, source: &str) -> Option<PathBuf> {
        let is_cached = !self.no_cache && EmbeddedCatalog::named(source).is_none();
        is_cached.then(cache_folder).flatten()
    }
}

/// `$WEBSHOP_CACHE`, else `$XDG_CACHE_HOME/webshop`, else `$HOME/.cache/webshop`. Empty variables count as
/// unset.
fn cache_folder() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let of_user = || folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    folder("WEBSHOP_CACHE").or_else(|| Some(of_user()?.join("webshop")))
}
