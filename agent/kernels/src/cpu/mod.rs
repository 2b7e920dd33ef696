//! CPU kernels: functions over `&[f32]` with the same bits on every machine.

pub mod matmul;
pub mod attention;
pub mod decode_attention;
pub mod rows;
pub mod rope;
pub mod math;
pub mod threads;
