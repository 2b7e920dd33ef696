//! Why a request came to nothing, in the words of what failed first.

use std::error::Error;
use std::io;

/// What is at the root of an error, which says more than what lies above.
pub fn cause(error: &(dyn Error + 'static)) -> String {
    root(error).to_string()
}

/// Whether nobody listens at the address.
pub fn is_refused(error: &(dyn Error + 'static)) -> bool {
    let cause = root(error).downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::ConnectionRefused)
}

fn root<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut root = error;
    while let Some(deeper) = root.source() {
        root = deeper;
    }
    root
}
