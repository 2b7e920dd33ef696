//! Causal attention of many queries to the keys before them, by matrix products over blocks of queries.
//!
//! `softmax(q·k / √D) v`, the query heads of a group sharing their keys. Scores exist for [`QUERIES`] queries of one
//! sequence at a time, so memory is linear in the number of tokens; the backward pass makes them again. The products
//! are cuBLAS's, what lies between them one kernel (`causal_softmax`, `softmax_backward`).
//!
//! Shapes: n queries, the first at position `first`; H query heads in G groups' order, K key heads, C keys.

use candle_core::{D, Result, Tensor};

use crate::ops::gpu::wide;
use webshop_kernels::cpu::attention::Heads;
use webshop_kernels::gpu::launch::{Arg, Kernels, Launch, count};

/// Queries whose scores exist at the same time.
pub const QUERIES: usize = 1024;
const THREADS: usize = 256;

/// Queries, keys and values of one sequence or one lane.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Rotated queries, which may be a view. `[n, H, D]`
    pub q: Tensor,
    /// Rotated keys from position 0 on. `[K, C, D]`
    pub k: Tensor,
    /// Values. `[K, C, D]`
    pub v: Tensor,
    /// Position of the first query; `first + n ≤ C`.
    pub first: usize,
}

/// A block of queries with the keys it may see.
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

/// Rows of heads `[b, H, D]` as rows of each key head `[K, G b, D]`.
fn by_head(rows: &Tensor, heads: Heads) -> Result<Tensor> {
    let n = rows.dim(0)?;
    rows.transpose(0, 1)?.contiguous()?.reshape((heads.n_kv_heads, heads.group() * n, heads.head_dim))
}

/// The inverse of [`by_head`], the heads of a row side by side. `[b, H D]`
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
    /// The probabilities. `[K, G b, c]`
    fn probabilities(&self, kernels: &Kernels, heads: Heads) -> Result<Tensor> {
        let scores = self.q.matmul(&self.k.t()?)?;
        let context = self.k.dim(1)?;
        let Some(launcher) = kernels.own() else {
            return self.plain_softmax(&scores, heads);
        };
        launcher.launch(&Launch {
            kernel: "causal_softmax",
            grid: [heads.n_heads * self.n_queries, 1, 1],
            threads: THREADS,
            args: &[
                Arg::Out(&scores),
                count(self.n_queries),
                count(self.first),
                count(context),
                Arg::F32(heads.scale()),
            ],
        })?;
        Ok(scores)
    }

    fn plain_softmax(&self, scores: &Tensor, heads: Heads) -> Result<Tensor> {
        let (context, device) = (scores.dim(2)?, scores.device());
        let row = |i: usize| {
            (0..context).map(move |key| if key > self.first + i { f32::NEG_INFINITY } else { 0.0 })
        };
        let mask: Vec<f32> = (0..heads.group()).flat_map(|_| (0..self.n_queries).flat_map(row)).collect();
        let mask = Tensor::from_vec(mask, (heads.group() * self.n_queries, context), device)?;
        let scaled = (wide(scores)? * f64::from(heads.scale()))?.broadcast_add(&mask)?;
        let weights = scaled.broadcast_sub(&scaled.max_keepdim(D::Minus1)?)?.exp()?;
        weights.broadcast_div(&weights.sum_keepdim(D::Minus1)?)?.to_dtype(scores.dtype())
    }

    /// Turns the gradient of the probabilities into that of the scores.
    fn softmax_backward(&self, kernels: &Kernels, p: &Tensor, d_p: Tensor, scale: f32) -> Result<Tensor> {
        let (batch, rows, context) = p.dims3()?;
        let Some(launcher) = kernels.own() else {
            let (p, d_p) = (wide(p)?, wide(&d_p)?);
            let along = (&p * &d_p)?.sum_keepdim(D::Minus1)?;
            let d_scores = (d_p.broadcast_sub(&along)? * p)? * f64::from(scale);
            return d_scores?.to_dtype(self.q.dtype());
        };
        launcher.launch(&Launch {
            kernel: "softmax_backward",
            grid: [batch * rows, 1, 1],
            threads: THREADS,
            args: &[Arg::In(p), Arg::Out(&d_p), count(context), Arg::F32(scale)],
        })?;
        Ok(d_p)
    }
}

/// What the queries attend to. `[n, H D]`
pub fn forward(kernels: &Kernels, sequence: &Sequence, heads: Heads) -> Result<Tensor> {
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

/// Gradients with respect to q `[n, H D]`, k and v `[K, C, D]`, of a sequence that begins at position 0; d_out is
/// `[n, H, D]` and may be a view.
pub fn backward(
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
    // From the last block, which sees all keys, to the first: sums only ever grow shorter.
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

/// Adds `[K, c, D]` to the first c keys of a sum in f32, which it becomes if there is none yet.
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

    use crate::ops::gpu::reference_check::{close, wave};
    use super::*;

    const HEADS: Heads = Heads { n_heads: 4, n_kv_heads: 2, head_dim: 8 };

    #[test]
    fn blocks_do_not_show() {
        let sequence = Sequence {
            q: wave(1, (13, 4, 8), DType::F32),
            k: wave(2, (2, 13, 8), DType::F32),
            v: wave(3, (2, 13, 8), DType::F32),
            first: 0,
        };
        let d_out = wave(4, (13, 4, 8), DType::F32);
        let whole = in_blocks(&Kernels::Plain, &sequence, HEADS, 13).unwrap();
        let parts = in_blocks(&Kernels::Plain, &sequence, HEADS, 5).unwrap();
        close(&whole, &parts, 1e-6);
        let whole = backward_in_blocks(&Kernels::Plain, &sequence, HEADS, &d_out, 13).unwrap();
        let parts = backward_in_blocks(&Kernels::Plain, &sequence, HEADS, &d_out, 5).unwrap();
        close(&whole.0, &parts.0, 1e-6);
        close(&whole.1, &parts.1, 1e-6);
        close(&whole.2, &parts.2, 1e-6);
    }

    #[test]
    fn a_first_query_sees_one_key_alone() {
        // With a single key visible its probability is 1, whatever the score.
        let (k, v) = (wave(2, (2, 3, 8), DType::F32), wave(3, (2, 3, 8), DType::F32));
        let q = (wave(1, (1, 4, 8), DType::F32) * 50.0).unwrap();
        let out = forward(&Kernels::Plain, &Sequence { q, k, v: v.clone(), first: 0 }, HEADS).unwrap();
        let first = v.narrow(1, 0, 1).unwrap(); // [K, 1, D]
        let expected = first.broadcast_as((2, 2, 8)).unwrap().contiguous().unwrap().reshape((1, 32)).unwrap();
        close(&out, &expected, 0.0);
    }
}
