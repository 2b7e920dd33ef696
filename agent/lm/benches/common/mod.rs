//! Inputs and measures shared by the benchmarks `cpu` and `gpu`.

use rayon::prelude::*;

/// Token ids without a short period.
pub(crate) fn ids(count: usize, salt: usize, vocab_size: usize) -> Vec<u32> {
    (0..count).map(|i| ((i * 7919 + i * i + salt * 104_729) % vocab_size) as u32).collect()
}

/// Adds a gradient to a sum, which is empty before the first, on all threads.
pub(crate) fn add(sum: &mut Vec<f32>, gradient: Vec<f32>) {
    const PIECE: usize = 1 << 18;
    if sum.is_empty() {
        *sum = gradient;
        return;
    }
    let pieces = sum.par_chunks_mut(PIECE).zip(gradient.par_chunks(PIECE));
    pieces.for_each(|(sum, gradient)| sum.iter_mut().zip(gradient).for_each(|(a, b)| *a += b));
}

/// Peak resident memory of this process in bytes; `None` if `/proc` is not available.
pub(crate) fn peak_resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kib| kib * 1024)
}
