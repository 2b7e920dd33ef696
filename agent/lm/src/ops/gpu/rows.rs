//! Rows picked by index (an embedding, or the positions that are asked about), and their gradients put back.

use candle_core::{DType, Device, Result, Tensor};

use crate::ops::gpu::threads_for;
use webshop_kernels::gpu::launch::{Arg, Kernels, Launch, count};

/// `table[ids[i]]` for each i. `[V, H]`, ids `[M]` → `[M, H]`
pub fn gather(kernels: &Kernels, table: &Tensor, ids: &Tensor) -> Result<Tensor> {
    let (width, n_rows) = (table.dim(1)?, ids.elem_count());
    let Some(launcher) = kernels.for_widths(table.dtype(), &[width]) else {
        return table.index_select(ids, 0);
    };
    let out = launcher.empty((n_rows, width).into(), table.dtype())?;
    launcher.launch(&Launch {
        kernel: "gather_rows",
        grid: [n_rows, 1, 1],
        threads: threads_for(width, table.dtype()),
        args: &[Arg::In(table), Arg::In(ids), Arg::Out(&out), count(width)],
    })?;
    Ok(out)
}

/// Which rows go where: for each row of the target that receives any, the rows it receives, in their order.
///
/// Made on the host, once for a batch, so that the sums on the device have one order whatever runs first.
#[derive(Clone, Debug)]
pub struct Placement {
    ids: Tensor,
    order: Tensor,
    starts: Tensor,
    targets: Tensor,
}

impl Placement {
    /// Row i of the source goes to row `ids[i]` of the target.
    pub fn new(ids: &[u32], device: &Device) -> Result<Self> {
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

    /// The rows of the target, on the device, for [`gather`]. `[M]`
    pub fn ids(&self) -> &Tensor {
        &self.ids
    }
}

/// Adds row i of `rows` to its place in `sums` `[V, H]`, f32.
pub fn scatter(kernels: &Kernels, rows: &Tensor, placement: &Placement, sums: &Tensor) -> Result<()> {
    let width = rows.dim(1)?;
    if rows.elem_count() == 0 {
        return Ok(());
    }
    let Some(launcher) = kernels.for_widths(rows.dtype(), &[width]) else {
        let added = sums.index_add(&placement.ids, &rows.to_dtype(DType::F32)?, 0)?;
        return sums.slice_set(&added, 0, 0);
    };
    launcher.launch(&Launch {
        kernel: "scatter_rows",
        grid: [placement.targets.elem_count(), 1, 1],
        threads: threads_for(width, rows.dtype()),
        args: &[
            Arg::In(rows),
            Arg::In(&placement.order),
            Arg::In(&placement.starts),
            Arg::In(&placement.targets),
            Arg::Out(sums),
            count(width),
        ],
    })
}
