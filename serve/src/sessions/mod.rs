//! The table of sessions: opening, finding, forking and closing them, a limit on their number, and the idle ones.
//!
//! A session belongs to the [`Interface`] that opened it. It has a number, counted over all interfaces and never
//! used twice; both together are its [`SessionId`]. An [`OpenSession`] is a shared handle to one. Each
//! session has a lock of its own, so that requests to one session are served one after the other and do not wait
//! for those to other sessions.
//!
//! The table has no clock: its owner calls [`Sessions::expire_idle`] at regular intervals, and a session that was
//! not found for [`Limits::idle_intervals`] of them is dropped. Sessions that live as long as a connection are
//! not.
//!
//! A table may keep its sessions in a folder ([`store`]): those that live without a connection have every state written
//! there before it is shown, and a later table with that folder goes on with them.
//!
//! There is no network here, and no text of a protocol.

pub(crate) mod episode;
mod id;
pub(crate) mod owned;
pub(crate) mod session;
mod store;
pub(crate) mod stored;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use webshop_env::{ObservationMode, Shop, ShopEnv};
use webshop_products::{Seed, Split};

use crate::counters::{Counters, Counts};
use crate::error::{ServeError, SessionError};
use crate::reset::ResetRequest;
pub use id::{Interface, SessionId};
use session::{OpenSession, Stream};
use store::{Contents, Store};
use stored::SessionName;

/// How long a session lives if nobody closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// As long as the connection, or the session of a protocol, that opened it and closes it.
    Connection,
    /// Until it was idle for too long.
    Idle,
}

/// What a reset takes if its request does not say.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    /// The split that goals are drawn from.
    pub split: Split,
    /// Actions after which an episode is truncated.
    pub max_steps: u32,
    /// The form of observations.
    pub observation: ObservationMode,
    /// The seed of the streams of goals.
    pub seed: Seed,
}

/// How many sessions there may be, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest number of sessions, over all interfaces.
    pub max_sessions: usize,
    /// Calls of [`Sessions::expire_idle`] after which a session that was not used is dropped.
    pub idle_intervals: u32,
}

/// All sessions of a server.
#[derive(Debug)]
pub struct Sessions {
    shop: Arc<Shop>,
    defaults: Defaults,
    limits: Limits,
    table: Mutex<Table>,
    /// Keeps the sessions that live without a connection, and the number of the next one.
    store: Option<Arc<Store>>,
    counters: [Arc<Counters>; Interface::ALL.len()],
}

#[derive(Debug, Default)]
struct Table {
    entries: BTreeMap<SessionId, Entry>,
    next_ordinal: u64,
    /// Sessions that are being made.
    reserved: usize,
}

#[derive(Debug)]
struct Entry {
    session: OpenSession,
    lifetime: Lifetime,
    /// Whether a connection uses the session without owning it.
    attached: Arc<AtomicBool>,
    /// Intervals since the session was last used.
    idle: AtomicU32,
}

impl Entry {
    fn new(session: OpenSession, lifetime: Lifetime) -> Entry {
        Entry { session, lifetime, attached: Arc::default(), idle: AtomicU32::new(0) }
    }
}

/// The use of a session by a connection that does not own it; dropping it ends the use.
#[derive(Debug)]
pub(crate) struct Attachment(Arc<AtomicBool>);

impl Drop for Attachment {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Sessions {
    /// An empty table over a shop.
    ///
    /// # Errors
    /// [`SessionError::EmptySplit`] if the default split has no goals.
    pub fn new(shop: Arc<Shop>, defaults: Defaults, limits: Limits) -> Result<Sessions, SessionError> {
        if shop.goals().split(defaults.split).is_empty() {
            return Err(SessionError::EmptySplit(defaults.split));
        }
        let counters = Interface::ALL.map(|_| Arc::default());
        Ok(Sessions { shop, defaults, limits, table: Mutex::default(), store: None, counters })
    }

    /// A table that keeps its sessions in a folder, with those that are there. They count as used now, and may be more
    /// than the limit: then others are refused until there is room.
    ///
    /// # Errors
    /// If the default split has no goals, or the folder cannot be used, is in use, or has sessions of another shop or of
    /// another version.
    pub fn open_persistent(
        folder: &Path,
        shop: Arc<Shop>,
        defaults: Defaults,
        limits: Limits,
    ) -> Result<Sessions, ServeError> {
        let (store, Contents { next_ordinal, sessions: stored }) = Store::open(folder, &shop)?;
        let store = Arc::new(store);
        let sessions = Sessions { store: Some(Arc::clone(&store)), ..Sessions::new(shop, defaults, limits)? };
        let mut table = Table { next_ordinal, ..Table::default() };
        for (id, stored) in stored {
            // Its client names it, and the name was not written any more: nobody can find it.
            if id.interface == Interface::Mcp && stored.name.is_none() {
                store.remove(id);
                continue;
            }
            match sessions.empty(id, Lifetime::Idle).with_stored(stored) {
                Ok(session) => drop(table.entries.insert(id, Entry::new(session, Lifetime::Idle))),
                Err(error) => store.refuse(id, &error)?,
            }
        }
        let (n_kept, folder) = (table.entries.len(), folder.display());
        tracing::info!("{n_kept} sessions of `{folder}` go on");
        if n_kept > limits.max_sessions {
            tracing::warn!("they are more than `--max-sessions`, so that new ones are refused for now");
        }
        *sessions.table() = table;
        Ok(sessions)
    }

