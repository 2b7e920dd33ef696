//! The limit on open files, of which every connection is one.

/// The most open files that are asked for; enough for any number of connections that one server has.
#[cfg(unix)]
const MOST: u64 = 65_536;

/// Raises this process's limit on open files as far as the system allows, and returns the limit in force; `None` if the
/// system has none that can be read.
///
/// A usual limit is 1,024, which fewer connections reach than a server has sessions by default.
#[cfg(unix)]
pub fn raise_open_files() -> Option<u64> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};

    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let raised = hard.min(MOST);
    let is_raised = soft < raised && setrlimit(Resource::RLIMIT_NOFILE, raised, hard).is_ok();
    Some(if is_raised { raised } else { soft })
}

/// As on other systems: there is no such limit here.
#[cfg(not(unix))]
pub fn raise_open_files() -> Option<u64> {
    None
}
