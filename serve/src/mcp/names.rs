//! Sessions that a client names in its address, because every request of the protocol of 2026 stands alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::SessionError;
use crate::reset::ResetRequest;
use crate::sessions::session::OpenSession;
use crate::sessions::stored::SessionName;
use crate::sessions::{Interface, Lifetime, SessionId, Sessions};

/// The named sessions, by their names: their numbers, and what they began with.
#[derive(Debug)]
pub(super) struct Names(Mutex<BTreeMap<String, (u64, ResetRequest)>>);

/// Why a name does not lead to a session.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NameError {
    /// The name is in use for another task.
    #[error("session `{0}` began with another task; end it with DELETE, or take another name")]
    OtherTask(String),
    /// The session cannot begin.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl Names {
    /// The names of the sessions that are there already.
    pub(super) fn of(sessions: &Sessions) -> Names {
        let named = sessions.named(Interface::Mcp).into_iter();
        Names(Mutex::new(named.map(|(ordinal, name)| (name.text, (ordinal, name.reset))).collect()))
    }

    /// The session with this name, which begins with its first use. It counts as used.
    ///
    /// # Errors
    /// If the name is in use for another task, there is no such goal, or all sessions are in use.
    pub(super) fn open(
        &self,
        sessions: &Sessions,
        name: &str,
        reset: &ResetRequest,
    ) -> Result<OpenSession, NameError> {
        let mut names = self.names();
        if let Some((ordinal, begun)) = names.get(name)
            && let Ok(session) = sessions.find(Interface::Mcp, *ordinal)
        {
            let is_same = begun == reset;
            return if is_same { Ok(session) } else { Err(NameError::OtherTask(name.to_owned())) };
        }
        sessions.check(reset)?;
        let session = sessions.open(Interface::Mcp, Lifetime::Idle)?;
        session.reset_named(SessionName { text: name.to_owned(), reset: reset.clone() })?;
        // The names of sessions that were idle for too long go with them.
        let open: BTreeSet<u64> = sessions.ordinals(Interface::Mcp).into_iter().collect();
        names.retain(|_, (ordinal, _)| open.contains(ordinal));
        names.insert(name.to_owned(), (session.id().ordinal, reset.clone()));
        Ok(session)
    }

    /// Closes the session with this name; whether there was one.
    pub(super) fn close(&self, sessions: &Sessions, name: &str) -> bool {
        let named = self.names().remove(name);
        named.is_some_and(|(ordinal, _)| sessions.close(SessionId { interface: Interface::Mcp, ordinal }))
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<String, (u64, ResetRequest)>> {
        // The names are consistent between any two statements that could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
