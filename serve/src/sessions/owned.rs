//! Sessions that are closed with what opened them.

use std::sync::Arc;

use super::session::OpenSession;
use super::{Interface, Lifetime, Sessions};
use crate::error::SessionError;

/// A session that is closed when this value is dropped.
pub(crate) struct Owned {
    pub(crate) session: OpenSession,
    sessions: Arc<Sessions>,
}

impl Owned {
    /// Opens a session without an episode.
    ///
    /// # Errors
    /// [`SessionError::Full`].
    pub(crate) fn open(sessions: &Arc<Sessions>, interface: Interface) -> Result<Owned, SessionError> {
        let session = sessions.open(interface, Lifetime::Connection)?;
        Ok(Owned { session, sessions: Arc::clone(sessions) })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.sessions.close(self.session.id());
    }
}
