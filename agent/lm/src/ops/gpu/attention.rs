//! Causal attention of many queries, by matrix products over blocks of queries.
//!
//! `softmax(q·k / √D) v`, where G query heads share a key head. Scores exist for [`QUERIES`] queries of one
//! sequence at a time, so memory is linear in the number of tokens; the backward pass recomputes them. The
//! matrix products are cuBLAS's; between them runs one kernel (`causal_softmax`, `softmax_backward`).
//!
//! Shapes: n queries, the first at position `first`; H = K G query heads, K key heads, C keys.

use candle_core::{Result, Tensor};

use crate::ops::gpu::{launch, reference, wide};
use webshop_kernels::cpu::attention::Heads;
use webshop_kernels::gpu::launch::{Arg, Kernels, count};

/// Number of queries whose scores exist at the same time.
pub(crate) const QUERIES: usize = 1024;
const THREADS: usize = 256;

/// Queries, keys and values of one sequence or one lane.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    /// Rotated queries, which may be a view. `[n, H, D]`
    pub(crate) q: Tensor,
    /// Rotated keys from position 0 on. `[K, C, D]`
    pub(crate) k: Tensor,
    /// Values. `[K, C, D]`
    pub(crate) v: Tensor,
    /// Position of the first query; `first + n ≤ C`.
    pub(crate) first: usize,
}

/// A block of queries with all keys up to its last query.
struct Block {
    /// `[K, G b, D]`
    q: Tensor,
    /// `[K, c, D]`
    k: Tensor,
    v: Tensor,
    start: usize,
    n_queries: usize,
    first: usize,
}

/// Regroups rows by key head. `[b, H, D]` → `[K, G b, D]`
fn by_head(rows: &Tensor, heads: Heads) -> Result<Tensor> {
    let n = rows.dim(0)?;
    rows.transpose(0, 1)?.contiguous()?.reshape((heads.n_kv_heads, heads.group() * n, heads.head_dim))
}

/// The inverse of [`by_head`], with the heads of a row concatenated. `[K, G b, D]` → `[b, H D]`
fn by_row(x: &Tensor, n: usize, heads: Heads) -> Result<Tensor> {
    let apart = x.reshape((heads.n_heads, n, heads.head_dim))?.transpose(0, 1)?.contiguous()?;
    apart.reshape((n, heads.out_width()))
}

impl Sequence {
    fn blocks(&self, heads: Heads, size: usize) -> Result<Vec<Block>> {
        let n = self.q.dim(0)?;
        (0..n)
            .step_by(size)
            .map(|start| {
                let n_queries = size.min(n - start);
                let seen = self.first + start + n_queries;
                Ok(Block {
                    q: by_head(&self.q.narrow(0, start, n_queries)?, heads)?,
                    k: self.k.narrow(1, 0, seen)?,
                    v: self.v.narrow(1, 0, seen)?,
                    start,
                    n_queries,
                    first: self.first + start,
                })
            })
            .collect()
    }
}

impl Block {
    /// Attention probabilities. `[K, G b, c]`
    fn probabilities(&self, kernels: &Kernels, heads: Heads) -> Result<Tensor> {
        let scores = self.q.matmul(&self.k.t()?)?;
        let context = self.k.dim(1)?;
        let Some(launcher) = kernels.launcher() else {
            return reference::causal_softmax(&scores, self.n_queries, self.first, heads);
        };
        launch(
            launcher,
            "causal_softmax",
            heads.n_heads * self.n_queries,
            THREADS,
            &[
                Arg::Out(&scores),
                count(self.n_queries),
                count(self.first),
                count(context),
                Arg::F32(heads.scale()),
            ],
        )?;
        Ok(scores)
    }

    /// The gradient of the scores, from `d_p`, that of the probabilities `p`.
    fn softmax_backward(&self, kernels: &Kernels, p: &Tensor, d_p: Tensor, scale: f32) -> Result<Tensor> {
        let (batch, rows, context) = p.dims3()?;
        let Some(launcher) = kernels.launcher() else {
            return reference::softmax_backward(p, &d_p, scale);
        };
        launch(
            launcher,
            "softmax_backward",
            batch * rows,
            THREADS,
            &[Arg::In(p), Arg::Out(&d_p), count(context), Arg::F32(scale)],
        )?;
        Ok(d_p)
    }
}

/// The attention output of all queries. `[n, H D]`
pub(crate) fn forward(kernels: &Kernels, sequence: &Sequence, heads: Heads) -> Result<Tensor> {
    in_blocks(kernels, sequence, heads, QUERIES)
}

fn in_blocks(kernels: &Kernels, sequence: &Sequence, heads: Heads, size: usize) -> Result<Tensor> {
    let blocks = sequence.blocks(heads, size)?.into_iter().map(|block| {
        let attended = block.probabilities(kernels, heads)?.matmul(&block.v)?; // [K, G b, D]
        by_row(&attended, block.n_queries, heads)
    });
    joined(blocks.collect::<Result<Vec<_>>>()?)
}

