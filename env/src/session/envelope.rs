//! The byte format of snapshots.
//!
//! A snapshot is an envelope around a short payload:
//!
//! ```text
//! kind    4 bytes  the content: `WSse` a session, `WSen` an environment
//! version 1 byte   of the payload's layout, now 1
//! world   8 bytes  digest of the shop it belongs to (`Shop::snapshot_digest`)
//! payload          JSON
//! check   8 bytes  digest of all the bytes before it
//! ```
//!
//! [`seal`] makes one and [`unseal`] opens it or returns a [`SnapshotError`]. The payload is defined by
//! [`crate::Session`] and [`crate::ShopEnv`]. Search results and pages are never inside: they follow from the
//! state and the shop.

use serde::{Deserialize, Serialize};
use webshop_products::Digest;

/// The version of the payload's layout; snapshots of another version are refused.
const VERSION: u8 = 1;

/// Bytes before the payload.
const HEAD: usize = 4 + 1 + Digest::LEN;

/// The content of a snapshot.
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

/// Bytes that are not a snapshot of this shop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes are no snapshot, or one of another kind.
    #[error("the bytes are not a snapshot of {0}")]
    Foreign(&'static str),
    /// The layout has another version.
    #[error("the snapshot has layout {found}; this version reads layout {VERSION}")]
    Version {
        /// The version of the snapshot.
        found: u8,
    },
    /// Bytes were changed, added or lost since the snapshot was made.
    #[error("the snapshot is damaged: the checksum of its {n_bytes} bytes is wrong")]
    Damaged {
        /// The number of bytes.
        n_bytes: usize,
    },
    /// The snapshot was taken in a shop with another catalog, other goals or other rules.
    #[error("the snapshot belongs to the shop `{found}`; this is the shop `{here}`")]
    OtherShop {
        /// The shop of the snapshot.
        found: Digest,
        /// The shop that should restore it.
        here: Digest,
    },
    /// The checksum is right but the content is invalid.
    #[error("the snapshot has invalid content: {0}")]
    Impossible(String),
}

/// The snapshot of a state.
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

/// The payload for a state.
pub(crate) fn payload(state: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(state).expect("states hold numbers, texts and lists, which are all valid JSON")
}

/// The state in a snapshot of this kind and world.
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
    fn a_sealed_state_is_unsealed() {
        let bytes = seal(Kind::Session, world(b"here"), &[1, 2, 3]);
        assert_eq!(unseal(Kind::Session, world(b"here"), &bytes), Ok([1, 2, 3]));
        assert_eq!(bytes.len(), "[1,2,3]".len() + 21, "the envelope costs 21 bytes");
    }

    #[test]
    fn every_changed_or_lost_byte_is_an_error() {
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
    fn errors_name_the_reason() {
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
