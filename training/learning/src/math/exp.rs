//! Exponentials of tensors.

use candle_core::backend::BackendStorage;
use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor, bail};

/// e to the power of each element.
///
/// candle's [`Tensor::exp`] is the system's math library on the CPU. This one is libm's, in f64, which is part of the
/// program. On a GPU it is candle's.
pub(crate) fn exp(values: &Tensor) -> Result<Tensor> {
    if values.device().is_cpu() { values.contiguous()?.apply_op1(PortableExp) } else { values.exp() }
}

struct PortableExp;

impl CustomOp1 for PortableExp {
    fn name(&self) -> &'static str {
        "portable-exp"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let Some((start, end)) = layout.contiguous_offsets() else {
            bail!("a portable exponential is of contiguous values, got {layout:?}");
        };
        let powers = match storage {
            CpuStorage::F32(values) => {
                let power = |value: &f32| libm::exp(f64::from(*value)) as f32;
                CpuStorage::F32(values[start..end].iter().map(power).collect())
            }
            CpuStorage::F64(values) => {
                CpuStorage::F64(values[start..end].iter().copied().map(libm::exp).collect())
            }
            other => bail!("a portable exponential is of f32 or f64, got {:?}", other.dtype()),
        };
        Ok((powers, layout.shape().clone()))
    }

    fn bwd(&self, _values: &Tensor, powers: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        (gradient * powers).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device, Var};

    use super::*;

    #[test]
    fn powers_of_e_are_those_of_candle_nearly() {
        let values: Vec<f64> = (-40..40).map(|i| f64::from(i) * 0.37).collect();
        let tensor = Tensor::from_vec(values, 80, &Device::Cpu).unwrap();
        let read = |tensor: Tensor| tensor.to_dtype(DType::F64).unwrap().to_vec1::<f64>().unwrap();
        for (dtype, bound) in [(DType::F64, 1e-15), (DType::F32, 1e-7)] {
            let tensor = tensor.to_dtype(dtype).unwrap();
            let (ours, theirs) = (read(exp(&tensor).unwrap()), read(tensor.exp().unwrap()));
            for (ours, theirs) in ours.iter().zip(theirs) {
                assert!((ours / theirs - 1.0).abs() <= bound, "{dtype:?}: {ours} for {theirs}");
            }
        }
    }

    #[test]
    fn the_bits_are_the_same_on_every_machine() {
        // Computed by Python in f64 and rounded.
        let values = Tensor::new(&[-7.25_f32, -0.1, 0.0, 0.3, 11.5], &Device::Cpu).unwrap();
        let bits = exp(&values).unwrap().to_vec1::<f32>().unwrap().into_iter().map(f32::to_bits);
        assert_eq!(
            bits.collect::<Vec<_>>(),
            [0x3a3a_2aff, 0x3f67_a36d, 0x3f80_0000, 0x3fac_c82d, 0x47c0_cde3]
        );
    }

    #[test]
    fn the_gradient_is_the_power_itself() {
        let values = Var::new(&[[0.0_f64, 1.0], [2.0, 3.0]], &Device::Cpu).unwrap();
        // A transposed tensor is not contiguous.
        let transposed = values.t().unwrap();
        let loss = (exp(&transposed).unwrap() * 2.0).unwrap().sum_all().unwrap();
        let gradients = loss.backward().unwrap();
        let gradient = gradients.get(&values).unwrap().to_vec2::<f64>().unwrap();
        let expected = [[0.0, 1.0], [2.0, 3.0]].map(|row| row.map(|x| 2.0 * libm::exp(x)));
        assert_eq!(gradient, expected);
    }

    #[test]
    fn whole_numbers_have_none() {
        let message = exp(&Tensor::new(&[1_u32], &Device::Cpu).unwrap()).unwrap_err().to_string();
        assert!(message.contains("is of f32 or f64, got U32"), "{message}");
    }
}
