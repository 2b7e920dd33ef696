//! What an observer is told.

use super::*;

/// Units of V*: of each begin the total and those done before, and the units that followed.
#[derive(Default)]
struct ValueUnits {
    begun: Mutex<Vec<(u64, u64, u64)>>,
    open: AtomicBool,
}

impl Observer for ValueUnits {
    fn begin(&self, phase: &str, total: u64, done: u64) {
        if phase == "V*" {
            self.begun.lock().expect("one thread at a time").push((total, done, 0));
            self.open.store(true, Ordering::Relaxed);
        }
    }

    fn advance(&self, units: u64, _note: &str) {
        if self.open.load(Ordering::Relaxed) {
            self.begun.lock().expect("one thread at a time").last_mut().expect("it was begun").2 += units;
        }
    }

    fn end(&self) {
        self.open.store(false, Ordering::Relaxed);
    }

    fn log(&self, _line: &str) {}
}

#[test]
fn the_progress_of_v_star_goes_on_from_batch_to_batch() {
    // Four batches of three goals draw from eight; each goal has four rollouts.
    let config = toy(&["rl.batch_episodes=3"]);
    let (_keep, run) = branch(&config);
    let units = ValueUnits::default();
    train(&config, &run, TrainOptions { observer: &units, ..TrainOptions::default() })
        .expect("a run to the end");
    assert_eq!(
        units.begun.into_inner().expect("one thread at a time"),
        [(32, 0, 12), (32, 12, 12), (32, 24, 8)]
    );
}
