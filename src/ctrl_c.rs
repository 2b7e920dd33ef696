//! Ctrl-C: the first press asks the current work to stop cleanly, the second ends the process. So does SIGTERM, which
//! schedulers of jobs send.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGTERM;
use signal_hook::flag::{register, register_conditional_shutdown};

/// Returns a flag that the first Ctrl-C sets, printing `message` on stderr. The second exits with code 130. SIGTERM does
/// the same without a message.
pub(crate) fn stop_on_ctrl_c(message: &'static str) -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let requested = stop.clone();
    register_conditional_shutdown(SIGTERM, 130, stop.clone())?;
    register(SIGTERM, stop.clone())?;
    ctrlc::set_handler(move || {
        if requested.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!("{message}; press Ctrl-C again to stop at once");
    })?;
    Ok(stop)
}
