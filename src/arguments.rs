//! The arguments of the command line, which need not be those of the process.

use std::ffi::OsString;
use std::sync::OnceLock;

static ARGUMENTS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Keeps the arguments of the first call and returns them.
pub(crate) fn keep(arguments: Vec<OsString>) -> &'static [OsString] {
    ARGUMENTS.get_or_init(|| arguments)
}

/// The arguments that were kept, the name of the program first.
pub(crate) fn kept() -> &'static [OsString] {
    ARGUMENTS.get().map_or(&[], Vec::as_slice)
}
