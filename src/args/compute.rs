//! Flags that choose the device a model is computed on.

use webshop_lm::device::{Compute, ComputeDtype, DeviceRequest, KernelChoice};
use webshop_training::Backend;

/// Device, number format and kernels.
#[derive(clap::Args, Clone)]
pub(crate) struct ComputeArgs {
    /// Device: `cpu`, `cuda`, `cuda:N`, or `auto` for the first GPU if one is usable, else the CPU
    #[arg(long, default_value = "cpu", value_name = "DEVICE")]
    device: DeviceRequest,
    /// Number format of weights and activations: `f32` or `bf16` [default: f32 on the CPU, bf16 on a GPU]
    #[arg(long, value_name = "FORMAT")]
    dtype: Option<ComputeDtype>,
    /// Implementation of the tensor operations
    #[arg(long, value_enum, default_value = "custom", value_name = "NAME")]
    kernels: KernelsArg,
}

/// [`KernelChoice`] as a flag, and how kernels are launched.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
enum KernelsArg {
    /// The program's own kernels, optimized for the device
    Custom,
    /// The same kernels, launched one by one where `custom` replays a CUDA graph of each decoding step; the results are equal
    Eager,
    /// candle's operations, for testing: slower, and on the CPU they follow the GPU's code path
    Reference,
}

impl ComputeArgs {
    /// The flags that differ from their defaults, each after a space.
    pub(crate) fn flags(&self) -> String {
        let mut text = String::new();
        if self.device != DeviceRequest::Cpu {
            text += &format!(" --device {}", self.device);
        }
        if let Some(dtype) = self.dtype {
            text += &format!(" --dtype {dtype}");
        }
        match self.kernels {
            KernelsArg::Custom => (),
            KernelsArg::Eager => text += " --kernels eager",
            KernelsArg::Reference => text += " --kernels reference",
        }
        text
    }

    /// One of these flags that is given with another value than its default.
    pub(crate) fn given(&self) -> Option<String> {
        self.flags().split_whitespace().next().map(str::to_owned)
    }

    /// The backend to estimate memory for. A GPU is not needed: one that cannot be opened has an unknown memory, and the reason
    /// is the second result.
    pub(crate) fn backend(&self) -> anyhow::Result<(Backend, Option<String>)> {
        match self.choose() {
            Ok(compute) => Ok((Backend::of(&compute)?, None)),
            Err(error) if matches!(self.device, DeviceRequest::Cuda(_)) => {
                let dtype = self.dtype.unwrap_or(ComputeDtype::Bf16);
                Ok((Backend::Gpu { dtype, memory: None }, Some(error.to_string())))
            }
            Err(error) => Err(error),
        }
    }

    /// The device. Logged, with the reason for it, unless it is the default.
    pub(crate) fn choose(&self) -> anyhow::Result<Compute> {
        let kernels = match self.kernels {
            KernelsArg::Custom | KernelsArg::Eager => KernelChoice::Custom,
            KernelsArg::Reference => KernelChoice::Reference,
        };
        let mut compute = Compute::choose(self.device, self.dtype, kernels)?;
        if self.kernels == KernelsArg::Eager {
            compute = compute.eager();
        }
        if self.device != DeviceRequest::Cpu || !compute.uses_cpu_backend() {
            tracing::info!("computing on: {compute}");
        }
        Ok(compute)
    }
}
