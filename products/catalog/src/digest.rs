//! 64-bit digests (truncated SHA-256) and hexadecimal output.
//!
//! A [`Digest`] represents a state, a page's text or a list of actions in records and snapshots. The same
//! bytes have the same digest on every machine and in every version of this program, which the standard
//! library's hashes do not promise.
//!
//! It detects accidental changes, not attacks.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// The bytes in hexadecimal, two lowercase digits each.
///
/// ```
/// assert_eq!(webshop_products::hex(&[0, 171]), "00ab");
/// ```
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first eight bytes of a SHA-256; printed, stored and read as 16 hexadecimal digits.
///
/// ```
/// use webshop_products::Digest;
/// let digest = Digest::of(b"abc");
/// // The SHA-256 of `abc`, as FIPS 180-2 gives it, begins so.
/// assert_eq!(digest.to_string(), "ba7816bf8f01cfea");
/// assert_eq!("ba7816bf8f01cfea".parse(), Ok(digest));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; Digest::LEN]);

/// The text is not a [`Digest`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not 16 hexadecimal digits in lower case")]
pub struct InvalidDigest(String);

impl Digest {
    /// The number of bytes of a digest.
    pub const LEN: usize = 8;

    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        let whole = Sha256::digest(bytes);
        let mut first = [0; Digest::LEN];
        first.copy_from_slice(&whole[..Digest::LEN]);
        Digest(first)
    }

    /// The digest as a number, big-endian: the value of its digits.
    pub fn number(self) -> u64 {
        u64::from_be_bytes(self.0)
    }

    /// The eight bytes.
    pub fn bytes(self) -> [u8; Digest::LEN] {
        self.0
    }

    /// The digest with these bytes.
    pub fn from_bytes(bytes: [u8; Digest::LEN]) -> Digest {
        Digest(bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.number())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Digest, InvalidDigest> {
        let read = u64::from_str_radix(text, 16).map(|number| Digest(number.to_be_bytes()));
        // One digest has one spelling: `from_str_radix` takes signs and capitals too.
        read.ok().filter(|digest| digest.to_string() == text).ok_or_else(|| InvalidDigest(text.to_owned()))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_one_spelling() {
        for text in ["", "0", "+a7816bf8f01cfea", "BA7816BF8F01CFEA", "ba7816bf8f01cfea0"] {
            assert_eq!(text.parse::<Digest>(), Err(InvalidDigest(text.into())));
        }
        assert_eq!(Digest([0; 8]).to_string().parse(), Ok(Digest([0; 8])));
    }

    #[test]
    fn json_holds_the_digits() {
        let json = serde_json::to_string(&Digest::of(b"abc")).unwrap();
        assert_eq!(json, "\"ba7816bf8f01cfea\"");
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), Digest::of(b"abc"));
    }
}
