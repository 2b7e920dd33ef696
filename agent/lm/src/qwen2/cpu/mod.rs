//! cpu.

pub mod decoder;
pub mod kv_cache;
pub mod memory;
pub mod pass;
