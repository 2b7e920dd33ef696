//! The device, dtype and kernels of a model.
//!
//! [`Compute::choose`] opens the device of a [`DeviceRequest`] and returns a [`Compute`], with which models
//! are created. If a requested GPU cannot be used, it fails with the driver's reason; only
//! [`DeviceRequest::Auto`] falls back to the CPU. The log shows a `Compute` with the reason of the choice.

use std::fmt;
use std::str::FromStr;

use candle_core::{DType, Device};

use crate::device::gpu;
use crate::error::LmError;
use webshop_kernels::gpu::launch::{Kernels, Specialization};

/// The device that a user requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceRequest {
    /// The CPU.
    #[default]
    Cpu,
    /// The GPU with this ordinal.
    Cuda(usize),
    /// The first GPU if it can be used, else the CPU.
    Auto,
}

impl FromStr for DeviceRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("`{text}` is not a device; use `cpu`, `cuda`, `cuda:N` or `auto`");
        match text.split_once(':') {
            Some(("cuda", ordinal)) => ordinal.parse().map(Self::Cuda).map_err(|_| refuse()),
            None if text == "cpu" => Ok(Self::Cpu),
            None if text == "cuda" => Ok(Self::Cuda(0)),
            None if text == "auto" => Ok(Self::Auto),
            _ => Err(refuse()),
        }
    }
}

impl fmt::Display for DeviceRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
            Self::Auto => f.write_str("auto"),
        }
    }
}

impl fmt::Display for ComputeDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        })
    }
}

/// The dtype of weights and activations. Master weights, moments and reductions are always f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComputeDtype {
    /// IEEE 754 single precision.
    F32,
    /// bfloat16: half the memory, and faster matrix products on a GPU.
    Bf16,
}

impl ComputeDtype {
    /// The candle dtype.
    pub fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::Bf16 => DType::BF16,
        }
    }
}

impl FromStr for ComputeDtype {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "f32" => Ok(Self::F32),
            "bf16" => Ok(Self::Bf16),
            _ => Err(format!("`{text}` is not a compute dtype; use `f32` or `bf16`")),
        }
    }
}

/// The implementation of the GPU backend's operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelChoice {
    /// Custom CUDA kernels. On the CPU in f32: the CPU backend.
    #[default]
    Custom,
    /// Reference implementations made of candle's operations; slower, on any device.
    Reference,
}

/// An open device, with the dtype and the kernels of its models.
#[derive(Clone, Debug)]
pub struct Compute {
    pub(crate) device: Device,
    pub(crate) dtype: DType,
    choice: KernelChoice,
    /// Whether decoding steps are recorded and replayed.
    records: bool,
    reason: String,
    /// Memory of the GPU in bytes; 0 on the CPU.
    memory: usize,
}

/// Maximum size of all KV caches on the CPU, whose memory is not queried.
const CPU_CACHE_BYTES: usize = 2 << 30;

impl Compute {
    /// Opens the requested device. The default `dtype` is f32 on the CPU and bf16 on a GPU.
    ///
    /// # Errors
    /// If the requested GPU does not exist or cannot be used, or if the build lacks the feature `cuda`.
    /// [`DeviceRequest::Auto`] selects the CPU in these cases.
    pub fn choose(
        request: DeviceRequest,
        dtype: Option<ComputeDtype>,
        choice: KernelChoice,
    ) -> Result<Self, LmError> {
        let (device, reason) = match request {
            DeviceRequest::Cpu => (Device::Cpu, "requested".to_owned()),
            DeviceRequest::Cuda(ordinal) => match gpu::open(ordinal) {
                Ok(device) => (device, "requested".to_owned()),
                Err(reason) => return Err(LmError::Device { device: request.to_string(), reason }),
            },
            DeviceRequest::Auto => match gpu::open(0) {
                Ok(device) => (device, "available".to_owned()),
                Err(reason) => (Device::Cpu, format!("`cuda:0` cannot be used: {reason}")),
            },
        };
        let usual = if device.is_cuda() { ComputeDtype::Bf16 } else { ComputeDtype::F32 };
        let memory = if device.is_cuda() { gpu::describe(&device)?.1 } else { 0 };
        let dtype = dtype.unwrap_or(usual).dtype();
        Ok(Self { device, dtype, choice, records: true, reason, memory })
    }

    /// Maximum size in bytes of the KV caches of all lanes together: a quarter of a GPU's memory, 2 GiB on
    /// the CPU.
    pub fn cache_bytes(&self) -> usize {
        if self.is_gpu() { Self::cache_bytes_of_gpu(self.memory) } else { CPU_CACHE_BYTES }
    }

    /// [`cache_bytes`](Self::cache_bytes) of a GPU with `memory` bytes.
    pub fn cache_bytes_of_gpu(memory: usize) -> usize {
        memory / 4
    }

    /// The same device with another dtype and other kernels.
    pub fn with(&self, dtype: ComputeDtype, choice: KernelChoice) -> Self {
        Self { dtype: dtype.dtype(), choice, ..self.clone() }
    }

