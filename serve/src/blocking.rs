//! Work that may search a large catalog.

use tokio::task::spawn_blocking;
use webshop_env::Shop;

/// Up to this number of products a search takes less time than handing it to another thread is worth.
const MAX_INLINE_PRODUCTS: usize = 100_000;

/// Runs `work` in sessions of `shop`, on this thread unless a search may take long.
pub(crate) async fn run<T: Send + 'static>(shop: &Shop, work: impl FnOnce() -> T + Send + 'static) -> T {
    if shop.catalog().len() <= MAX_INLINE_PRODUCTS {
        return work();
    }
    spawn_blocking(work).await.expect("no handler panics, and none is cancelled")
}
