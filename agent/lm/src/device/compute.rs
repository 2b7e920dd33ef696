//! Where models are computed and in which format: decided once, told with its reason.
//!
//! A [`DeviceRequest`] is what a user asks for; [`Compute::choose`] makes of it a [`Compute`], which models are made
//! with. A GPU that is there but cannot be used is an error with its reason, unless [`DeviceRequest::Auto`] asked to
//! fall back.

use std::fmt;
use std::str::FromStr;

use candle_core::{DType, Device};

use crate::device::gpu;
use crate::error::LmError;
use webshop_kernels::gpu::launch::{Kernels, Specialization};

/// Which device to compute on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceRequest {
    /// The processor.
    #[default]
    Cpu,
    /// The GPU of this number, or nothing.
    Cuda(usize),
    /// The first GPU if it can be used, the processor otherwise.
    Auto,
}

impl FromStr for DeviceRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("`{text}` is none of `cpu`, `cuda`, `cuda:N` and `auto`");
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

/// Which format weights and activations have; master weights, moments and reductions are f32 in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComputeDtype {
    /// Single precision.
    F32,
    /// Eight bits of fraction: half the memory and the matrix units.
    Bf16,
}

impl ComputeDtype {
    /// As candle names it.
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
            _ => Err(format!("`{text}` is neither `f32` nor `bf16`")),
        }
    }
}

/// Whether a GPU runs our kernels or their twins made of candle's operations, which the processor runs too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelChoice {
    /// Our kernels.
    #[default]
    Own,
    /// The plain twins, slower and independent.
    Plain,
}

/// A device with the format and the kernels that models on it use.
#[derive(Clone, Debug)]
pub struct Compute {
    pub(crate) device: Device,
    pub(crate) dtype: DType,
    choice: KernelChoice,
    reason: String,
    memory: usize,
}

/// Memory for contexts where nothing is known of the device's.
const USUAL_CACHE_BYTES: usize = 2 << 30;

impl Compute {
    /// The device that was asked for. Without a `dtype` the processor computes in f32 and a GPU in bf16.
    ///
    /// Fails if a GPU was asked for by number and there is none, it cannot be used, or this build has no GPU code.
    pub fn choose(
        request: DeviceRequest,
        dtype: Option<ComputeDtype>,
        choice: KernelChoice,
    ) -> Result<Self, LmError> {
        let (device, reason) = match request {
            DeviceRequest::Cpu => (Device::Cpu, "asked for".to_owned()),
            DeviceRequest::Cuda(ordinal) => match gpu::open(ordinal) {
                Ok(device) => (device, "asked for".to_owned()),
                Err(reason) => return Err(LmError::Device { device: request.to_string(), reason }),
            },
            DeviceRequest::Auto => match gpu::open(0) {
                Ok(device) => (device, "it can be used".to_owned()),
                Err(reason) => (Device::Cpu, format!("`cuda:0` cannot be used: {reason}")),
            },
        };
        let usual = if device.is_cuda() { ComputeDtype::Bf16 } else { ComputeDtype::F32 };
        let memory = if device.is_cuda() { gpu::describe(&device)?.1 } else { 0 };
        Ok(Self { device, dtype: dtype.unwrap_or(usual).dtype(), choice, reason, memory })
    }

    /// Bytes that the contexts of all lanes may take: a quarter of a GPU's memory, beside weights and activations.
    pub fn cache_bytes(&self) -> usize {
        if self.is_gpu() { self.memory / 4 } else { USUAL_CACHE_BYTES }
    }

    /// The same device with another format and other kernels.
    pub fn with(&self, dtype: ComputeDtype, choice: KernelChoice) -> Self {
        Self { dtype: dtype.dtype(), choice, ..self.clone() }
    }

    /// Whether this is what the hand-written engine of the CPU computes: f32, on the processor, unless plain operations
    /// were asked for, which only the other engine has.
    pub fn is_first_engine(&self) -> bool {
        !self.is_gpu() && self.dtype == DType::F32 && self.choice == KernelChoice::Own
    }

