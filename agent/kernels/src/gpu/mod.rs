//! GPU kernels: launch descriptions, the CUDA launcher and an emulator for tests.
//!
//! A [`launch::Launch`] names a kernel of `cuda/*.cu`, its grid and its arguments. A [`launch::Launcher`]
//! executes it: `launcher::CudaLauncher` on a GPU (feature `cuda`), or `emulated` on the CPU (feature
//! `test-support`). `source` joins the kernel sources to the text that both compile.

#[cfg(feature = "test-support")]
pub mod emulated;
pub mod launch;
#[cfg(feature = "cuda")]
pub mod launcher;
#[cfg(any(test, feature = "cuda", feature = "test-support"))]
mod source;
