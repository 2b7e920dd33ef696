//! Sums of losses, in one order on every CPU.

use candle_core::{CpuStorage, CustomOp1, DType, Layout, Result, Shape, Tensor, bail};

/// Number of partial sums.
const LANES: usize = 32;

/// The sum of all elements. `[]`
///
/// candle's [`Tensor::sum_all`] adds f32 values on the CPU in an order that depends on the instruction set. This
/// one has a single order, the one that candle has with AVX2. On a GPU, and for other types, it is candle's.
pub(crate) fn sum_all(values: &Tensor) -> Result<Tensor> {
    if values.device().is_cpu() && values.dtype() == DType::F32 {
        values.contiguous()?.apply_op1(OrderedSum)
    } else {
        values.sum_all()
    }
}

/// The mean of all elements, with the sum of [`sum_all`]. `[]`
pub(crate) fn mean_all(values: &Tensor) -> Result<Tensor> {
    sum_all(values)? / values.elem_count() as f64
}

struct OrderedSum;

impl CustomOp1 for OrderedSum {
    fn name(&self) -> &'static str {
        "ordered-sum"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (CpuStorage::F32(values), Some((start, end))) = (storage, layout.contiguous_offsets()) else {
            bail!("an ordered sum is of contiguous f32 values, got {storage:?} with {layout:?}");
        };
        Ok((CpuStorage::F32(vec![sum(&values[start..end])]), Shape::from(())))
    }

    fn bwd(&self, values: &Tensor, _sum: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        gradient.broadcast_as(values.shape())?.contiguous().map(Some)
    }
}

/// Lane i adds the values i, i + 32, i + 64, … of the whole blocks of 32. The lanes are added in a tree, and the
/// values that are left are added to the result one by one.
fn sum(values: &[f32]) -> f32 {
    let (blocks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for block in blocks {
        for (lane, value) in lanes.iter_mut().zip(block) {
            *lane += value;
        }
    }
    let eighth = |i: usize| (lanes[i] + lanes[i + 8]) + (lanes[i + 16] + lanes[i + 24]);
    let quarter = |i: usize| eighth(i) + eighth(i + 4);
    let whole = (quarter(0) + quarter(1)) + (quarter(2) + quarter(3));
    rest.iter().fold(whole, |total, value| total + value)
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    /// Values of very unlike sizes, so that another order of additions gives other bits.
    fn values(n: usize) -> Vec<f32> {
        let scales = [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3];
        (0..n).map(|i| ((i * 37 + 11) % 101) as f32 / 7.0 * scales[i % 7]).collect()
    }

    #[test]
    fn the_order_is_the_documented_one() {
        // Blocks of 32: lanes 0 and 1 have the values that are not 0, and two values are left.
        let mut given = vec![0.0; 66];
        (given[0], given[32], given[1]) = (1e8, 1.0, -1e8);
        (given[64], given[65]) = (0.5, 0.25);
        // In lane 0 the 1 is lost beside 1e8; the values that are left come last and are not.
        assert_eq!(sum(&given), 0.75);
        assert_eq!(given.iter().sum::<f32>(), 1.75);
    }

    #[test]
    fn the_bits_are_the_same_on_every_machine() {
        // Computed with numpy, addition by addition. One after the other, the last two would end in e4 and dd.
        let bits = [31, 32, 100, 1000].map(|n| sum(&values(n)).to_bits());
        assert_eq!(bits, [0x46d0_5205, 0x46d0_5f73, 0x47d0_32e0, 0x4989_b5e6]);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn with_avx2_candle_has_the_same_order() {
        if !std::is_x86_feature_detected!("avx2") {
            return;
        }
        for n in [0, 1, 31, 32, 33, 64, 1000] {
            let tensor = Tensor::from_vec(values(n), n, &Device::Cpu).unwrap();
            let theirs = tensor.sum_all().unwrap().to_scalar::<f32>().unwrap();
            assert_eq!(sum(&values(n)).to_bits(), theirs.to_bits(), "{n} values");
        }
    }

    #[test]
    fn every_value_has_the_gradient_of_the_sum() {
        let values = Var::from_vec(values(40), 40, &Device::Cpu).unwrap();
        let loss = (sum_all(&values).unwrap() * 3.0).unwrap();
        let gradients = loss.backward().unwrap();
        assert_eq!(gradients.get(&values).unwrap().to_vec1::<f32>().unwrap(), [3.0; 40]);
    }

    #[test]
    fn a_part_of_a_tensor_is_summed_where_it_lies() {
        let whole = Tensor::from_vec(values(100), 100, &Device::Cpu).unwrap();
        let part = sum_all(&whole.narrow(0, 20, 64).unwrap()).unwrap().to_scalar::<f32>().unwrap();
        assert_eq!(part, sum(&values(100)[20..84]));
        let mean = mean_all(&whole.narrow(0, 20, 64).unwrap()).unwrap().to_scalar::<f32>().unwrap();
        assert_eq!(mean, part / 64.0);
    }
}
