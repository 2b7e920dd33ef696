//! The folder in which search indexes of catalogs are cached between runs.

use std::path::PathBuf;

use webshop_env::user_index_cache;
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
        is_cached.then(user_index_cache).flatten()
    }
}
