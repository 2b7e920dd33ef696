//! Where models are computed, and the engine for a GPU.
//!
//! [`Compute::choose`] decides on device, format and kernels. f32 on the processor is the first engine's, [`Qwen2`] and
//! [`Decoder`]. Whatever else it is, a [`DeviceModel`] computes it: continuing the lanes of a [`DeviceCache`], generating
//! without leaving the device as a [`Stepper`], or recording a [`DevicePass`] for gradients, which are [`Parameters`] as
//! the weights are. [`adamw`] is the arithmetic of an optimizer's step; steps are the trainer's.
//!
//! [`Qwen2`]: crate::Qwen2
//! [`Decoder`]: crate::Decoder

mod compute;
mod gpu;

pub use self::compute::{Compute, ComputeDtype, DeviceRequest, KernelChoice};
pub use crate::fused::adamw;
pub use crate::fused::twins::TwinCheck;
pub use crate::kernels::launch::{Kernels, Replay};
pub use crate::qwen2::device::{DeviceCache, DeviceModel, DevicePass, Parameters, Stepper};
