//! A cache of recent searches.
//!
//! Episodes of one goal search for much the same words, and in a large catalog a search is the longest part
//! of an episode. A search is a pure function of its query, so the cache changes nothing but time.

use quick_cache::sync::Cache;
use std::sync::Arc;
use webshop_products::ProductIdx;

/// Longer queries are not cached, which bounds the cache in bytes; the longest instruction of the original
/// has some 800.
const MAX_WORDS_BYTES: usize = 2_000;

/// The recent searches of a shop, shared by all its sessions.
pub(crate) struct QueryCache(Option<Cache<Box<str>, Arc<[ProductIdx]>>>);

impl QueryCache {
    /// A cache of about `capacity` searches; 0 caches none.
    pub(crate) fn new(capacity: usize) -> Self {
        Self((capacity > 0).then(|| Cache::new(capacity)))
    }

    /// The cached hits of `words`, or those of `search`.
    pub(crate) fn get_or<E>(
        &self,
        words: &str,
        search: impl FnOnce() -> Result<Arc<[ProductIdx]>, E>,
    ) -> Result<Arc<[ProductIdx]>, E> {
        let Some(cache) = self.0.as_ref().filter(|_| words.len() <= MAX_WORDS_BYTES) else { return search() };
        if let Some(found) = cache.get(words) {
            return Ok(found);
        }
        let found = search()?;
        cache.insert(words.into(), Arc::clone(&found));
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_search_is_made_once_if_it_is_cached() {
        let long = "x".repeat(MAX_WORDS_BYTES + 1);
        for (capacity, words, n_made) in [(8, "lamp", 1), (0, "lamp", 2), (8, long.as_str(), 2)] {
            let cache = QueryCache::new(capacity);
            let made = Cell::new(0);
            for _ in 0..2 {
                let search = || {
                    made.set(made.get() + 1);
                    Ok::<_, ()>([ProductIdx(7)].into())
                };
                assert_eq!(*cache.get_or(words, search).unwrap(), [ProductIdx(7)]);
            }
            assert_eq!(made.get(), n_made, "capacity {capacity}");
        }
    }

    #[test]
    fn a_failed_search_is_not_cached() {
        let cache = QueryCache::new(8);
        assert_eq!(cache.get_or("lamp", || Err(3)), Err(3));
        assert_eq!(cache.get_or("lamp", || Ok::<_, i32>([].into())).map(|found| found.len()), Ok(0));
    }
}
