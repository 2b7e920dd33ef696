//! Products in compact bytes.
//!
//! Numbers are little-endian base 128. A text that products share is written where it first occurs, and later named
//! by its number, so that it is shared again when it is read.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::catalog::price::{Cents, Price};
use crate::catalog::product::{OptionGroup, OptionValue, Product, ProductId};

/// Writes products.
#[derive(Default)]
pub(crate) struct Encoder {
    /// What is written so far; may be cleared between products.
    pub(crate) bytes: Vec<u8>,
    /// The numbers of the shared texts so far, by their addresses.
    known: HashMap<*const u8, u64, FixedState>,
}

impl Encoder {
    /// Appends a number.
    pub(crate) fn number(&mut self, mut number: u64) {
        while number >= 128 {
            self.bytes.push(number as u8 | 128);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// A text that other products may share: one more than its number, or 0 and the text.
    fn shared(&mut self, text: &Arc<str>) {
        let next = self.known.len() as u64;
        match self.known.entry(text.as_ptr()) {
            Entry::Occupied(known) => {
                let number = *known.get();
                self.number(number + 1);
            }
            Entry::Vacant(new) => {
                new.insert(next);
                self.number(0);
                self.text(text);
            }
        }
    }

    fn list<T>(&mut self, items: &[T], mut put: impl FnMut(&mut Self, &T)) {
        self.number(items.len() as u64);
        items.iter().for_each(|item| put(self, item));
    }

    /// Appends a product.
    pub(crate) fn product(&mut self, product: &Product) {
        // Without `..`, so that no new field is forgotten.
        let Product {
            id,
            title,
            description,
            bullets,
            attributes,
            department,
            query,
            product_category,
            options,
            price,
            image,
        } = product;
        for text in [id.as_str(), title, description, image] {
            self.text(text);
        }
        self.list(bullets, Self::shared);
        self.list(attributes, Self::shared);
        for text in [department, query, product_category] {
            self.shared(text);
        }
        self.list(options, |encoder, OptionGroup { name, values }| {
            encoder.shared(name);
            encoder.list(values, |encoder, OptionValue { text, image }| {
                encoder.shared(text);
                encoder.list(image.as_slice(), |encoder, image| encoder.text(image));
            });
        });
        let Price { tag, low, high, paid } = price;
        self.shared(tag);
        for cents in [low, high, paid] {
            self.number(cents.0.cast_unsigned());
        }
    }
}

/// Reads what [`Encoder`] wrote; `None` at the first byte that it cannot have written.
pub(crate) struct Decoder<'a> {
    /// What is left.
    pub(crate) bytes: &'a [u8],
    /// The shared texts so far, of all blocks.
    pub(crate) texts: &'a mut Vec<Arc<str>>,
}

impl<'a> Decoder<'a> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let (&byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }

    /// A number that counts something in memory.
    pub(crate) fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    fn text(&mut self) -> Option<&'a str> {
        let n_bytes = self.length()?;
        let (text, rest) = self.bytes.split_at_checked(n_bytes)?;
        self.bytes = rest;
        std::str::from_utf8(text).ok()
    }

    fn shared(&mut self) -> Option<Arc<str>> {
        if let Some(number) = self.length()?.checked_sub(1) {
            return self.texts.get(number).cloned();
        }
        let text: Arc<str> = self.text()?.into();
        self.texts.push(Arc::clone(&text));
        Some(text)
    }

    fn list<T>(&mut self, mut take: impl FnMut(&mut Self) -> Option<T>) -> Option<Box<[T]>> {
        let length = self.length()?;
        // Each item has a byte at least.
        let mut items = Vec::with_capacity(length.min(self.bytes.len()));
        for _ in 0..length {
            items.push(take(self)?);
        }
        Some(items.into())
    }

    fn cents(&mut self) -> Option<Cents> {
        Some(Cents(self.number()?.cast_signed()))
    }

    /// The next product.
    pub(crate) fn product(&mut self) -> Option<Product> {
        let (id, title) = (ProductId::new(self.text()?)?, self.text()?.into());
        let (description, image) = (self.text()?.into(), self.text()?.into());
        Some(Product {
            id,
            title,
            description,
            bullets: self.list(Self::shared)?,
            attributes: self.list(Self::shared)?,
            department: self.shared()?,
            query: self.shared()?,
            product_category: self.shared()?,
            options: self.list(|decoder| {
                let name = decoder.shared()?;
                let values = decoder.list(|decoder| {
                    let text = decoder.shared()?;
                    let image = decoder.list(|decoder| Some(decoder.text()?.into()))?;
                    Some(OptionValue { text, image: image.into_iter().next() })
                })?;
                Some(OptionGroup { name, values })
            })?,
            price: Price {
                tag: self.shared()?,
                low: self.cents()?,
                high: self.cents()?,
                paid: self.cents()?,
            },
            image,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_come_back() {
        let mut encoder = Encoder::default();
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        numbers.iter().for_each(|&number| encoder.number(number));
        let mut decoder = Decoder { bytes: &encoder.bytes, texts: &mut Vec::new() };
        assert_eq!(numbers.map(|_| decoder.number().unwrap()), numbers);
        assert_eq!(decoder.number(), None);
        let mut endless = Decoder { bytes: &[255; 20], texts: &mut Vec::new() };
        assert_eq!(endless.number(), None);
    }
}
