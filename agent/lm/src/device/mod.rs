//! Devices: the choice of one, and the GPU backend of the model.
//!
//! [`Compute::choose`] selects the device, the dtype and the kernels. f32 on the CPU uses the CPU backend
//! ([`Decoder`](crate::Decoder), [`Pass`](crate::Pass)); every other combination uses [`DeviceModel`], which
//! decodes with a [`DeviceCache`] and records a [`DevicePass`] for gradients. Weights, gradients and moments
//! on a device are [`Parameters`]. [`adamw`] is the arithmetic of an optimizer step; the trainer decides when
//! to make one.

pub(crate) mod compute;
mod gpu;

pub use crate::device::compute::{Compute, ComputeDtype, DeviceRequest, KernelChoice};
pub use crate::ops::gpu::adamw;
pub use crate::ops::gpu::reference_check::ReferenceCheck;
pub use crate::qwen2::gpu::{DeviceAdapter, DeviceCache, DeviceMemory, DeviceModel, DevicePass, Parameters};
pub use webshop_kernels::gpu::launch::Kernels;
