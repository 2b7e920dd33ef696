//! The folder in which catalogs and their search indexes are cached between runs.

use std::path::PathBuf;

use webshop_products::{EmbeddedCatalog, user_cache};

/// Whether catalogs are cached.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct CacheArgs {
    /// Read the files of a catalog folder and build its search index again, and store neither. By default both are cached in the
    /// folder that `WEBSHOP_CACHE` names, else in the user's cache folder
    #[arg(long)]
    no_cache: bool,
}

impl CacheArgs {
    /// Whether the flag is given.
    pub(crate) fn is_given(self) -> bool {
        self.no_cache
    }

    /// The cache folder for a catalog. `None` for an embedded catalog: building its index is faster than
    /// reading it.
    pub(crate) fn folder_for(self, source: &str) -> Option<PathBuf> {
        let is_cached = !self.no_cache && EmbeddedCatalog::named(source).is_none();
        is_cached.then(user_cache).flatten()
    }
}