    /// The same device, where each kernel of a decoding step is launched by itself, and no CUDA graph of the step is recorded.
    /// The results have the same bits. Required if several threads use the device, since one must not record meanwhile.
    pub fn eager(&self) -> Self {
        Self { records: false, ..self.clone() }
    }

    /// Whether decoding steps are recorded as CUDA graphs where all their operations have kernels.
    pub fn records(&self) -> bool {
        self.records
    }

    /// Whether models use the CPU backend: f32 on the CPU, with [`KernelChoice::Custom`].
    pub fn uses_cpu_backend(&self) -> bool {
        !self.is_gpu() && self.dtype == DType::F32 && self.choice == KernelChoice::Custom
    }

    /// Device, dtype and kernels as text, such as `GPU, BF16, custom kernels`.
    pub fn kind(&self) -> String {
        let device = if self.is_gpu() { "GPU" } else { "CPU" };
        let kernels = if self.uses_custom_kernels() { "custom kernels" } else { "reference kernels" };
        format!("{device}, {:?}, {kernels}", self.dtype)
    }

    /// [`kind`](Self::kind) as results record it: empty for the CPU backend.
    pub fn recorded_kind(&self) -> String {
        if self.uses_cpu_backend() { String::new() } else { self.kind() }
    }

    /// Whether models are computed on a GPU.
    pub fn is_gpu(&self) -> bool {
        self.device.is_cuda()
    }

    /// The dtype of weights and activations.
    pub fn dtype(&self) -> ComputeDtype {
        if self.dtype == DType::BF16 { ComputeDtype::Bf16 } else { ComputeDtype::F32 }
    }

    /// Whether models run the custom CUDA kernels: on a GPU, unless the reference kernels are requested.
    pub fn uses_custom_kernels(&self) -> bool {
        self.is_gpu() && self.choice == KernelChoice::Custom
    }

    /// The requested kernels.
    pub fn choice(&self) -> KernelChoice {
        self.choice
    }

    /// The candle device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The kernels of a model of these sizes.
    pub(crate) fn kernels(&self, specialization: &Specialization) -> Result<Kernels, LmError> {
        if self.uses_custom_kernels() {
            gpu::kernels(&self.device, specialization)
        } else {
            Ok(Kernels::Reference)
        }
    }

    /// The GPU's name and memory in bytes; `None` on the CPU.
    pub fn describe(&self) -> Result<Option<(String, usize)>, LmError> {
        if self.is_gpu() { gpu::describe(&self.device).map(Some) } else { Ok(None) }
    }

    /// Peak memory of the GPU in bytes since the last [`reset_peak`](Self::reset_peak), without that of
    /// cuBLAS and of recorded steps; `None` on the CPU.
    pub fn peak_bytes(&self) -> Result<Option<u64>, LmError> {
        if self.is_gpu() { gpu::peak_bytes(&self.device).map(Some) } else { Ok(None) }
    }

    /// Resets the peak memory to the memory in use now.
    pub fn reset_peak(&self) -> Result<(), LmError> {
        if self.is_gpu() { gpu::reset_peak(&self.device) } else { Ok(()) }
    }

    /// Waits until all enqueued work is done.
    pub fn synchronize(&self) -> Result<(), LmError> {
        Ok(self.device.synchronize()?)
    }
}

impl fmt::Display for Compute {
    /// Device, dtype, kernels and the reason of the choice, for the log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.kind(), self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_round_trip_as_text() {
        for text in ["cpu", "cuda:0", "cuda:3", "auto"] {
            assert_eq!(text.parse::<DeviceRequest>().unwrap().to_string(), text);
        }
        assert_eq!("cuda".parse(), Ok(DeviceRequest::Cuda(0)));
        for bad in ["gpu", "cuda:", "cuda:x", "cpu:0", ""] {
            assert!(bad.parse::<DeviceRequest>().unwrap_err().contains(bad));
        }
    }

    #[test]
    fn f32_on_the_cpu_uses_the_cpu_backend() {
        let choose = |dtype, choice| Compute::choose(DeviceRequest::Cpu, dtype, choice).unwrap();
        assert!(choose(None, KernelChoice::Custom).uses_cpu_backend());
        assert!(!choose(Some(ComputeDtype::Bf16), KernelChoice::Custom).uses_cpu_backend());
        let reference = choose(Some(ComputeDtype::F32), KernelChoice::Reference);
        assert!(!reference.uses_cpu_backend());
        assert_eq!(reference.kind(), "CPU, F32, reference kernels");
    }

    #[test]
    fn a_missing_gpu_is_an_error_or_an_explained_fallback() {
        // No machine has a GPU with this ordinal; a build without `cuda` has none at all.
        let message =
            Compute::choose(DeviceRequest::Cuda(4711), None, KernelChoice::Custom).unwrap_err().to_string();
        assert!(message.contains("cuda:4711"), "{message}");
        if cfg!(not(feature = "cuda")) {
            let compute = Compute::choose(DeviceRequest::Auto, None, KernelChoice::Custom).unwrap();
            assert!(!compute.is_gpu());
            assert!(compute.to_string().contains("--features cuda"), "{compute}");
        }
    }
}