    /// Device, format and kernels in words that are the same wherever they are the same.
    pub fn kind(&self) -> String {
        let device = if self.is_gpu() { "GPU" } else { "CPU" };
        let kernels = if self.has_own_kernels() { "own kernels" } else { "plain operations" };
        format!("{device}, {:?}, {kernels}", self.dtype)
    }

    /// Whether models are computed on a GPU.
    pub fn is_gpu(&self) -> bool {
        self.device.is_cuda()
    }

    /// The format of weights and activations.
    pub fn dtype(&self) -> ComputeDtype {
        if self.dtype == DType::BF16 { ComputeDtype::Bf16 } else { ComputeDtype::F32 }
    }

    /// Whether models here run kernels of ours.
    pub fn has_own_kernels(&self) -> bool {
        self.is_gpu() && self.choice == KernelChoice::Own
    }

    /// Whose kernels a GPU runs.
    pub fn choice(&self) -> KernelChoice {
        self.choice
    }

    /// The device for tensors that go to a model.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The kernels of a model of these sizes: none but on a GPU, and none there if the plain twins are asked for.
    pub(crate) fn kernels(&self, specialization: &Specialization) -> Result<Kernels, LmError> {
        if self.has_own_kernels() { gpu::kernels(&self.device, specialization) } else { Ok(Kernels::Plain) }
    }

    /// The GPU's name and memory in bytes; `None` for the processor.
    pub fn describe(&self) -> Result<Option<(String, usize)>, LmError> {
        if self.is_gpu() { gpu::describe(&self.device).map(Some) } else { Ok(None) }
    }

    /// The most bytes of the GPU that were in use at one time since the last [`forget_peak`](Self::forget_peak), without
    /// those of recorded graphs and of cuBLAS; `None` for the processor.
    pub fn peak_bytes(&self) -> Result<Option<u64>, LmError> {
        if self.is_gpu() { gpu::peak_bytes(&self.device).map(Some) } else { Ok(None) }
    }

    /// Begins to watch for the peak anew.
    pub fn forget_peak(&self) -> Result<(), LmError> {
        if self.is_gpu() { gpu::forget_peak(&self.device) } else { Ok(()) }
    }

    /// Waits until everything asked of the device is done.
    pub fn synchronize(&self) -> Result<(), LmError> {
        Ok(self.device.synchronize()?)
    }
}

impl fmt::Display for Compute {
    /// Device, format, kernels and why, for the log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.kind(), self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_back() {
        for text in ["cpu", "cuda:0", "cuda:3", "auto"] {
            assert_eq!(text.parse::<DeviceRequest>().unwrap().to_string(), text);
        }
        assert_eq!("cuda".parse(), Ok(DeviceRequest::Cuda(0)));
        for bad in ["gpu", "cuda:", "cuda:x", "cpu:0", ""] {
            assert!(bad.parse::<DeviceRequest>().unwrap_err().contains(bad));
        }
    }

    #[test]
    fn the_first_engine_computes_in_f32_unless_plain_operations_are_asked_for() {
        let choose = |dtype, choice| Compute::choose(DeviceRequest::Cpu, dtype, choice).unwrap();
        assert!(choose(None, KernelChoice::Own).is_first_engine());
        assert!(!choose(Some(ComputeDtype::Bf16), KernelChoice::Own).is_first_engine());
        let plain = choose(Some(ComputeDtype::F32), KernelChoice::Plain);
        assert!(!plain.is_first_engine());
        assert_eq!(plain.kind(), "CPU, F32, plain operations");
    }

    #[test]
    fn a_gpu_that_is_not_there_is_an_error_or_a_told_fallback() {
        // No machine has a GPU of this number; without GPU code there is none at all.
        let message =
            Compute::choose(DeviceRequest::Cuda(4711), None, KernelChoice::Own).unwrap_err().to_string();
        assert!(message.contains("cuda:4711"), "{message}");
        if cfg!(not(feature = "cuda")) {
            let compute = Compute::choose(DeviceRequest::Auto, None, KernelChoice::Own).unwrap();
            assert!(!compute.is_gpu());
            assert!(compute.to_string().contains("--features cuda"), "{compute}");
        }
    }
}
