//! Episodes that have been played: recorded, replayed and written out.

pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod transcript;
