//! The arguments of the command line, which need not be those of the process.

use std::ffi::OsString;
use std::sync::OnceLock;

static ARGUMENTS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Keeps the arguments of the one command that runs in this process.
///
/// # Errors
/// If a command was run before.
pub(crate) fn keep(arguments: Vec<OsString>) -> anyhow::Result<()> {
    let kept = ARGUMENTS.set(arguments);
    kept.map_err(|_| {
        anyhow::anyhow!("a process runs one command of webshop; run this one in another process")
    })
}

/// The arguments that were kept, the name of the program first.
pub(crate) fn kept() -> &'static [OsString] {
    ARGUMENTS.get().map_or(&[], Vec::as_slice)
}
