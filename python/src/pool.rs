//! Threads of a process, of which a fork of it has none.

use crate::convert::value_error;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Arc, Mutex, PoisonError};

/// A pool of threads that begins anew in a fork.
pub(crate) struct Pool {
    /// 0 for one a core.
    threads: usize,
    /// The process, and its threads.
    of_process: Option<(u32, Arc<ThreadPool>)>,
}

impl Pool {
    /// A pool without threads as yet.
    pub(crate) const fn new(threads: usize) -> Pool {
        Pool { threads, of_process: None }
    }

    /// The threads of this process, which begin with the first call.
    ///
    /// # Errors
    /// `ValueError`, if they cannot begin.
    pub(crate) fn threads(&mut self) -> PyResult<Arc<ThreadPool>> {
        let process = std::process::id();
        if let Some((_, threads)) = self.of_process.as_ref().filter(|(of, _)| *of == process) {
            return Ok(Arc::clone(threads));
        }
        let threads = ThreadPoolBuilder::new().num_threads(self.threads).build().map_err(value_error)?;
        let threads = Arc::new(threads);
        // Dropping the parent's would wake threads that do not exist here.
        std::mem::forget(self.of_process.replace((process, Arc::clone(&threads))));
        Ok(threads)
    }
}

/// Computes on threads of this process, as many as the command line was given, if it runs here.
///
/// # Errors
/// `ValueError`, if they cannot begin.
pub(crate) fn compute<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    static SHARED: Mutex<Option<Pool>> = Mutex::new(None);
    let threads = {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.get_or_insert_with(|| Pool::new(rayon::current_num_threads())).threads()?
    };
    Ok(py.detach(|| threads.install(work)))
}