    /// Whether a reset by this request would find its goal, in any session.
    ///
    /// # Errors
    /// The error of that reset.
    pub fn check(&self, request: &ResetRequest) -> Result<(), SessionError> {
        let stream = Stream { defaults: self.defaults, ordinal: 0 };
        stream.goal(self.shop.goals(), 0, request.goal).map(|_| ())
    }

    /// Opens a session without an episode.
    ///
    /// # Errors
    /// [`SessionError::Full`].
    pub fn open(&self, interface: Interface, lifetime: Lifetime) -> Result<OpenSession, SessionError> {
        self.add(interface, lifetime, |session| session)
    }

    /// Opens `n` sessions without episodes, or none.
    ///
    /// # Errors
    /// [`SessionError::TooMany`] or [`SessionError::Full`].
    pub fn open_many(
        &self,
        interface: Interface,
        lifetime: Lifetime,
        n: usize,
    ) -> Result<Vec<OpenSession>, SessionError> {
        self.add_many(interface, lifetime, n, |session| session)
    }

    /// Opens a session in the state of a snapshot.
    ///
    /// # Errors
    /// [`SessionError::Snapshot`] or [`SessionError::Full`].
    pub fn restore(&self, interface: Interface, snapshot: &[u8]) -> Result<OpenSession, SessionError> {
        let env = ShopEnv::restore(Arc::clone(&self.shop), snapshot)?;
        self.add(interface, Lifetime::Idle, |session| session.with_env(env.clone()))
    }

    /// Opens `n` copies of a session, or none. A copy has the episode of the original and a stream of its own.
    ///
    /// # Errors
    /// [`SessionError::TooMany`] or [`SessionError::Full`].
    pub fn fork(&self, session: &OpenSession, n: usize) -> Result<Vec<OpenSession>, SessionError> {
        self.add_many(session.id().interface, Lifetime::Idle, n, |empty| session.copied_into(empty))
    }

    /// The session with this number at an interface. It counts as used. Those of connections are found by their connections
    /// only, because numbers can be guessed.
    ///
    /// # Errors
    /// [`SessionError::NoSuchSession`].
    pub fn find(&self, interface: Interface, ordinal: u64) -> Result<OpenSession, SessionError> {
        let table = self.table();
        let id = SessionId { interface, ordinal };
        let entry = table.entries.get(&id).filter(|entry| entry.lifetime == Lifetime::Idle);
        let entry = entry.ok_or_else(|| SessionError::NoSuchSession(id.to_string()))?;
        entry.idle.store(0, Ordering::Relaxed);
        Ok(entry.session.clone())
    }

    /// As [`Sessions::find`], with the name as a client gave it.
    ///
    /// # Errors
    /// [`SessionError::NoSuchSession`].
    pub fn find_named(&self, interface: Interface, name: &str) -> Result<OpenSession, SessionError> {
        let no_such = || SessionError::NoSuchSession(name.to_owned());
        let ordinal: u64 = name.parse().map_err(|_| no_such())?;
        // One session has one name: numbers also parse with signs and leading zeros.
        if ordinal.to_string() != name {
            return Err(no_such());
        }
        self.find(interface, ordinal)
    }

    /// Attaches a connection to a session that it does not own; the session is not idle meanwhile.
    ///
    /// # Errors
    /// [`SessionError::Attached`] if another connection is, or [`SessionError::NoSuchSession`].
    pub(crate) fn attach(
        &self,
        interface: Interface,
        name: &str,
    ) -> Result<(OpenSession, Attachment), SessionError> {
        let session = self.find_named(interface, name)?;
        let table = self.table();
        let entry = table.entries.get(&session.id());
        let attached = &entry.ok_or_else(|| SessionError::NoSuchSession(name.to_owned()))?.attached;
        if attached.swap(true, Ordering::Acquire) {
            return Err(SessionError::Attached(name.to_owned()));
        }
        Ok((session, Attachment(Arc::clone(attached))))
    }

