//! Where models are computed, and the engine for a GPU.
//!
//! [`Compute::choose`] decides on device, format and kernels. f32 on the processor is the first engine's, [`Qwen2`] and
//! [`Decoder`]. Whatever else it is, a [`DeviceModel`] computes it: continuing the lanes of a [`DeviceCache`], generating
//! without leaving the device as a [`Stepper`], or recording a [`DevicePass`] for gradients, which are [`Parameters`] as
//! the weights are. [`adamw`] is the arithmetic of an optimizer's step; steps are the trainer's.
//!
//! [`Qwen2`]: crate::qwen2::Qwen2
//! [`Decoder`]: crate::qwen2::cpu::decoder::Decoder

pub mod compute;
pub mod gpu;


pub use crate::device::compute::{Compute, ComputeDtype, DeviceRequest, KernelChoice};
pub use crate::ops::gpu::adamw;
pub use crate::ops::gpu::reference_check::TwinCheck;
pub use webshop_kernels::gpu::launch::{Kernels, Replay};
pub use crate::qwen2::gpu::{DeviceCache, DeviceModel, DevicePass, Parameters, Stepper};
