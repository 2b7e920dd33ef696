//! run.

pub mod atomic;
pub mod branch;
pub mod checkpoint;
pub mod clock;
pub mod folder;
