//! What was searched for lately, and what that found.
//!
//! Customers of one goal search for much the same words, trip after trip, and in a large catalog a search is the
//! longest part of a trip. A search is a pure function of its words, so nobody can tell a remembered one from a new
//! one but by the time it takes.

use quick_cache::sync::Cache;
use std::sync::Arc;
use webshop_products::ProductIdx;

/// Longer texts are not remembered, so that what is remembered has a bound in bytes too; the longest instruction of
/// the original has some 800.
const MAX_WORDS_BYTES: usize = 2_000;

/// The latest searches of a shop, shared by all its customers.
pub(crate) struct SearchMemo(Option<Cache<Box<str>, Arc<[ProductIdx]>>>);

impl SearchMemo {
    /// One that remembers about so many searches; with 0, none.
    pub fn new(capacity: usize) -> Self {
        Self((capacity > 0).then(|| Cache::new(capacity)))
    }

    /// What `words` found before, or else what `search` finds now.
    pub fn get_or<E>(
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
    fn a_search_is_made_once_unless_nothing_is_remembered() {
        let long = "x".repeat(MAX_WORDS_BYTES + 1);
        for (capacity, words, n_made) in [(8, "lamp", 1), (0, "lamp", 2), (8, long.as_str(), 2)] {
            let memo = SearchMemo::new(capacity);
            let made = Cell::new(0);
            for _ in 0..2 {
                let search = || {
                    made.set(made.get() + 1);
                    Ok::<_, ()>([ProductIdx(7)].into())
                };
                assert_eq!(*memo.get_or(words, search).unwrap(), [ProductIdx(7)]);
            }
            assert_eq!(made.get(), n_made, "capacity {capacity}");
        }
    }

    #[test]
    fn a_search_that_fails_is_not_remembered() {
        let memo = SearchMemo::new(8);
        assert_eq!(memo.get_or("lamp", || Err(3)), Err(3));
        assert_eq!(memo.get_or("lamp", || Ok::<_, i32>([].into())).map(|found| found.len()), Ok(0));
    }
}
