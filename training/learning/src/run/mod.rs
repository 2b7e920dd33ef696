//! Files of a run: its folder, checkpoints, copies, atomic writes, and the clock.

pub(crate) mod atomic;
pub(crate) mod branch;
pub(crate) mod checkpoint;
pub(crate) mod clock;
pub(crate) mod episodes;
pub(crate) mod folder;
pub(crate) mod lock;
