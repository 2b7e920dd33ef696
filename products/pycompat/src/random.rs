//! CPython's `random`: the functions that the original WebShop draws with.
//!
//! [`PythonRandom`] is the generator of `import random`: MT19937 (Matsumoto and Nishimura 1998) with
//! the seeding, floats and sampling of CPython 3.8. The same seed and the same calls in the same order
//! give the same numbers as CPython.
//!
//! Use it only to reproduce the original, which draws everything from one shared generator. All other
//! randomness of this project is addressed by purpose and coordinates, so that no draw depends on
//! another.

/// `N`: words of state. `M`: distance between a word and the one it is mixed with.
const N: usize = 624;
const M: usize = 397;

const UPPER_BIT: u32 = 0x8000_0000;
const TWIST: u32 = 0x9908_b0df;

/// The size that `random.sample` assumes for a set of up to five items, compared with the size of a list.
const SMALL_SET: usize = 21;

/// The state of CPython's generator.
///
/// ```
/// use webshop_pycompat::PythonRandom;
///
/// let mut random = PythonRandom::new(0);
/// // >>> import random; random.seed(0); random.random()
/// assert_eq!(random.random(), 0.8444218515250481);
/// ```
#[derive(Clone, Debug)]
pub struct PythonRandom {
    words: [u32; N],
    /// Index of the next word to return; `N` when all are used.
    next: usize,
}

impl PythonRandom {
    /// `random.seed(seed)`.
    pub fn new(seed: u64) -> Self {
        let halves = [seed as u32, (seed >> 32) as u32];
        let key = if halves[1] == 0 { &halves[..1] } else { &halves[..] };
        Self::from_key(key)
    }

    /// The reference implementation's `init_by_array`.
    fn from_key(key: &[u32]) -> Self {
        let mut words = [19_650_218_u32; N];
        for at in 1..N {
            words[at] = mixed(words[at - 1]).wrapping_mul(1_812_433_253).wrapping_add(at as u32);
        }
        let mut at = 1;
        for step in 0..N.max(key.len()) {
            let place = step % key.len();
            let mix = mixed(words[at - 1]).wrapping_mul(1_664_525);
            words[at] = (words[at] ^ mix).wrapping_add(key[place]).wrapping_add(place as u32);
            at = following(&mut words, at);
        }
        for _ in 1..N {
            let mix = mixed(words[at - 1]).wrapping_mul(1_566_083_941);
            words[at] = (words[at] ^ mix).wrapping_sub(at as u32);
            at = following(&mut words, at);
        }
        words[0] = UPPER_BIT;
        Self { words, next: N }
    }

    /// `random.random()`: 53 random bits, in [0, 1).
    pub fn random(&mut self) -> f64 {
        let high = f64::from(self.word() >> 5);
        let low = f64::from(self.word() >> 6);
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }

