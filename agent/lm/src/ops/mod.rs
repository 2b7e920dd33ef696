//! The operations of a transformer on tensors with their gradients: one file per operation, one folder per
//! backend.
//!
//! [`cpu`] computes f32 tensors with the kernels of `webshop-kernels`; [`gpu`] computes on any candle device,
//! with custom CUDA kernels or with reference implementations made of candle's operations.

pub(crate) mod cpu;
pub(crate) mod gpu;
