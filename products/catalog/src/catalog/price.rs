//! Money and prices.
//!
//! [`Cents`] is the only type of money: integral, signed, exact. A [`Price`] holds the text on the page
//! beside the price charged. Printing reproduces the original byte for byte (`"$34.0"`), because agents read
//! it; arithmetic never goes through that text.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::seed::{Purpose, Seed, below};
use webshop_pycompat::PythonRandom;
use webshop_pycompat::{decimal_digit, float_repr};

/// The original's price of a product without one.
const UNPRICED: &str = "$100.0";

/// The greatest amount; above it a float of dollars cannot distinguish cents.
const MOST_DOLLARS: i64 = 10_000_000_000_000;

/// An amount of money in hundredths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cents(pub i64);

impl Cents {
    /// The amount as a float of dollars, the nearest one.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 100.0
    }

    /// The least amount whose dollars are not below these; for up to ten trillion dollars.
    pub(crate) fn at_least(dollars: f64) -> Self {
        let near = hundredfold(dollars);
        Self((near - 1..=near).find(|&cents| Self(cents).dollars() >= dollars).unwrap_or(near + 1))
    }

    /// The greatest amount whose dollars are not above these; for up to ten trillion dollars.
    pub(crate) fn at_most(dollars: f64) -> Self {
        let near = hundredfold(dollars);
        Self((near..=near + 1).rfind(|&cents| Self(cents).dollars() <= dollars).unwrap_or(near - 1))
    }
}

/// Whole cents, at most one off, within a range where a float can distinguish cents.
fn hundredfold(dollars: f64) -> i64 {
    let most = MOST_DOLLARS as f64;
    (dollars.clamp(-most, most) * 100.0).round() as i64
}

impl fmt::Display for Cents {
    /// ```
    /// assert_eq!(webshop_products::Cents(1205).to_string(), "$12.05");
    /// assert_eq!(webshop_products::Cents(-5).to_string(), "-$0.05");
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let cents = self.0.unsigned_abs();
        write!(f, "{sign}${}.{:02}", cents / 100, cents % 100)
    }
}

/// The price of a product, as shown and as charged.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Price {
    /// The text on the page: `"$34.0"` or `"$10.0 to $20.0"`, in the order of the file.
    pub tag: Arc<str>,
    /// The least amount the tag names.
    pub low: Cents,
    /// The greatest amount the tag names; equal to `low` unless the tag is a range.
    pub high: Cents,
    /// The price charged: from `low` to `high`, both included. If the original charges a fraction of a cent,
    /// the next whole cent, which exceeds the same limits as the fraction.
    pub paid: Cents,
}

/// The price in the file, before a price in a range is drawn.
pub(crate) struct Pricing {
    first: Amount,
    /// Present if the price is a range; it may be less than the first.
    second: Option<Amount>,
}

impl Pricing {
    /// Reads the file's `pricing` text; absent or empty text is a price of $100.
    ///
    /// More than two decimals round half up to whole cents. The error says what is wrong with `text`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self { first: Amount::parse(UNPRICED, UNPRICED)?, second: None });
        }
        let mut parts = text.split('$').skip(1).map(|part| Amount::parse(part, text));
        let first = parts.next().ok_or_else(|| format!("`{text}` has no amount in dollars"))??;
        // Every further part must parse, as in the original, though only the first is shown.
        let rest = parts.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { first, second: rest.into_iter().next() })
    }

    /// A range is charged at one of its whole cents, drawn by (`Prices`, `product_index`); so the
    /// same product of the same catalog costs the same in every run of one seed.
    pub(crate) fn charged_by_seed(self, seed: Seed, product_index: u32) -> Price {
        let (low, high) = self.bounds();
        if self.second.is_none() {
            return self.charged_at(low);
        }
        let mut rng = seed.rng(Purpose::PRICES, &[u64::from(product_index)]);
        let above = below(&mut rng, (high.0 - low.0) as usize + 1);
        self.charged_at(Cents(low.0 + above as i64))
    }

    /// The original's charge in dollars; in a range any float, drawn from its one generator.
    pub(crate) fn dollars_in_original(&self, random: &mut PythonRandom) -> f64 {
        match &self.second {
            Some(second) => random.uniform(self.first.dollars, second.dollars),
            None => self.first.dollars,
        }
    }

    /// The price, when a purchase costs `paid`.
    pub(crate) fn charged_at(self, paid: Cents) -> Price {
        let (low, high) = self.bounds();
        let tag = match self.second {
            Some(second) => format!("${} to ${}", self.first.repr, second.repr),
            None => format!("${}", self.first.repr),
        };
        Price { tag: tag.into(), low, high, paid }
    }

    fn bounds(&self) -> (Cents, Cents) {
        let (first, second) = (self.first.cents, self.second.as_ref().unwrap_or(&self.first).cents);
        (first.min(second), first.max(second))
    }
}

