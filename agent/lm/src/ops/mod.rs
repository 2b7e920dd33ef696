//! ops.

pub mod cpu;
pub mod gpu;
