//! Memory of the process and of the machine, as Linux reports it.

use std::fs;

/// Bytes that this process uses; `None` if the system does not say.
pub(super) fn resident_bytes() -> Option<u64> {
    in_kilobytes("/proc/self/status", "VmRSS:")
}

/// Bytes that are free or can be freed, within the limit of the control group of this process.
pub(super) fn available_bytes() -> Option<u64> {
    let number = |path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let of_machine = in_kilobytes("/proc/meminfo", "MemAvailable:")?;
    let of_group = number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"));
    // Pages of files that nothing has used lately.
    let inactive = value("/sys/fs/cgroup/memory.stat", "inactive_file ").unwrap_or(0);
    let of_group =
        of_group.map_or(u64::MAX, |(limit, used)| limit.saturating_sub(used.saturating_sub(inactive)));
    Some(of_machine.min(of_group))
}

/// The value of `key`, which the file states in kilobytes, in bytes.
fn in_kilobytes(path: &str, key: &str) -> Option<u64> {
    Some(value(path, key)? * 1024)
}

/// The number behind `key`, with which its line begins.
fn value(path: &str, key: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}