    /// Closes a session; whether there was one.
    pub fn close(&self, id: SessionId) -> bool {
        let closed = self.table().entries.remove(&id);
        closed.inspect(|entry| entry.session.forget()).is_some()
    }

    /// The numbers and names of an interface's sessions that clients name, ascending by number.
    pub(crate) fn named(&self, interface: Interface) -> Vec<(u64, SessionName)> {
        let table = self.table();
        let sessions = table.entries.values().map(|entry| &entry.session);
        let named = sessions.filter(|session| session.id().interface == interface);
        named.filter_map(|session| Some((session.id().ordinal, session.name()?))).collect()
    }

    /// The numbers of an interface's sessions, ascending.
    pub fn ordinals(&self, interface: Interface) -> Vec<u64> {
        let table = self.table();
        table.entries.keys().filter(|id| id.interface == interface).map(|id| id.ordinal).collect()
    }

    /// The number of sessions.
    pub fn len(&self) -> usize {
        self.table().entries.len()
    }

    /// Whether there is no session.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts an interval of time, and drops the sessions that were idle for too many.
    pub fn expire_idle(&self) {
        let limit = self.limits.idle_intervals;
        let mut dropped = Vec::new();
        self.table().entries.retain(|_, entry| {
            let is_used = entry.lifetime == Lifetime::Connection || entry.attached.load(Ordering::Acquire);
            if is_used {
                entry.idle.store(0, Ordering::Relaxed);
            }
            let stays = is_used || entry.idle.fetch_add(1, Ordering::Relaxed) < limit;
            if !stays {
                dropped.push(entry.session.clone());
            }
            stays
        });
        dropped.iter().for_each(OpenSession::forget);
    }

    /// The shop.
    pub fn shop(&self) -> &Arc<Shop> {
        &self.shop
    }

    /// What a reset takes if its request does not say.
    pub fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// The largest number of sessions.
    pub fn max_sessions(&self) -> usize {
        self.limits.max_sessions
    }

    /// What the sessions of an interface did.
    pub fn counts(&self, interface: Interface) -> Counts {
        self.counters[interface as usize].counts()
    }

    /// Adds the session that `fill` makes of an empty one.
    fn add(
        &self,
        interface: Interface,
        lifetime: Lifetime,
        fill: impl Fn(OpenSession) -> OpenSession,
    ) -> Result<OpenSession, SessionError> {
        let mut added = self.add_many(interface, lifetime, 1, fill)?;
        Ok(added.pop().expect("one session was added"))
    }

    /// Adds `n` sessions that `fill` makes of empty ones, or none.
    fn add_many(
        &self,
        interface: Interface,
        lifetime: Lifetime,
        n: usize,
        fill: impl Fn(OpenSession) -> OpenSession,
    ) -> Result<Vec<OpenSession>, SessionError> {
        let ordinals = self.reserve(interface, n)?;
        self.counters[interface as usize].opened(n as u64);
        let sessions = ordinals.map(|ordinal| {
            let session = fill(self.empty(SessionId { interface, ordinal }, lifetime));
            session.keep();
            session
        });
        let sessions: Vec<OpenSession> = sessions.collect();
        let mut table = self.table();
        table.reserved -= n;
        table.entries.extend(sessions.iter().map(|one| (one.id(), Entry::new(one.clone(), lifetime))));
        Ok(sessions)
    }

    /// Takes room for `n` sessions, and their numbers. The sessions are made without the lock, and the room is given back
    /// when they are in the table.
    fn reserve(&self, interface: Interface, n: usize) -> Result<Range<u64>, SessionError> {
        let mut table = self.table();
        let (active, limit) = (table.entries.len() + table.reserved, self.limits.max_sessions);
        if limit.saturating_sub(active) < n {
            self.counters[interface as usize].refused();
            return Err(match n > limit {
                true => SessionError::TooMany { n, limit },
                false => SessionError::Full { active, limit },
            });
        }
        let first = table.next_ordinal;
        table.next_ordinal += n as u64;
        table.reserved += n;
        if let Some(store) = &self.store {
            store.save_next(table.next_ordinal);
        }
        Ok(first..table.next_ordinal)
    }

    /// A session without an episode, which is not in the table.
    fn empty(&self, id: SessionId, lifetime: Lifetime) -> OpenSession {
        let counters = Arc::clone(&self.counters[id.interface as usize]);
        let stream = Stream { defaults: self.defaults, ordinal: id.ordinal };
        let store = self.store.clone().filter(|_| lifetime == Lifetime::Idle);
        OpenSession::new(id, Arc::clone(&self.shop), stream, counters, store)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // The table is consistent between any two statements that could panic.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
