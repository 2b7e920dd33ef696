//! Flags that choose the device a model is computed on.

use webshop_lm::device::{Compute, ComputeDtype, DeviceRequest, KernelChoice};

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

/// [`KernelChoice`] as a flag.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
enum KernelsArg {
    /// The program's own kernels, optimized for the device
    Custom,
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
        if self.kernels == KernelsArg::Reference {
            text += " --kernels reference";
        }
        text
    }

    /// The device. Logged, with the reason for it, unless it is the default.
    pub(crate) fn choose(&self) -> anyhow::Result<Compute> {
        let kernels = match self.kernels {
            KernelsArg::Custom => KernelChoice::Custom,
            KernelsArg::Reference => KernelChoice::Reference,
        };
        let compute = Compute::choose(self.device, self.dtype, kernels)?;
        if self.device != DeviceRequest::Cpu || !compute.uses_cpu_backend() {
            tracing::info!("computing on: {compute}");
        }
        Ok(compute)
    }
}
