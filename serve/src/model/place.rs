//! A place in the queue of a model.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedSemaphorePermit;

/// A place in the queue, which the job and its client hold. It is free when either of them drops it: when the job has a
/// lane, or when the client has gone.
#[derive(Clone, Debug)]
pub(super) struct Place(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl Place {
    pub(super) fn new(permit: OwnedSemaphorePermit) -> Place {
        Place(Arc::new(Mutex::new(Some(permit))))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
