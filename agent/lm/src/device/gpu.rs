//! What only a build with GPU code can do, and the same without it, where nothing opens and nothing else is ever asked.

#[cfg(not(feature = "cuda"))]
pub use missing::*;
#[cfg(feature = "cuda")]
pub use present::*;

#[cfg(feature = "cuda")]
mod present {
    use std::sync::Arc;

    use candle_core::Device;

    use crate::error::LmError;
    use webshop_kernels::gpu::launcher as cuda;
    use webshop_kernels::gpu::launch::{Kernels, Specialization};

    pub fn open(ordinal: usize) -> Result<Device, String> {
        // What follows the first line is a trace of calls.
        cuda::open(ordinal).map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())
    }

    pub fn kernels(device: &Device, specialization: &Specialization) -> Result<Kernels, LmError> {
        Ok(Kernels::Own(Arc::new(cuda::CudaLauncher::new(device, specialization)?)))
    }

    pub fn describe(device: &Device) -> Result<(String, usize), LmError> {
        Ok(cuda::describe(device)?)
    }

    pub fn peak_bytes(device: &Device) -> Result<u64, LmError> {
        Ok(cuda::peak_bytes(device)?)
    }

    pub fn forget_peak(device: &Device) -> Result<(), LmError> {
        Ok(cuda::forget_peak(device)?)
    }
}

#[cfg(not(feature = "cuda"))]
mod missing {
    use candle_core::Device;

    use crate::error::LmError;
    use webshop_kernels::gpu::launch::{Kernels, Specialization};

    fn reason() -> String {
        "this build has no GPU code; build with `--features cuda`".to_owned()
    }

    fn refuse<T>() -> Result<T, LmError> {
        Err(LmError::Device { device: "cuda".to_owned(), reason: reason() })
    }

    pub fn open(_: usize) -> Result<Device, String> {
        Err(reason())
    }

    pub fn kernels(_: &Device, _: &Specialization) -> Result<Kernels, LmError> {
        refuse()
    }

    pub fn describe(_: &Device) -> Result<(String, usize), LmError> {
        refuse()
    }

    pub fn peak_bytes(_: &Device) -> Result<u64, LmError> {
        refuse()
    }

    pub fn forget_peak(_: &Device) -> Result<(), LmError> {
        refuse()
    }
}
