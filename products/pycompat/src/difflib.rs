//! `difflib.SequenceMatcher` of CPython: the total size of its matching blocks.
//!
//! [`matching_chars`] finds the longest common block, then recurses to its left and right, and returns
//! the sum of the block lengths. The result depends on the order of the arguments. In a second text of
//! 200 characters or more, frequent characters start no block (`autojunk`).
//!
//! It is no edit distance, and it builds no list of blocks.

use std::collections::HashMap;

/// Minimum length of the second text for `autojunk`.
const POPULARITY_FROM: usize = 200;

/// The number of characters of `a` in matching blocks with `b`.
///
/// ```
/// let chars = |text: &str| text.chars().collect::<Vec<_>>();
/// // >>> sum(block.size for block in SequenceMatcher(None, "diet", "tide").get_matching_blocks())
/// assert_eq!(webshop_pycompat::matching_chars(&chars("diet"), &chars("tide")), 2);
/// ```
pub fn matching_chars(a: &[char], b: &[char]) -> usize {
    let matcher = Matcher::new(a, b);
    let mut total = 0;
    let mut open = vec![(0, a.len(), 0, b.len())];
    while let Some((a_low, a_high, b_low, b_high)) = open.pop() {
        let block = matcher.longest_block(a_low, a_high, b_low, b_high);
        if block.len == 0 {
            continue;
        }
        total += block.len;
        if a_low < block.a && b_low < block.b {
            open.push((a_low, block.a, b_low, block.b));
        }
        let (a_end, b_end) = (block.a + block.len, block.b + block.len);
        if a_end < a_high && b_end < b_high {
            open.push((a_end, a_high, b_end, b_high));
        }
    }
    total
}

struct Matcher<'a> {
    a: &'a [char],
    b: &'a [char],
    /// Indices in `b` of each character that may start a block, ascending.
    places: HashMap<char, Vec<usize>>,
}

#[derive(Clone, Copy)]
struct Block {
    a: usize,
    b: usize,
    len: usize,
}

impl<'a> Matcher<'a> {
    fn new(a: &'a [char], b: &'a [char]) -> Self {
        let mut places: HashMap<char, Vec<usize>> = HashMap::new();
        for (at, &c) in b.iter().enumerate() {
            places.entry(c).or_default().push(at);
        }
        if b.len() >= POPULARITY_FROM {
            let limit = b.len() / 100 + 1;
            places.retain(|_, at| at.len() <= limit);
        }
        Matcher { a, b, places }
    }

    /// The longest block within the given ranges; ties go to the first in `a`, then in `b`.
    fn longest_block(&self, a_low: usize, a_high: usize, b_low: usize, b_high: usize) -> Block {
        let mut best = Block { a: a_low, b: b_low, len: 0 };
        // lengths[j + 1]: length of the block that ends at the previous character of `a` and at b[j].
        let mut lengths = vec![0_usize; self.b.len() + 1];
        let mut previous: &[usize] = &[];
        for i in a_low..a_high {
            let here = self.places.get(&self.a[i]).map_or(&[][..], Vec::as_slice);
            let first = here.partition_point(|&j| j < b_low);
            let last = here.partition_point(|&j| j < b_high);
            let here = &here[first..last];
            let found: Vec<usize> = here.iter().map(|&j| lengths[j] + 1).collect();
            for &j in previous {
                lengths[j + 1] = 0;
            }
            for (&j, &len) in here.iter().zip(&found) {
                lengths[j + 1] = len;
                if len > best.len {
                    best = Block { a: i + 1 - len, b: j + 1 - len, len };
                }
            }
            previous = here;
        }
        self.extended(best, a_low, a_high, b_low, b_high)
    }

    /// Extends a block over characters that are too frequent to start one.
    fn extended(&self, mut block: Block, a_low: usize, a_high: usize, b_low: usize, b_high: usize) -> Block {
        while block.a > a_low && block.b > b_low && self.a[block.a - 1] == self.b[block.b - 1] {
            block.a -= 1;
            block.b -= 1;
            block.len += 1;
        }
        while block.a + block.len < a_high
            && block.b + block.len < b_high
            && self.a[block.a + block.len] == self.b[block.b + block.len]
        {
            block.len += 1;
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::matching_chars;

    fn check(a: &str, b: &str, expected: usize) {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        assert_eq!(matching_chars(&chars(a), &chars(b)), expected, "{a:?} {b:?}");
    }

    #[test]
    fn blocks_are_found_longest_first() {
        // " abcd" whole after the first space; then nothing on its left.
        check(" abcd", "abcd abcd", 5);
        check("qabxcd", "abycdf", 4);
        check("", "abc", 0);
    }

    #[test]
    fn the_order_of_the_texts_matters() {
        // The longest block decides first, and ties fall to the first text's order.
        check("tide", "diet", 1);
        check("diet", "tide", 2);
    }

    #[test]
    fn frequent_characters_start_no_block_in_a_long_text() {
        // 200 times `x` exceeds the limit of 3, so `x` can only extend a block, and the empty block at
        // the start cannot extend over `y`.
        check("yxxx", &"x".repeat(200), 0);
        check("yxxx", &"x".repeat(199), 3);
        check("xxx", &"x".repeat(200), 3);
    }
}