/// One number of a price text.
struct Amount {
    repr: String,
    dollars: f64,
    cents: Cents,
}

impl Amount {
    /// Drops everything but digits and points, as the original does (`"(0.25 / Ounce)"` → 0.25).
    fn parse(part: &str, whole: &str) -> Result<Self, String> {
        let malformed = || format!("`{part}` in `{whole}` is not an amount");
        let number: String = part
            .chars()
            .filter_map(|c| match c {
                '.' => Some('.'),
                _ => decimal_digit(c).map(|digit| char::from(b'0' + digit)),
            })
            .collect();
        if number.matches('.').count() > 1 || !number.contains(|c| c != '.') {
            return Err(malformed());
        }
        let dollars: f64 = number.parse().map_err(|_| malformed())?;
        Ok(Self { repr: float_repr(dollars), dollars, cents: whole_cents(&number) })
    }
}

/// Exact decimal text to cents, without a float in between; at most [`MOST_DOLLARS`].
fn whole_cents(number: &str) -> Cents {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digit = |at: usize| i64::from(fraction.as_bytes().get(at).map_or(0, |d| d - b'0'));
    let dollars: i64 = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(i64::MAX) };
    let cents = digit(0) * 10 + digit(1) + i64::from(digit(2) >= 5);
    Cents((dollars.min(MOST_DOLLARS)) * 100 + cents)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, tag: &str, low: i64, high: i64) {
        let price = Pricing::parse(text).unwrap().charged_by_seed(Seed(0), 3);
        assert_eq!((&*price.tag, price.low.0, price.high.0), (tag, low, high), "{text}");
        assert!(price.low <= price.paid && price.paid <= price.high);
    }

    #[test]
    fn tags_are_those_of_the_original() {
        check("$877.80", "$877.8", 87_780, 87_780);
        check("$34", "$34.0", 3_400, 3_400);
        check("$2,721.34", "$2721.34", 272_134, 272_134);
        check("", "$100.0", 10_000, 10_000);
        check("$19.99$27.99", "$19.99 to $27.99", 1_999, 2_799);
        check("$20.00 - $10.00", "$20.0 to $10.0", 1_000, 2_000);
        check("$1.00 - $2.00 - $3.00", "$1.0 to $2.0", 100, 200);
        check("$5.00 ($0.25 / Ounce)", "$5.0 to $0.25", 25, 500);
        check("Price: $7", "$7.0", 700, 700);
        check("$1e3", "$13.0", 1_300, 1_300);
        check("$-5", "$5.0", 500, 500);
        check("$٣٤", "$34.0", 3_400, 3_400);
        check("$.5", "$0.5", 50, 50);
        check("$0.125", "$0.125", 13, 13);
        check("$99999999999999999999", "$1e+20", 1_000_000_000_000_000, 1_000_000_000_000_000);
    }

    #[test]
    fn a_text_without_an_amount_is_refused() {
        for text in ["12.00", "$", "$abc", "$1.2.3", "$5$"] {
            assert!(Pricing::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_range_is_charged_by_product_and_seed() {
        let range = || Pricing::parse("$1.00$9.00").unwrap();
        let paid = |seed, index| range().charged_by_seed(Seed(seed), index).paid;
        assert_eq!(paid(0, 5), paid(0, 5));
        assert_ne!(paid(0, 5), paid(0, 6));
        assert_ne!(paid(0, 5), paid(1, 5));
    }

    #[test]
    fn a_fraction_of_a_cent_is_rounded_to_the_side_it_is_compared_on() {
        let cases =
            [(33.26, 3_326, 3_326), (10.004, 1_001, 1_000), (0.0, 0, 0), (1e6, 100_000_000, 100_000_000)];
        for (dollars, least, most) in cases {
            assert_eq!((Cents::at_least(dollars).0, Cents::at_most(dollars).0), (least, most), "{dollars}");
        }
        // Every amount survives being a float of dollars, on both sides.
        for cents in (0..1_000_000).step_by(7) {
            let dollars = Cents(cents).dollars();
            assert_eq!((Cents::at_least(dollars), Cents::at_most(dollars)), (Cents(cents), Cents(cents)));
        }
    }
}
