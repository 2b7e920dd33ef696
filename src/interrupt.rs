//! Ctrl-C: once, the work under way is put aside; twice, it is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that is set by the first Ctrl-C, which is answered with `what` is done about it. The second ends the process.
pub fn stop_on_interrupt(what: &'static str) -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!("{what}; press Ctrl-C again to stop at once");
    })?;
    Ok(stop)
}
