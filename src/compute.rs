//! Flags that say where a model is computed, shared by the verbs that run one.

use webshop_agent::device::{Compute, ComputeDtype, DeviceRequest, KernelChoice};

/// Device, format and kernels.
#[derive(clap::Args, Clone)]
pub struct ComputeArgs {
    /// Where the model is computed: cpu, cuda, cuda:N, or auto for the first GPU if it can be used
    #[arg(long, default_value = "cpu", value_name = "DEVICE")]
    device: DeviceRequest,
    /// Format of weights and activations, f32 or bf16 [default: f32 on the processor, bf16 on a GPU]
    #[arg(long, value_name = "FORMAT")]
    dtype: Option<ComputeDtype>,
    /// Put plain operations in the place of our kernels, and the engine of a GPU in the place of the processor's own
    #[arg(long)]
    plain_kernels: bool,
}

impl ComputeArgs {
    /// The device, told with its reason where it is not what everybody has.
    pub fn choose(&self) -> anyhow::Result<Compute> {
        let kernels = if self.plain_kernels { KernelChoice::Plain } else { KernelChoice::Own };
        let compute = Compute::choose(self.device, self.dtype, kernels)?;
        if self.device != DeviceRequest::Cpu || !compute.is_first_engine() {
            tracing::info!("computing on: {compute}");
        }
        Ok(compute)
    }
}
