//! States as bytes: the envelope of a snapshot, and why one may be refused.
//!
//! A snapshot is an envelope around a short payload:
//!
//! ```text
//! kind    4 bytes  what is inside: `WSse` a session, `WSen` an environment
//! version 1 byte   of the payload's layout, now 1
//! world   8 bytes  digest of the shop it belongs to (`Shop::world`)
//! payload          JSON
//! check   8 bytes  digest of all the bytes before it
//! ```
//!
//! [`seal`] makes one and [`unseal`] opens it, or says what is wrong in a [`SnapshotError`]. What the
//! payload says is the business of [`crate::Session`] and [`crate::ShopEnv`]. Search results and
//! pages are never inside: they follow from the state and the shop.

use webshop_products::Digest;
use serde::{Deserialize, Serialize};

/// Raised when the layout of a payload changes; snapshots of another version are refused.
const VERSION: u8 = 1;

/// Bytes before the payload.
const HEAD: usize = 4 + 1 + Digest::LEN;

/// What a snapshot is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Session,
    Env,
}

impl Kind {
    fn mark(self) -> &'static [u8; 4] {
        match self {
            Kind::Session => b"WSse",
            Kind::Env => b"WSen",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Session => "a session",
            Kind::Env => "an environment",
        }
    }
}

/// Why bytes were not taken for a state of this shop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes are something else altogether, or a snapshot of something else.
    #[error("these bytes are no snapshot of {0}")]
    Foreign(&'static str),
    /// The layout is that of another version of this program.
    #[error("the snapshot has layout {found}; this program reads layout {VERSION}")]
    Version {
        /// The layout it has.
        found: u8,
    },
    /// Bytes were changed, added or lost since the snapshot was made.
    #[error("the snapshot is damaged: its check does not fit its {n_bytes} bytes")]
    Damaged {
        /// How many bytes there are.
        n_bytes: usize,
    },
    /// The snapshot was taken in a shop with another catalog, other goals or other rules.
    #[error("the snapshot was taken in the shop `{found}`, and this is the shop `{here}`")]
    OtherShop {
        /// The shop it was taken in.
        found: Digest,
        /// The shop it was given to.
        here: Digest,
    },
    /// The check fits, but what it says cannot be: it was not made by this program.
    #[error("the snapshot says what cannot be: {0}")]
    Impossible(String),
}

/// Puts a state into an envelope.
pub(crate) fn seal(kind: Kind, world: Digest, state: &impl Serialize) -> Vec<u8> {
    let payload = payload(state);
    let mut bytes = Vec::with_capacity(HEAD + payload.len() + Digest::LEN);
    bytes.extend(kind.mark());
    bytes.push(VERSION);
    bytes.extend(world.bytes());
    bytes.extend(payload);
    let check = Digest::of(&bytes);
    bytes.extend(check.bytes());
    bytes
}

/// What stands in an envelope for this state.
pub(crate) fn payload(state: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(state).expect("states hold numbers, texts and lists, which are all valid JSON")
}

/// The state in an envelope of this kind and world.
pub(crate) fn unseal<'de, T: Deserialize<'de>>(
    kind: Kind,
    world: Digest,
    bytes: &'de [u8],
) -> Result<T, SnapshotError> {
    let payload = opened(kind, world, bytes)?;
    serde_json::from_slice(payload).map_err(|error| SnapshotError::Impossible(error.to_string()))
}

fn opened(kind: Kind, world: Digest, bytes: &[u8]) -> Result<&[u8], SnapshotError> {
    let inside = bytes.strip_prefix(kind.mark()).ok_or(SnapshotError::Foreign(kind.name()))?;
    match inside.first() {
        Some(&VERSION) => {}
        Some(&found) => return Err(SnapshotError::Version { found }),
        None => return Err(SnapshotError::Damaged { n_bytes: bytes.len() }),
    }
    let (checked, check) =
        bytes.split_last_chunk::<{ Digest::LEN }>().ok_or(SnapshotError::Damaged { n_bytes: bytes.len() })?;
    if checked.len() < HEAD || Digest::of(checked).bytes() != *check {
        return Err(SnapshotError::Damaged { n_bytes: bytes.len() });
    }
    let (head, payload) = checked.split_at(HEAD);
    let found = head.last_chunk().copied().map_or(world, Digest::from_bytes);
    if found != world {
        return Err(SnapshotError::OtherShop { found, here: world });
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(name: &[u8]) -> Digest {
        Digest::of(name)
    }

    #[test]
    fn what_was_sealed_is_found_again() {
        let bytes = seal(Kind::Session, world(b"here"), &[1, 2, 3]);
        assert_eq!(unseal(Kind::Session, world(b"here"), &bytes), Ok([1, 2, 3]));
        assert_eq!(bytes.len(), "[1,2,3]".len() + 21, "the envelope costs 21 bytes");
    }

    #[test]
    fn every_changed_or_lost_byte_is_noticed() {
        let open = |bytes: &[u8]| unseal::<[u8; 3]>(Kind::Env, world(b"here"), bytes);
        let bytes = seal(Kind::Env, world(b"here"), &[1, 2, 3]);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(open(&changed).is_err(), "byte {at}");
            assert!(open(&bytes[..at]).is_err(), "the first {at} bytes");
        }
    }

    #[test]
    fn a_refusal_says_which() {
        let here = world(b"here");
        let bytes = seal(Kind::Session, here, &0);
        let refused = |kind, world, bytes: &[u8]| unseal::<u8>(kind, world, bytes).expect_err("refused");
        assert_eq!(refused(Kind::Env, here, &bytes), SnapshotError::Foreign("an environment"));
        assert_eq!(refused(Kind::Session, here, b"{}"), SnapshotError::Foreign("a session"));
        assert_eq!(refused(Kind::Session, here, b"WSse\x02"), SnapshotError::Version { found: 2 });
        let other = world(b"other");
        let expected = SnapshotError::OtherShop { found: here, here: other };
        assert_eq!(refused(Kind::Session, other, &bytes), expected);
    }
}
