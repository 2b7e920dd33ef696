//! Where the search indexes of catalogs are kept from run to run.

use std::env;
use std::path::PathBuf;

use webshop_products::EmbeddedCatalog;

/// Whether they are.
#[derive(clap::Args, Clone, Copy)]
pub struct CacheArgs {
    /// Build a folder's search index anew and do not keep it; else it is kept in the folder that `WEBSHOP_CACHE`
    /// names, or in the user's cache
    #[arg(long)]
    no_cache: bool,
}

impl CacheArgs {
    /// The folder for the index of a catalog; none for an embedded one, whose index is built faster than read.
    pub fn folder_for(self, source: &str) -> Option<PathBuf> {
        let is_kept = !self.no_cache && EmbeddedCatalog::named(source).is_none();
        is_kept.then(cache_folder).flatten()
    }
}

/// What the environment says, if it names any folder.
fn cache_folder() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let of_user = || folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    folder("WEBSHOP_CACHE").or_else(|| Some(of_user()?.join("webshop")))
}
