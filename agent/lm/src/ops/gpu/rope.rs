//! Rotary positions on rows of `q ‖ k ‖ v` together with the bias of their projection; the formula is in
//! [`webshop_kernels::cpu::rope`].

use candle_core::{D, Device, Result, Tensor};

use crate::ops::gpu::{like, wide};
use webshop_kernels::cpu::attention::Heads;
use webshop_kernels::gpu::launch::{Arg, Kernels, Launch, count};
use webshop_kernels::cpu::rope::Rope;

/// Threads of a row.
pub(super) const THREADS: usize = 128;

/// Cosines and sines of every position on a device. `[P, D/2]`, f32
#[derive(Clone, Debug)]
pub struct RopeTable {
    pub(super) cos: Tensor,
    pub(super) sin: Tensor,
}

impl RopeTable {
    /// The table of `rope`.
    pub fn new(rope: &Rope, device: &Device) -> Result<Self> {
        let (cos, sin) = rope.table();
        let shape = (rope.n_positions(), cos.len() / rope.n_positions().max(1));
        Ok(Self {
            cos: Tensor::from_slice(cos, shape, device)?,
            sin: Tensor::from_slice(sin, shape, device)?,
        })
    }
}

/// Which way to turn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Direction {
    Forward,
    Back,
}

/// Adds the bias and turns q and k to their positions. `[T, (H + 2K) D]`
pub fn forward(
    kernels: &Kernels,
    qkv: &Tensor,
    bias: &Tensor,
    positions: &Tensor,
    table: &RopeTable,
    heads: Heads,
) -> Result<Tensor> {
    turn(kernels, qkv, Some(bias), positions, table, heads, Direction::Forward)
}

/// The gradient with respect to the rows before they were turned, which is also that before the bias.
pub fn backward(
    kernels: &Kernels,
    d_rotated: &Tensor,
    positions: &Tensor,
    table: &RopeTable,
    heads: Heads,
) -> Result<Tensor> {
    turn(kernels, d_rotated, None, positions, table, heads, Direction::Back)
}

fn turn(
    kernels: &Kernels,
    qkv: &Tensor,
    bias: Option<&Tensor>,
    positions: &Tensor,
    table: &RopeTable,
    heads: Heads,
    direction: Direction,
) -> Result<Tensor> {
    let turned_heads = heads.n_heads + heads.n_kv_heads;
    let Some(launcher) = kernels.own() else {
        let biased = match bias {
            Some(bias) => qkv.broadcast_add(bias)?,
            None => qkv.clone(),
        };
        return plain(&biased, positions, table, heads, direction);
    };
    let out = like(launcher, qkv)?;
    launcher.launch(&Launch {
        kernel: "rope_rows",
        grid: [qkv.dim(0)?, 1, 1],
        threads: THREADS,
        args: &[
            Arg::In(qkv),
            bias.map_or(Arg::Nothing, Arg::In),
            Arg::In(&table.cos),
            Arg::In(&table.sin),
            Arg::In(positions),
            Arg::Out(&out),
            count(turned_heads),
            count(turned_heads + heads.n_kv_heads),
            Arg::F32(if direction == Direction::Forward { 1.0 } else { -1.0 }),
        ],
    })?;
    Ok(out)
}

fn plain(
    qkv: &Tensor,
    positions: &Tensor,
    table: &RopeTable,
    heads: Heads,
    direction: Direction,
) -> Result<Tensor> {
    let (n_rows, dim) = (qkv.dim(0)?, heads.head_dim);
    let turned = (heads.n_heads + heads.n_kv_heads) * dim;
    let at = |angles: &Tensor| angles.index_select(positions, 0)?.unsqueeze(1); // [T, 1, D/2]
    let (cos, sin) = (at(&table.cos)?, at(&table.sin)?);
    let sin = if direction == Direction::Forward { sin } else { sin.neg()? };
    let x = wide(&qkv.narrow(1, 0, turned)?)?.reshape((n_rows, turned / dim, dim))?;
    let (a, b) = (x.narrow(D::Minus1, 0, dim / 2)?, x.narrow(D::Minus1, dim / 2, dim / 2)?);
    let first = (a.broadcast_mul(&cos)? - b.broadcast_mul(&sin)?)?;
    let second = (b.broadcast_mul(&cos)? + a.broadcast_mul(&sin)?)?;
    let turned_rows = Tensor::cat(&[first, second], D::Minus1)?.reshape((n_rows, turned))?;
    let values = qkv.narrow(1, turned, heads.n_kv_heads * dim)?;
    Tensor::cat(&[turned_rows.to_dtype(qkv.dtype())?, values], 1)
}
