//! Rotary position embedding of rows of `q ‖ k ‖ v`, fused with the bias of their projection. The formula is
//! in [`webshop_kernels::cpu::rope`].

use candle_core::{Result, Tensor};

use crate::ops::gpu::operands::Direction;
pub(crate) use crate::ops::gpu::operands::RopeTable;
use crate::ops::gpu::{launch, like, reference};
use webshop_kernels::cpu::attention::Heads;
use webshop_kernels::gpu::launch::{Arg, Kernels, count};

/// Number of threads for a row.
pub(super) const THREADS: usize = 128;

/// Adds the bias and rotates q and k by their positions. `[T, (H + 2K) D]`
pub(crate) fn forward(
    kernels: &Kernels,
    qkv: &Tensor,
    bias: &Tensor,
    positions: &Tensor,
    table: &RopeTable,
    heads: Heads,
) -> Result<Tensor> {
    rotate(kernels, qkv, Some(bias), positions, table, heads, Direction::Forward)
}

/// The gradient with respect to the rows before rotation, which is also that before the bias.
pub(crate) fn backward(
    kernels: &Kernels,
    d_rotated: &Tensor,
    positions: &Tensor,
    table: &RopeTable,
    heads: Heads,
) -> Result<Tensor> {
    rotate(kernels, d_rotated, None, positions, table, heads, Direction::Back)
}

fn rotate(
    kernels: &Kernels,
    qkv: &Tensor,
    bias: Option<&Tensor>,
    positions: &Tensor,
    table: &RopeTable,
    heads: Heads,
    direction: Direction,
) -> Result<Tensor> {
    let rotated_heads = heads.n_heads + heads.n_kv_heads;
    let Some(launcher) = kernels.launcher() else {
        return reference::rope(qkv, bias, positions, table, heads, direction);
    };
    let out = like(launcher, qkv)?;
    launch(
        launcher,
        "rope_rows",
        qkv.dim(0)?,
        THREADS,
        &[
            Arg::In(qkv),
            bias.map_or(Arg::Nothing, Arg::In),
            Arg::In(&table.cos),
            Arg::In(&table.sin),
            Arg::In(positions),
            Arg::Out(&out),
            count(rotated_heads),
            count(rotated_heads + heads.n_kv_heads),
            Arg::F32(if direction == Direction::Forward { 1.0 } else { -1.0 }),
        ],
    )?;
    Ok(out)
}
