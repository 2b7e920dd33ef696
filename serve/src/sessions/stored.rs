//! The state of a session as a file holds it.
//!
//! ```text
//! webshop-session-1 DIGEST      the layout, and the digest of all bytes of the next line
//! {"n_resets": 1, …}            a [`StoredSession`] as JSON
//! ```
//!
//! The episode is a snapshot of its environment, which has a check of its own and names its shop; beside it stands what
//! the environment does not know.

use serde::{Deserialize, Serialize};
use webshop_products::Digest;

use super::episode::{LastAction, Origin};
use crate::reset::ResetRequest;

/// The first word of a file; a change of [`StoredSession`] changes its number.
const LAYOUT: &str = "webshop-session-1";

/// What the first word of every layout begins with.
const ANY_LAYOUT: &str = "webshop-session-";

/// A session without its id, which the name of its file has.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredSession {
    pub(super) n_resets: u64,
    pub(super) name: Option<SessionName>,
    /// `None` before the first reset.
    pub(super) episode: Option<StoredEpisode>,
}

/// What a client calls a session, and the request with which it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionName {
    pub(crate) text: String,
    pub(crate) reset: ResetRequest,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredEpisode {
    /// A snapshot of the environment, in base64.
    pub(super) snapshot: String,
    pub(super) origin: Origin,
    pub(super) last: Option<LastAction>,
}

/// A file that holds no session of this layout.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StoredError {
    /// Another version of this program wrote the file, with this layout.
    Layout(String),
    /// Bytes were changed, added or lost since it was written; the text says how that is known.
    Damaged(String),
}

impl StoredSession {
    /// The content of a file.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let json = serde_json::to_string(self).expect("sessions hold texts and finite numbers");
        format!("{LAYOUT} {}\n{json}", Digest::of(json.as_bytes())).into_bytes()
    }

    /// The session of a file.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<StoredSession, StoredError> {
        let damaged = |reason: &str| StoredError::Damaged(reason.to_owned());
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is not valid UTF-8"))?;
        let (head, json) = text.split_once('\n').ok_or_else(|| damaged("it ends too early"))?;
        let (layout, digest) = head.split_once(' ').ok_or_else(|| damaged("its first line is wrong"))?;
        if layout != LAYOUT {
            return Err(match layout.starts_with(ANY_LAYOUT) {
                true => StoredError::Layout(layout.to_owned()),
                false => damaged("its first line is wrong"),
            });
        }
        if digest != Digest::of(json.as_bytes()).to_string() {
            return Err(damaged("its digest is wrong"));
        }
        serde_json::from_str(json).map_err(|error| StoredError::Damaged(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reset::GoalRequest;
    use webshop_products::Split;

    fn session() -> StoredSession {
        let reset = ResetRequest::new(GoalRequest::Seed { split: None, seed: u64::MAX });
        let origin = Origin { episode_id: Some("ü\n".into()), split: Split::Test, seed: None };
        let last = Some(LastAction { reward: 0.1 + 0.2, noop: None, breakdown: None });
        StoredSession {
            n_resets: 2,
            name: Some(SessionName { text: "../a".into(), reset }),
            episode: Some(StoredEpisode { snapshot: "AA==".into(), origin, last }),
        }
    }

    #[test]
    fn a_stored_session_is_read_back() {
        assert_eq!(StoredSession::from_bytes(&session().to_bytes()), Ok(session()));
    }

    #[test]
    fn every_changed_or_lost_byte_is_an_error() {
        let bytes = session().to_bytes();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(StoredSession::from_bytes(&changed).is_err(), "byte {at}");
            assert!(StoredSession::from_bytes(&bytes[..at]).is_err(), "the first {at} bytes");
        }
    }

    #[test]
    fn another_layout_is_no_damage() {
        let read = StoredSession::from_bytes(b"webshop-session-2 0000000000000000\n{}");
        assert_eq!(read, Err(StoredError::Layout("webshop-session-2".into())));
    }
}