    /// `random.uniform(low, high)`; `low` may exceed `high`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.random()
    }

    /// `random.getrandbits(bits)`, for 1 to 32 bits.
    pub fn bits(&mut self, bits: u32) -> u32 {
        debug_assert!((1..=32).contains(&bits));
        self.word() >> (32 - bits)
    }

    /// `random._randbelow(n)`: a number below `n`, by rejection; 0 if `n` is 0 or 1.
    ///
    /// Like Python, it draws also for `n` = 1 (a bit that must be zero).
    pub fn below(&mut self, n: u32) -> u32 {
        let bits = u32::BITS - n.leading_zeros();
        if bits == 0 {
            return 0;
        }
        loop {
            let drawn = self.bits(bits);
            if drawn < n {
                return drawn;
            }
        }
    }

    /// `random.shuffle(list)`: from the end, each item is swapped with itself or an earlier one.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at as u32 + 1) as usize);
        }
    }

    /// `random.sample(range(n), k)`: `k` different numbers below `n`, or `None` if `n < k`.
    pub fn sample(&mut self, n: u32, k: usize) -> Option<Vec<u32>> {
        if n as usize <= set_size(k) { self.sample_from_pool(n, k) } else { self.sample_by_rejection(n, k) }
    }

    fn sample_from_pool(&mut self, n: u32, k: usize) -> Option<Vec<u32>> {
        let mut pool: Vec<u32> = (0..n).collect();
        if k > pool.len() {
            return None;
        }
        let mut draw = |_| pool.swap_remove(self.below(pool.len() as u32) as usize);
        Some((0..k).map(&mut draw).collect())
    }

    fn sample_by_rejection(&mut self, n: u32, k: usize) -> Option<Vec<u32>> {
        let mut drawn: Vec<u32> = Vec::with_capacity(k);
        while drawn.len() < k {
            let number = self.below(n);
            if !drawn.contains(&number) {
                drawn.push(number);
            }
        }
        Some(drawn)
    }

    /// `''.join(random.choices(string.ascii_lowercase, k=length))`.
    pub fn letters(&mut self, length: usize) -> String {
        (0..length).map(|_| char::from(b'a' + (self.random() * 26.0) as u8)).collect()
    }

    /// The next 32 bits, tempered.
    fn word(&mut self) -> u32 {
        if self.next == N {
            self.twist();
        }
        let mut word = self.words[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    fn twist(&mut self) {
        for at in 0..N {
            let joined = (self.words[at] & UPPER_BIT) | (self.words[(at + 1) % N] & !UPPER_BIT);
            let twist = if joined & 1 == 1 { TWIST } else { 0 };
            self.words[at] = self.words[(at + M) % N] ^ (joined >> 1) ^ twist;
        }
        self.next = 0;
    }
}

fn mixed(word: u32) -> u32 {
    word ^ (word >> 30)
}

/// The index after `at` in a cycle over the state that skips word 0 and copies the last word to it.
fn following(words: &mut [u32; N], at: usize) -> usize {
    if at + 1 < N {
        return at + 1;
    }
    words[0] = words[N - 1];
    1
}

/// The size that CPython assumes for a set of `k` numbers; a population up to that size is copied to a list.
fn set_size(k: usize) -> usize {
    if k <= 5 {
        return SMALL_SET;
    }
    // 4 ** ceil(log(3 * k, 4)).
    let mut table = 1;
    while table < 3 * k {
        table *= 4;
    }
    SMALL_SET + table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_cpython() {
        // >>> random.seed(0); [random.getrandbits(32) for _ in range(3)]
        let mut random = PythonRandom::new(0);
        let words: Vec<u32> = (0..3).map(|_| random.bits(32)).collect();
        assert_eq!(words, [3_626_764_237, 1_654_615_998, 3_255_389_356]);
        // >>> random.seed(2**32); random.random(); a seed of two words
        assert_eq!(PythonRandom::new(1 << 32).random(), 0.112_994_300_956_364_09);
    }

    #[test]
    fn a_shuffle_is_that_of_cpython() {
        let mut list: Vec<usize> = (0..13).collect();
        PythonRandom::new(233).shuffle(&mut list);
        assert_eq!(list, [11, 9, 5, 6, 0, 1, 4, 7, 3, 8, 2, 12, 10]);
    }

    #[test]
    fn samples_are_those_of_cpython_by_pool_and_by_rejection() {
        // >>> random.seed(0); [random.sample([0, 1, 2, 3], 2) for _ in range(3)]
        let mut random = PythonRandom::new(0);
        let samples: Vec<_> = (0..3).filter_map(|_| random.sample(4, 2)).collect();
        assert_eq!(samples, [[3, 1], [0, 1], [3, 1]]);
        // >>> random.seed(5); random.sample(range(1000), 50)[:5]
        let sample = PythonRandom::new(5).sample(1000, 50).unwrap();
        assert_eq!(sample[..5], [637, 261, 759, 367, 814]);
        assert_eq!(PythonRandom::new(5).sample(3, 4), None);
    }

    #[test]
    fn assumed_set_sizes_are_those_of_cpython() {
        // 3 · 50 = 150 needs a table of 4⁴ = 256.
        assert_eq!([set_size(2), set_size(5), set_size(6), set_size(50)], [21, 21, 85, 277]);
    }
}
