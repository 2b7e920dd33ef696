//! The arithmetic of a Qwen2 transformer: deterministic kernels for the CPU, and CUDA kernels for a GPU.
//!
//! [`cpu`] holds functions over `&[f32]`. [`cpu::matmul`] multiplies matrices, [`cpu::attention`] computes
//! the attention of a training pass and [`cpu::decode_attention`] that of generation with a KV cache,
//! [`cpu::rows`] holds row-wise operations (RMSNorm, SwiGLU, log-softmax), [`cpu::rope`] the table of rotary
//! angles, [`cpu::math`] the exponential and the reductions shared by all kernels, and [`cpu::threads`]
//! decides how many threads compute a product.
//!
//! [`gpu`] describes kernel launches as values ([`gpu::launch`]) and, with the feature `cuda`, compiles and
//! launches the sources in `gpu/cuda/`.
//!
//! **Determinism.** The CPU kernels compute the same bits on every machine. Each output element is one chain
//! of fused multiply-adds in an order written in the source (blocks of `DEPTH` products, sums in sixteen
//! lanes folded pairwise). It does not depend on the vector width, on the number of rows computed together,
//! on the number of threads, or on the C library. On x86-64 the widest of three compiled versions is chosen
//! at run time; a processor without FMA (before 2013) computes the same values, slowly.
//!
//! **Unsafe code.** This is the only crate of the workspace that contains `unsafe` blocks. The CPU kernels
//! use it to call a function compiled for a detected processor feature and to prefetch memory, the CUDA
//! launcher to call the driver and cuBLAS.
//!
//! The crate represents tensors only as slices and launch arguments; gradients of whole operations are in
//! `webshop-lm`.

#![warn(unreachable_pub)]

pub mod cpu;
pub mod gpu;
mod level;

#[cfg(any(test, feature = "test-support"))]
pub use level::levels;
pub(crate) use level::{Level, multiversion};
