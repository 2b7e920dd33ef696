//! Standard output, which carries data only; logs and progress go to stderr.
//!
//! `outln!` is `println!` that returns an error instead of panicking, so that a full disk is reported like
//! any other error. A closed pipe (`webshop … | head`) is no error: see [`is_closed_by_reader`].

use std::fmt;
use std::io::{ErrorKind, Write, stdout};
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Serialize;

/// Prints a line on standard output; evaluates to `anyhow::Result<()>`.
macro_rules! outln {
    ($($text:tt)*) => { $crate::output::write_line(format_args!($($text)*)) };
}
pub(crate) use outln;

/// The function behind `outln!`.
pub(crate) fn write_line(text: fmt::Arguments<'_>) -> anyhow::Result<()> {
    writeln!(stdout(), "{text}").context(CANNOT_WRITE)
}

/// Refuses an output that exists. `remedy` says what to do instead.
pub(crate) fn ensure_new(path: &Path, remedy: &str) -> anyhow::Result<()> {
    ensure!(!path.exists(), "`{}` already exists; {remedy}", path.display());
    Ok(())
}

/// The values as JSON lines.
pub(crate) fn json_lines<T: Serialize>(values: &[T]) -> anyhow::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for value in values {
        serde_json::to_writer(&mut lines, value)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// Context of every failed write to standard output.
pub(crate) const CANNOT_WRITE: &str = "cannot write to standard output";

/// Whether `error` means that the reader of standard output closed the pipe.
pub(crate) fn is_closed_by_reader(error: &anyhow::Error) -> bool {
    let cause = error.root_cause().downcast_ref::<std::io::Error>();
    cause.is_some_and(|cause| cause.kind() == ErrorKind::BrokenPipe)
}
