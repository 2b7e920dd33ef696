//! Gathering rows by index (embeddings, scored positions), and scattering their gradients back.

use candle_core::{Device, Result, Tensor};

use crate::ops::gpu::{launch, reference, threads_for};
use webshop_kernels::gpu::launch::{Arg, Kernels, count};

/// `table[ids[i]]` for each i. `[V, H]`, ids `[M]` → `[M, H]`
pub(crate) fn gather(kernels: &Kernels, table: &Tensor, ids: &Tensor) -> Result<Tensor> {
    let (width, n_rows) = (table.dim(1)?, ids.elem_count());
    let Some(launcher) = kernels.launcher_for_widths(table.dtype(), &[width]) else {
        return table.index_select(ids, 0);
    };
    let out = launcher.empty((n_rows, width).into(), table.dtype())?;
    launch(
        launcher,
        "gather_rows",
        n_rows,
        threads_for(width, table.dtype()),
        &[Arg::In(table), Arg::In(ids), Arg::Out(&out), count(width)],
    )?;
    Ok(out)
}

/// Where [`scatter`] adds rows: the source rows of each target row, in order.
///
/// Built on the host, once for a batch, so that the order of the sums on the device is fixed.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    ids: Tensor,
    order: Tensor,
    starts: Tensor,
    targets: Tensor,
}

impl Placement {
    /// Row i of the source goes to row `ids[i]` of the target.
    pub(crate) fn new(ids: &[u32], device: &Device) -> Result<Self> {
        let mut order: Vec<u32> = (0..ids.len() as u32).collect();
        order.sort_by_key(|&i| ids[i as usize]);
        let sorted = order.iter().map(|&i| ids[i as usize]);
        let (mut starts, mut targets) = (Vec::new(), Vec::new());
        for (place, id) in sorted.enumerate() {
            if targets.last() != Some(&id) {
                starts.push(place as u32);
                targets.push(id);
            }
        }
        starts.push(ids.len() as u32);
        let tensor = |values: Vec<u32>| {
            let n = values.len();
            Tensor::from_vec(values, n, device)
        };
        Ok(Self {
            ids: tensor(ids.to_vec())?,
            order: tensor(order)?,
            starts: tensor(starts)?,
            targets: tensor(targets)?,
        })
    }

    /// The target row of each source row, on the device. `[M]`
    pub(crate) fn ids(&self) -> &Tensor {
        &self.ids
    }
}

/// Adds row i of `rows` to its target row in `sums` `[V, H]`, f32.
pub(crate) fn scatter(kernels: &Kernels, rows: &Tensor, placement: &Placement, sums: &Tensor) -> Result<()> {
    let width = rows.dim(1)?;
    if rows.elem_count() == 0 {
        return Ok(());
    }
    let Some(launcher) = kernels.launcher_for_widths(rows.dtype(), &[width]) else {
        return reference::scatter(rows, &placement.ids, sums);
    };
    launch(
        launcher,
        "scatter_rows",
        placement.targets.elem_count(),
        threads_for(width, rows.dtype()),
        &[
            Arg::In(rows),
            Arg::In(&placement.order),
            Arg::In(&placement.starts),
            Arg::In(&placement.targets),
            Arg::Out(sums),
            count(width),
        ],
    )
}
