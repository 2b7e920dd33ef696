//! Argument and result types shared by the operations and their [`reference`](super::reference)
//! implementations.

use std::ops::Range;

use candle_core::{Device, Result, Tensor};

use webshop_kernels::cpu::rope::Rope;

/// Cosines and sines of every position on a device. `[P, D/2]`, f32
#[derive(Clone, Debug)]
pub(crate) struct RopeTable {
    pub(super) cos: Tensor,
    pub(super) sin: Tensor,
}

impl RopeTable {
    /// The table of `rope`.
    pub(crate) fn new(rope: &Rope, device: &Device) -> Result<Self> {
        let (cos, sin) = rope.table();
        let shape = (rope.n_positions(), cos.len() / rope.n_positions().max(1));
        Ok(Self {
            cos: Tensor::from_slice(cos, shape, device)?,
            sin: Tensor::from_slice(sin, shape, device)?,
        })
    }
}

/// The sign of the rotation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Direction {
    Forward,
    Back,
}

/// Lanes and positions of new tokens: on the host as runs, on the device one entry per row.
#[derive(Clone, Debug)]
pub(crate) struct NewTokens {
    /// (lane, positions) of each run, in row order.
    pub(crate) runs: Vec<(usize, Range<usize>)>,
    /// Lane of each row, on the device. `[M]`
    pub(crate) lanes: Tensor,
    /// Position of each row, on the device. `[M]`
    pub(crate) positions: Tensor,
}

impl NewTokens {
    /// One row for each position of each run.
    pub(crate) fn new(runs: Vec<(usize, Range<usize>)>, device: &Device) -> Result<Self> {
        let lanes: Vec<u32> =
            runs.iter().flat_map(|(lane, at)| at.clone().map(move |_| *lane as u32)).collect();
        let positions: Vec<u32> = runs.iter().flat_map(|(_, at)| at.clone().map(|p| p as u32)).collect();
        let n = lanes.len();
        Ok(Self {
            runs,
            lanes: Tensor::from_vec(lanes, n, device)?,
            positions: Tensor::from_vec(positions, n, device)?,
        })
    }

    /// Number of rows.
    pub(super) fn n_rows(&self) -> usize {
        self.lanes.elem_count()
    }
}

/// Keys and values of one layer. `[lanes, K, capacity, D]`
#[derive(Clone, Debug)]
pub(crate) struct LayerCache {
    /// Rotated keys.
    pub(crate) keys: Tensor,
    /// Values.
    pub(crate) values: Tensor,
}

impl LayerCache {
    /// Keys (or values) of a lane up to `seen`. `[K, seen, D]`
    pub(super) fn of_lane(cache: &Tensor, lane: usize, seen: usize) -> Result<Tensor> {
        cache.narrow(0, lane, 1)?.squeeze(0)?.narrow(1, 0, seen)
    }
}

/// Statistics of each target. All `[N]`, f32, on the device.
#[derive(Clone, Debug)]
pub(crate) struct TargetStats {
    /// log p(target).
    pub(crate) log_prob: Tensor,
    /// −Σ p log p in nats.
    pub(crate) entropy: Tensor,
    /// log Σ exp(logit).
    pub(super) log_sum: Tensor,
}

/// One sampled token for each row. All `[B]`, on the device.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    /// Token ids, u32.
    pub(crate) ids: Tensor,
    /// Log-probability of each under the sampled distribution; NaN if a logit of the row is not finite.
    pub(crate) log_prob: Tensor,
    /// Entropy of that distribution in nats.
    pub(crate) entropy: Tensor,
}

/// The coefficients of an AdamW step, shared by all values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coefficients {
    /// Factor of the gradient; less than 1 if it is clipped.
    pub scale: f32,
    /// 1 − learning rate · weight decay.
    pub keep: f32,
    /// Learning rate / (1 − b₁ᵗ).
    pub rate: f32,
    /// 1 / √(1 − b₂ᵗ).
    pub correction: f32,
    /// b₁ and b₂.
    pub betas: [f32; 2],
    /// 1 − b₁ and 1 − b₂, each rounded from double precision.
    pub complements: [f32; 2],
    /// ε, added to the denominator.
    pub epsilon: f32,
}

/// A parameter with its moments, all f32 of one shape, and the model's copy of it.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// The master weight.
    pub parameter: &'a Tensor,
    /// First moment m.
    pub first: &'a Tensor,
    /// Second moment v.
    pub second: &'a Tensor,
    /// The weight in the compute dtype, if that is not f32.
    pub copy: Option<&'a Tensor>,
}
