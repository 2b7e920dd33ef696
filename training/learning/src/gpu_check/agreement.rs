//! Kernels against their twins, and the device's engine against the CPU's.

use candle_core::{Device, Tensor};
use webshop_lm::device::{Compute, ComputeDtype, DeviceCache, DeviceModel, KernelChoice, TwinCheck};
use webshop_lm::{KvCache, LaneTokens, PackedTokens, Qwen2, Qwen2Config, Sampler};
use webshop_products::Seed;

use crate::gpu_check::{GpuCheck, Page, SMALL_VOCABULARY};
use crate::error::Result;

/// Tokens that the kernels are compared on.
const TOKENS: usize = 200;
/// Tokens decoded one by one.
const STEPS: usize = 24;

/// How far apart results may be.
struct Tolerance {
    twins: f64,
    logits: f64,
    log_probs: f64,
    gradients: f64,
}

/// f32: sums in another order, and the GPU's fast exponential. bf16: products rounded to 8 bits, layer by layer.
fn tolerance(dtype: ComputeDtype) -> Tolerance {
    match dtype {
        ComputeDtype::F32 => Tolerance { twins: 1e-5, logits: 1e-4, log_probs: 1e-4, gradients: 1e-3 },
        ComputeDtype::Bf16 => Tolerance { twins: 5e-3, logits: 3e-2, log_probs: 5e-2, gradients: 1e-1 },
    }
}

/// Each kernel at the sizes of each model, in both formats.
pub fn twins(check: &GpuCheck, page: &mut Page) -> Result<()> {
    let compute = &check.compute;
    if !compute.has_own_kernels() {
        return page.line("\nKernels are not compared with their twins: no kernels of ours run here.");
    }
    let columns = ["format", "model", "operation", "relative error", "tolerance", ""];
    page.table("Kernels against their plain twins", &columns)?;
    for dtype in [ComputeDtype::F32, ComputeDtype::Bf16] {
        for shape in &check.shapes {
            let cells = [format!("{dtype:?}"), shape.to_string()];
            match compare(&compute.with(dtype, compute.choice()), shape.config(SMALL_VOCABULARY)) {
                Ok(found) => {
                    for twin in found {
                        let cells = [&cells[..], &[twin.name.to_owned()]].concat();
                        page.judged(&cells, twin.error, tolerance(dtype).twins)?;
                    }
                }
                Err(error) => page.failed(&cells, &error)?,
            }
        }
    }
    Ok(())
}

fn compare(compute: &Compute, config: Qwen2Config) -> Result<Vec<TwinCheck>> {
    // One layer has all kernels; a small vocabulary keeps the head's gradient from hiding the rest in its time.
    let config = Qwen2Config { num_hidden_layers: 1, vocab_size: config.vocab_size.min(5000), ..config };
    Ok(DeviceModel::for_measurement(&config, compute)?.compare_kernels(TOKENS)?)
}

/// A model of four layers and heads of 64, on the CPU's engine and on the device's, in both formats.
pub fn engines(compute: &Compute, page: &mut Page) -> Result<()> {
    page.table(
        "The device's engine against the CPU's",
        &["format", "kernels", "result", "relative error", "tolerance", ""],
    )?;
    let config = Qwen2Config {
        hidden_size: 256,
        intermediate_size: 704,
        num_hidden_layers: 4,
        num_attention_heads: 4,
        num_key_value_heads: Some(2),
        initializer_range: 0.08,
        ..Qwen2Config::small(1000)
    };
    let model = Qwen2::random(&config, Seed(5))?;
    let all = [KernelChoice::Own, KernelChoice::Plain];
    let kinds = if compute.has_own_kernels() { &all[..] } else { &all[1..] };
    for dtype in [ComputeDtype::F32, ComputeDtype::Bf16] {
        for &kernels in kinds {
            let cells = [format!("{dtype:?}"), format!("{kernels:?}")];
            let limits = tolerance(dtype);
            match measure(&model, &compute.with(dtype, kernels)) {
                Ok(found) => {
                    let judged = [
                        ("logits, prompts and single tokens", found.logits, limits.logits),
                        ("log-probabilities", found.log_probs, limits.log_probs),
                        ("gradients", found.gradients, limits.gradients),
                    ];
                    for (result, error, limit) in judged {
                        page.judged(&[&cells[..], &[result.to_owned()]].concat(), error, limit)?;
                    }
                    let other =
                        format!("{} of {} greedy tokens are others", found.other_tokens, found.tokens);
                    // In bf16 near ties fall either way; in f32 every token is the same.
                    let limit = if dtype == ComputeDtype::F32 { 0.0 } else { 0.1 };
                    let share = found.other_tokens as f64 / found.tokens as f64;
                    page.judged(&[&cells[..], &[other]].concat(), share, limit)?;
                }
                Err(error) => page.failed(&cells, &error)?,
            }
        }
    }
    Ok(())
}

