//! CPU kernels: functions over `&[f32]` with the same bits on every machine.

pub mod attention;
pub mod decode_attention;
pub mod math;
pub mod matmul;
pub mod rope;
pub mod rows;
pub mod threads;
