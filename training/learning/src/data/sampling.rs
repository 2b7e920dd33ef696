//! Draws without replacement.

use rand::Rng;

/// `n` of `pool` in random order; all of them if there are fewer.
pub(crate) fn sample_without_replacement<T>(mut pool: Vec<T>, mut rng: impl Rng, n: usize) -> Vec<T> {
    shuffle_prefix(&mut pool, n, &mut rng);
    pool.truncate(n);
    pool
}

/// Fills the first `n` places of `list` with a uniform draw from it without replacement; all of them if there are fewer.
pub(crate) fn shuffle_prefix<T>(list: &mut [T], n: usize, rng: &mut impl Rng) {
    for at in 0..n.min(list.len()) {
        let other = rng.random_range(at as u64..list.len() as u64) as usize;
        list.swap(at, other);
    }
}
