//! gpu.

#[cfg(test)]
mod emulated;
pub mod launch;
#[cfg(feature = "cuda")]
pub mod launcher;
#[cfg(any(test, feature = "cuda"))]
pub mod source;