/// Relative errors of the device's results.
struct Found {
    logits: f64,
    log_probs: f64,
    gradients: f64,
    other_tokens: usize,
    tokens: usize,
}

fn ids(n: usize, salt: usize) -> Vec<u32> {
    (0..n).map(|i| ((i * i * 13 + 7 * i + salt * 331) % 1000) as u32).collect()
}

fn distance(ours: &[f32], theirs: &[f32]) -> (f64, f64) {
    let pairs = ours.iter().zip(theirs);
    let error = pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
    (error, theirs.iter().map(|b| f64::from(*b).powi(2)).sum())
}

fn relative(sums: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let (error, size) = sums.into_iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    (error / size).sqrt()
}

fn best(row: &[f32]) -> u32 {
    let best = row
        .iter()
        .enumerate()
        .fold((0, f32::NEG_INFINITY), |best, (id, &logit)| if logit > best.1 { (id, logit) } else { best });
    best.0 as u32
}

fn measure(model: &Qwen2, compute: &Compute) -> Result<Found> {
    let device = DeviceModel::new(model, compute)?;
    let (logits, other_tokens, tokens) = decoded(model, &device)?;
    let (log_probs, gradients) = learned(model, &device)?;
    Ok(Found { logits, log_probs, gradients, other_tokens, tokens })
}

/// Ragged prompts and then single tokens, both engines reading what the CPU's finds most probable.
fn decoded(model: &Qwen2, device: &DeviceModel) -> Result<(f64, usize, usize)> {
    let decoder = model.decoder()?;
    let prompts = [ids(70, 1), ids(3, 2), ids(128, 3), ids(1, 4)];
    let mut theirs = KvCache::new(model.config(), prompts.len(), 256);
    let mut ours = DeviceCache::new(device, prompts.len(), 256)?;
    let mut texts: Vec<Vec<u32>> = prompts.to_vec();
    let (mut sums, mut other_tokens) = (Vec::new(), 0);
    for _ in 0..=STEPS {
        let lanes: Vec<LaneTokens> =
            texts.iter().enumerate().map(|(lane, ids)| LaneTokens { lane, ids }).collect();
        let expected = decoder.decode(&mut theirs, &lanes)?;
        let logits = device.decode(&mut ours, &lanes)?;
        sums.extend(logits.rows().zip(expected.rows()).map(|(a, b)| distance(a, b)));
        other_tokens += logits.rows().zip(expected.rows()).filter(|(a, b)| best(a) != best(b)).count();
        texts = expected.rows().map(|row| vec![best(row)]).collect();
    }
    Ok((relative(sums), other_tokens, (STEPS + 1) * prompts.len()))
}

fn learned(model: &Qwen2, device: &DeviceModel) -> Result<(f64, f64)> {
    let (ids, lengths) = (ids(150, 5), [100, 50]);
    let tokens = PackedTokens { ids: &ids, lengths: &lengths, trunks: &[] };
    let positions: Vec<u32> = (0..149).filter(|&p| p != 99).step_by(3).collect();
    let targets: Vec<u32> = positions.iter().map(|&p| ids[p as usize + 1]).collect();
    let d: Vec<f32> = (0..targets.len()).map(|i| -0.02 - 0.001 * i as f32).collect();
    let theirs = model.record(&tokens, &positions, &targets, Sampler::PLAIN)?;
    let loss = (&theirs.stats().log_prob * Tensor::from_slice(&d, d.len(), &Device::Cpu)?)?.sum_all()?;
    let expected = theirs.backward(&loss)?;
    let ours = device.record(&tokens, &positions, &targets, Sampler::PLAIN)?;
    let log_probs = distance(&ours.log_prob().to_vec1::<f32>()?, &theirs.stats().log_prob.to_vec1::<f32>()?);
    let gradients = device.weights().zeros_like()?;
    ours.backward(&d, &gradients)?;
    let mut worst = 0.0_f64;
    for ((_, ours), theirs) in gradients.apart(model.config())?.iter().zip(&expected) {
        let error = relative([distance(&ours.flatten_all()?.to_vec1::<f32>()?, theirs)]);
        worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
    }
    Ok((relative([log_probs]), worst))
}
