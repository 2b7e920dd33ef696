//! A work queue with dependencies between items.
//!
//! [`run_in_order`] starts items in order, each after the item that it waits for. The assignment of items to
//! workers depends on timing, so results must not depend on it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, PoisonError};

/// The state of an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Waiting,
    Taken,
    Done,
}

/// Calls `work` on the positions of all items, on `n_workers` threads. Item `i` starts after item
/// `waits_for[i]`, if given, is done. After an error no further item starts; when the running items have
/// ended, the errors of all failed items are returned, in the order of the items.
///
/// `waits_for` must not have cycles.
pub(super) fn run_in_order<E: Send>(
    n_workers: usize,
    waits_for: &[Option<usize>],
    work: impl Fn(usize) -> Result<(), E> + Sync,
) -> Vec<E> {
    let progress = Mutex::new(vec![Progress::Waiting; waits_for.len()]);
    let errors: Mutex<Vec<(usize, E)>> = Mutex::new(Vec::new());
    let changed = Condvar::new();
    let next = || {
        let mut state = progress.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let is_open = |item: &usize| state[*item] == Progress::Waiting;
            let is_ready = |item: &usize| waits_for[*item].is_none_or(|other| state[other] == Progress::Done);
            let open: Vec<usize> = (0..waits_for.len()).filter(is_open).collect();
            if open.is_empty() {
                return None;
            }
            if let Some(item) = open.into_iter().find(is_ready) {
                state[item] = Progress::Taken;
                return Some(item);
            }
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    };
    let finish = |item: usize, has_failed: bool| {
        let mut state = progress.lock().unwrap_or_else(PoisonError::into_inner);
        state[item] = Progress::Done;
        if has_failed {
            // No further item starts.
            state.fill(Progress::Done);
        }
        changed.notify_all();
    };
    std::thread::scope(|scope| {
        for _ in 0..n_workers {
            scope.spawn(|| {
                while let Some(item) = next() {
                    // A panic must not leave other workers waiting.
                    let ended = catch_unwind(AssertUnwindSafe(|| work(item)));
                    finish(item, !matches!(ended, Ok(Ok(()))));
                    match ended {
                        Ok(Ok(())) => (),
                        Ok(Err(error)) => {
                            errors.lock().unwrap_or_else(PoisonError::into_inner).push((item, error))
                        }
                        Err(panic) => resume_unwind(panic),
                    }
                }
            });
        }
    });
    let mut errors = errors.into_inner().unwrap_or_else(PoisonError::into_inner);
    errors.sort_by_key(|(item, _)| *item);
    errors.into_iter().map(|(_, error)| error).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn every_item_is_done_once_and_after_the_item_it_waits_for() {
        for n_workers in [1, 2, 5] {
            let done = Mutex::new(Vec::new());
            let waits_for = [Some(3), None, Some(1), None, Some(3), Some(2)];
            let work = |item| {
                done.lock().unwrap().push(item);
                Ok::<(), ()>(())
            };
            assert_eq!(run_in_order(n_workers, &waits_for, work), []);
            let done = done.into_inner().unwrap();
            let place = |item: usize| done.iter().position(|other| *other == item).unwrap();
            assert_eq!(done.len(), 6, "{done:?}");
            for (item, other) in waits_for.iter().enumerate() {
                assert!(other.is_none_or(|other| place(other) < place(item)), "{done:?}");
            }
        }
    }

    #[test]
    fn one_worker_keeps_the_order() {
        let done = Mutex::new(Vec::new());
        let work = |item| {
            done.lock().unwrap().push(item);
            Ok::<(), ()>(())
        };
        assert_eq!(run_in_order(1, &[None, Some(2), None, None], work), []);
        assert_eq!(done.into_inner().unwrap(), [0, 2, 1, 3]);
    }

    #[test]
    fn after_an_error_no_further_item_starts() {
        let begun = Mutex::new(Vec::new());
        let work = |item| {
            begun.lock().unwrap().push(item);
            if item == 1 { Err("broken") } else { Ok(()) }
        };
        assert_eq!(run_in_order(1, &[None, None, None, Some(1)], work), ["broken"]);
        assert_eq!(begun.into_inner().unwrap(), [0, 1]);
    }

    #[test]
    fn all_errors_are_returned_in_order() {
        let both = Barrier::new(2);
        let work = |item| {
            both.wait();
            Err::<(), usize>(item)
        };
        assert_eq!(run_in_order(2, &[None, None, None], work), [0, 1]);
    }
}
