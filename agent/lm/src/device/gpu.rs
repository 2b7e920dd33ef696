//! GPU functions of a build with the feature `cuda`, and stubs that fail for a build without it.

#[cfg(not(feature = "cuda"))]
pub(super) use missing::*;
#[cfg(feature = "cuda")]
pub(super) use present::*;

#[cfg(feature = "cuda")]
mod present {
    use std::sync::Arc;

    use candle_core::Device;

    use crate::error::LmError;
    use webshop_kernels::gpu::launch::{Kernels, Specialization};
    use webshop_kernels::gpu::launcher as cuda;

    pub(in crate::device) fn open(ordinal: usize) -> Result<Device, String> {
        // The lines after the first are candle's backtrace.
        cuda::open(ordinal).map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())
    }

    pub(in crate::device) fn kernels(
        device: &Device,
        specialization: &Specialization,
    ) -> Result<Kernels, LmError> {
        Ok(Kernels::Custom(Arc::new(cuda::CudaLauncher::new(device, specialization)?)))
    }

    pub(in crate::device) fn describe(device: &Device) -> Result<(String, usize), LmError> {
        Ok(cuda::describe(device)?)
    }

    pub(in crate::device) fn peak_bytes(device: &Device) -> Result<u64, LmError> {
        Ok(cuda::peak_bytes(device)?)
    }

    pub(in crate::device) fn reset_peak(device: &Device) -> Result<(), LmError> {
        Ok(cuda::reset_peak(device)?)
    }
}

#[cfg(not(feature = "cuda"))]
mod missing {
    use candle_core::Device;

    use crate::error::LmError;
    use webshop_kernels::gpu::launch::{Kernels, Specialization};

    fn reason() -> String {
        "this build has no GPU support; build with `--features cuda`".to_owned()
    }

    fn refuse<T>() -> Result<T, LmError> {
        Err(LmError::Device { device: "cuda".to_owned(), reason: reason() })
    }

    pub(in crate::device) fn open(_: usize) -> Result<Device, String> {
        Err(reason())
    }

    pub(in crate::device) fn kernels(_: &Device, _: &Specialization) -> Result<Kernels, LmError> {
        refuse()
    }

    pub(in crate::device) fn describe(_: &Device) -> Result<(String, usize), LmError> {
        refuse()
    }

    pub(in crate::device) fn peak_bytes(_: &Device) -> Result<u64, LmError> {
        refuse()
    }

    pub(in crate::device) fn reset_peak(_: &Device) -> Result<(), LmError> {
        refuse()
    }
}
