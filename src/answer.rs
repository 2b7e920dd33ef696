//! Standard output: what a verb answers, as opposed to what it logs.
//!
//! `answer!` is `println!` that fails instead of panicking, so that a full disk is told like any other error. A
//! reader that has seen enough and closed its end is no error at all: [`has_left`] knows it.

use std::fmt;
use std::io::{ErrorKind, Write, stdout};

use anyhow::Context;

/// Prints a line on standard output, or fails.
macro_rules! answer {
    ($($text:tt)*) => { $crate::answer::line(format_args!($($text)*)) };
}
pub(crate) use answer;

/// What `answer!` does.
pub(crate) fn line(text: fmt::Arguments<'_>) -> anyhow::Result<()> {
    writeln!(stdout(), "{text}").context("cannot write to standard output")
}

/// Whether `error` says that whoever read standard output stopped reading.
pub(crate) fn has_left(error: &anyhow::Error) -> bool {
    let cause = error.root_cause().downcast_ref::<std::io::Error>();
    cause.is_some_and(|cause| cause.kind() == ErrorKind::BrokenPipe)
}