fn joined(mut blocks: Vec<Tensor>) -> Result<Tensor> {
    match blocks.len() {
        1 => Ok(blocks.remove(0)),
        _ => Tensor::cat(&blocks, 0),
    }
}

/// Gradients with respect to q `[n, H D]`, k and v `[K, C, D]`, of a sequence that begins at position 0;
/// d_out is `[n, H, D]` and may be a view.
pub(crate) fn backward(
    kernels: &Kernels,
    sequence: &Sequence,
    heads: Heads,
    d_out: &Tensor,
) -> Result<(Tensor, Tensor, Tensor)> {
    backward_in_blocks(kernels, sequence, heads, d_out, QUERIES)
}

fn backward_in_blocks(
    kernels: &Kernels,
    sequence: &Sequence,
    heads: Heads,
    d_out: &Tensor,
    size: usize,
) -> Result<(Tensor, Tensor, Tensor)> {
    let (mut d_q, mut d_k, mut d_v) = (Vec::new(), None, None);
    // From the last block, which attends to all keys, to the first, so that later addends are never longer
    // than the sum.
    for block in sequence.blocks(heads, size)?.iter().rev() {
        let p = block.probabilities(kernels, heads)?;
        let d_out = by_head(&d_out.narrow(0, block.start, block.n_queries)?, heads)?; // [K, G b, D]
        add_prefix(&mut d_v, &p.t()?.matmul(&d_out)?)?;
        let d_p = d_out.matmul(&block.v.t()?)?;
        let d_scores = block.softmax_backward(kernels, &p, d_p, heads.scale())?;
        add_prefix(&mut d_k, &d_scores.t()?.matmul(&block.q)?)?;
        d_q.push(by_row(&d_scores.matmul(&block.k.contiguous()?)?, block.n_queries, heads)?);
    }
    d_q.reverse();
    let narrow = |sum: Option<Tensor>| match sum {
        Some(sum) => sum.to_dtype(sequence.q.dtype()),
        None => sequence.k.zeros_like(),
    };
    Ok((joined(d_q)?, narrow(d_k)?, narrow(d_v)?))
}

/// Adds `[K, c, D]` to the first c keys of an f32 sum, or initializes the sum.
fn add_prefix(sum: &mut Option<Tensor>, addend: &Tensor) -> Result<()> {
    let (addend, seen) = (wide(addend)?, addend.dim(1)?);
    *sum = Some(match sum.take() {
        None => addend,
        Some(sum) => {
            let rest = sum.narrow(1, seen, sum.dim(1)? - seen)?;
            Tensor::cat(&[(sum.narrow(1, 0, seen)? + addend)?, rest], 1)?
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use candle_core::DType;

    use super::*;
    use crate::ops::gpu::reference_check::{close, wave};

    const HEADS: Heads = Heads { n_heads: 4, n_kv_heads: 2, head_dim: 8 };

    #[test]
    fn the_block_size_does_not_change_results() {
        let sequence = Sequence {
            q: wave(1, (13, 4, 8), DType::F32),
            k: wave(2, (2, 13, 8), DType::F32),
            v: wave(3, (2, 13, 8), DType::F32),
            first: 0,
        };
        let d_out = wave(4, (13, 4, 8), DType::F32);
        let whole = in_blocks(&Kernels::Reference, &sequence, HEADS, 13).unwrap();
        let parts = in_blocks(&Kernels::Reference, &sequence, HEADS, 5).unwrap();
        close(&whole, &parts, 1e-6);
        let whole = backward_in_blocks(&Kernels::Reference, &sequence, HEADS, &d_out, 13).unwrap();
        let parts = backward_in_blocks(&Kernels::Reference, &sequence, HEADS, &d_out, 5).unwrap();
        close(&whole.0, &parts.0, 1e-6);
        close(&whole.1, &parts.1, 1e-6);
        close(&whole.2, &parts.2, 1e-6);
    }

    #[test]
    fn the_first_query_sees_one_key() {
        // The only visible key has probability 1 for any score.
        let (k, v) = (wave(2, (2, 3, 8), DType::F32), wave(3, (2, 3, 8), DType::F32));
        let q = (wave(1, (1, 4, 8), DType::F32) * 50.0).unwrap();
        let out = forward(&Kernels::Reference, &Sequence { q, k, v: v.clone(), first: 0 }, HEADS).unwrap();
        let first = v.narrow(1, 0, 1).unwrap(); // [K, 1, D]
        let expected = first.broadcast_as((2, 2, 8)).unwrap().contiguous().unwrap().reshape((1, 32)).unwrap();
        close(&out, &expected, 0.0);
    }
}
