//! The operations of a transformer on tensors, each with its gradient: one file an operation, one folder a
//! backend.
//!
//! [`cpu`] computes f32 tensors with the kernels of `webshop-kernels`; [`gpu`] computes on any candle device,
//! with custom CUDA kernels or with reference implementations made of candle's operations.

pub mod cpu;
pub mod gpu;
