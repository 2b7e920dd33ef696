//! Causes of failed HTTP requests.

use std::error::Error;
use std::io;

/// The message of the innermost error of a chain, which is the most specific one.
pub(crate) fn root_cause(error: &(dyn Error + 'static)) -> String {
    root(error).to_string()
}

/// Whether the connection was refused.
pub(crate) fn is_refused(error: &(dyn Error + 'static)) -> bool {
    let cause = root(error).downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::ConnectionRefused)
}

fn root<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root
}
