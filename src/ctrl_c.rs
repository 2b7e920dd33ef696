//! Ctrl-C: the first press asks the current work to stop cleanly, the second ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns a flag that the first Ctrl-C sets, printing `message` on stderr. The second exits with code 130.
pub(crate) fn stop_on_ctrl_c(message: &'static str) -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let requested = stop.clone();
    ctrlc::set_handler(move || {
        if requested.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!("{message}; press Ctrl-C again to stop at once");
    })?;
    Ok(stop)
}
