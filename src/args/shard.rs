//! One of several parts of a list.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Part `number` of `of` contiguous parts, whose lengths differ by at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    /// From 1.
    number: usize,
    of: usize,
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl Shard {
    /// The places of this part in a list of `n`. The parts of one list are disjoint and cover it.
    pub(crate) fn range(self, n: usize) -> Range<usize> {
        let end = |number: usize| (n as u128 * number as u128 / self.of as u128) as usize;
        end(self.number - 1)..end(self.number)
    }
}

impl FromStr for Shard {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed =
            text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parsed {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { number, of }),
            _ => Err("a part is written I/N with I from 1 to N, such as 2/8"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(of: usize, n: usize) -> Vec<Range<usize>> {
        (1..=of).map(|number| Shard { number, of }.range(n)).collect()
    }

    #[test]
    fn parts_follow_each_other_and_cover_the_list() {
        assert_eq!(ranges(3, 10), [0..3, 3..6, 6..10]);
        assert_eq!(ranges(4, 2), [0..0, 0..1, 1..1, 1..2]);
        assert_eq!(Shard { number: 1, of: 1 }.range(5), 0..5);
    }

    #[test]
    fn a_part_is_one_of_those_that_there_are() {
        assert_eq!("2/8".parse(), Ok(Shard { number: 2, of: 8 }));
        for wrong in ["0/8", "9/8", "1/0", "3", "a/b", "-1/2", "1/2/3"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
