//! One short text that tells two goal sets apart.
//!
//! It travels with every result: two numbers may be compared only if their fingerprints are equal.

use std::io::{self, Write};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::catalog::Catalog;
use crate::goal::Goal;
use crate::split::{Split, Splits};

/// Raised whenever equal data begins to mean something else.
const VERSION: &str = "webshop/goals/1";

/// SHA-256, in hexadecimal, over the version and the JSON of every product, goal and split.
pub(crate) fn of(catalog: &Catalog, goals: &[Goal], splits: &Splits) -> String {
    let mut hasher = Hasher(Sha256::new_with_prefix(VERSION));
    hasher.add(&catalog.products());
    hasher.add(&goals);
    for split in [Split::Train, Split::Validation, Split::Test] {
        hasher.add(&splits.get(split));
    }
    hasher.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Hasher(Sha256);

impl Hasher {
    fn add(&mut self, value: &impl Serialize) {
        serde_json::to_writer(&mut *self, value)
            .expect("hashing accepts every byte, and these types are all valid JSON");
    }
}

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
