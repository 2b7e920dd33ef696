//! Kernels compared with their reference implementations, and the GPU backend with the CPU backend.

use candle_core::{Device, Tensor};
use webshop_lm::device::{Compute, ComputeDtype, DeviceCache, DeviceModel, KernelChoice, ReferenceCheck};
use webshop_lm::{KvCache, LaneTokens, LmError, PackedTokens, Qwen2, Qwen2Config, Sampler};
use webshop_products::Seed;

use crate::options::Options;
use crate::report::Report;
use crate::speed::{SMALL_VOCABULARY, config};

/// Tokens on which the kernels are compared.
const TOKENS: usize = 200;
/// Tokens decoded one by one.
const STEPS: usize = 24;
/// Vocabulary of the model on which the backends are compared.
const VOCAB_SIZE: usize = 1000;

/// Largest relative errors.
struct Tolerance {
    kernels: f64,
    logits: f64,
    log_probs: f64,
    gradients: f64,
    /// Share of greedy tokens that differ.
    tokens: f64,
}

/// f32: other orders of summation, and the GPU's fast exponential. bf16: products rounded to 8 significant
/// bits in each layer, and near ties of greedy tokens.
fn tolerance(dtype: ComputeDtype) -> Tolerance {
    match dtype {
        ComputeDtype::F32 => {
            Tolerance { kernels: 1e-5, logits: 1e-4, log_probs: 1e-4, gradients: 1e-3, tokens: 0.0 }
        }
        ComputeDtype::Bf16 => {
            Tolerance { kernels: 5e-3, logits: 3e-2, log_probs: 5e-2, gradients: 1e-1, tokens: 0.1 }
        }
    }
}

/// Compares each kernel at the sizes of each shape, in both dtypes.
pub(crate) fn kernels(options: &Options, report: &mut Report) {
    let compute = &options.compute;
    if !compute.uses_custom_kernels() {
        println!(
            "\nThe CUDA kernels need a GPU and `--features cuda`. Without a GPU, `cargo test -p webshop-lm --lib gpu` compares \
             emulated kernels with their references."
        );
        return;
    }
    let columns = ["dtype", "model", "operation", "relative error", "tolerance", ""];
    report.table("Kernels compared with their references", &columns);
    for dtype in [ComputeDtype::F32, ComputeDtype::Bf16] {
        for &shape in &options.shapes {
            let cells = [format!("{dtype:?}"), shape.to_string()];
            match compare(&compute.with(dtype, compute.choice()), config(shape)) {
                Ok(checks) => {
                    for check in checks {
                        let cells = [&cells[..], &[check.name.to_owned()]].concat();
                        report.compared(&cells, check.error, tolerance(dtype).kernels);
                    }
                }
                Err(error) => report.failed(&cells, &error),
            }
        }
    }
}

fn compare(compute: &Compute, config: Qwen2Config) -> Result<Vec<ReferenceCheck>, LmError> {
    // One layer runs all kernels. With a small vocabulary the head does not dominate the time.
    let config = Qwen2Config {
        num_hidden_layers: 1,
        vocab_size: config.vocab_size.min(2 * SMALL_VOCABULARY),
        ..config
    };
    DeviceModel::for_measurement(&config, compute)?.compare_kernels(TOKENS)
}

/// Compares a model of four layers on both backends, in both dtypes.
pub(crate) fn backends(options: &Options, report: &mut Report) {
    let compute = &options.compute;
    let columns = ["dtype", "kernels", "result", "relative error", "tolerance", ""];
    report.table("The GPU backend compared with the CPU backend", &columns);
    let reference = |dtype| compute.with(dtype, KernelChoice::Reference);
    for dtype in [ComputeDtype::F32, ComputeDtype::Bf16] {
        let mut measured = vec![("reference", reference(dtype))];
        if compute.uses_custom_kernels() {
            let custom = compute.with(dtype, KernelChoice::Custom);
            measured.extend([("custom, eager", custom.eager()), ("custom", custom)]);
        }
        for (kernels, compute) in measured {
            let cells = [format!("{dtype:?}"), kernels.to_owned()];
            match measure(&compute) {
                Ok(errors) => {
                    let limits = tolerance(dtype);
                    for (result, error, limit) in [
                        ("logits", errors.logits, limits.logits),
                        ("log-probabilities", errors.log_probs, limits.log_probs),
                        ("gradients", errors.gradients, limits.gradients),
                        ("share of other greedy tokens", errors.tokens, limits.tokens),
                    ] {
                        report.compared(&[&cells[..], &[result.to_owned()]].concat(), error, limit);
                    }
                }
                Err(error) => report.failed(&cells, &error),
            }
        }
    }
}

/// Relative errors of the results of the GPU backend.
struct Errors {
    logits: f64,
    log_probs: f64,
    gradients: f64,
    tokens: f64,
}

fn measure(compute: &Compute) -> Result<Errors, LmError> {
    let config = Qwen2Config {
        hidden_size: 256,
        intermediate_size: 704,
        num_hidden_layers: 4,
        num_attention_heads: 4,
        num_key_value_heads: Some(2),
        initializer_range: 0.08,
        ..Qwen2Config::small(VOCAB_SIZE)
    };
    let model = Qwen2::random(&config, Seed(5))?;
    let device = DeviceModel::new(&model, compute)?;
    let (logits, tokens) = decoding_errors(&model, &device)?;
    let (log_probs, gradients) = training_errors(&model, &device)?;
    Ok(Errors { logits, log_probs, gradients, tokens })
}

fn ids(n: usize, salt: usize) -> Vec<u32> {
    (0..n).map(|i| ((i * i * 13 + 7 * i + salt * 331) % VOCAB_SIZE) as u32).collect()
}

/// ‖a − b‖² and ‖b‖².
fn squares(a: &[f32], b: &[f32]) -> (f64, f64) {
    let error = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
    (error, b.iter().map(|b| f64::from(*b).powi(2)).sum())
}

/// √(Σ ‖a − b‖² / Σ ‖b‖²)
fn relative(sums: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let (error, size) = sums.into_iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    (error / size).sqrt()
}

/// The id of the largest logit, ties by the lower id.
fn argmax(row: &[f32]) -> u32 {
    let larger = |best: (usize, f32), next: (usize, f32)| if next.1 > best.1 { next } else { best };
    row.iter().copied().enumerate().reduce(larger).map_or(0, |(id, _)| id as u32)
}

/// Relative error of the logits and share of other greedy tokens: prompts of different lengths, then single
/// tokens. Both backends append the greedy tokens of the CPU backend.
fn decoding_errors(model: &Qwen2, device: &DeviceModel) -> Result<(f64, f64), LmError> {
    let decoder = model.decoder()?;
    let mut new = vec![ids(70, 1), ids(3, 2), ids(128, 3), ids(1, 4)];
    let mut theirs = KvCache::new(model.config(), new.len(), 256);
    let mut ours = DeviceCache::new(device, new.len(), 256)?;
    let (mut sums, mut n_other) = (Vec::new(), 0);
    for _ in 0..=STEPS {
        let lanes: Vec<LaneTokens> =
            new.iter().enumerate().map(|(lane, ids)| LaneTokens { lane, ids }).collect();
        let expected = decoder.decode(&mut theirs, &lanes)?;
        let logits = device.decode(&mut ours, &lanes)?;
        sums.extend(logits.rows().zip(expected.rows()).map(|(a, b)| squares(a, b)));
        n_other += logits.rows().zip(expected.rows()).filter(|(a, b)| argmax(a) != argmax(b)).count();
        new = expected.rows().map(|row| vec![argmax(row)]).collect();
    }
    Ok((relative(sums), n_other as f64 / ((STEPS + 1) * new.len()) as f64))
}

/// Relative errors of the log-probabilities, and of the gradient of the parameter with the largest error.
fn training_errors(model: &Qwen2, device: &DeviceModel) -> Result<(f64, f64), LmError> {
    let (ids, lengths) = (ids(150, 5), [100, 50]);
    let tokens = PackedTokens { ids: &ids, lengths: &lengths, prefix_of: &[] };
    let positions: Vec<u32> = (0..149).filter(|&p| p != 99).step_by(3).collect();
    let targets: Vec<u32> = positions.iter().map(|&p| ids[p as usize + 1]).collect();
    let d: Vec<f32> = (0..targets.len()).map(|i| -0.02 - 0.001 * i as f32).collect();
    let theirs = model.record(&tokens, &positions, &targets, Sampler::UNTEMPERED)?;
    let weights = Tensor::from_slice(&d, d.len(), &Device::Cpu)?;
    let loss = (&theirs.stats().log_prob * weights)?.sum_all()?;
    let expected = theirs.backward(&loss)?;
    let ours = device.record(&tokens, &positions, &targets, Sampler::UNTEMPERED)?;
    let log_probs = squares(&ours.log_prob().to_vec1::<f32>()?, &theirs.stats().log_prob.to_vec1::<f32>()?);
    let gradients = device.weights().zeros_like()?;
    ours.backward(&d, &gradients)?;
    let mut worst = 0.0_f64;
    for ((_, ours), theirs) in gradients.split(model.config())?.iter().zip(&expected) {
        let error = relative([squares(&ours.flatten_all()?.to_vec1::<f32>()?, theirs)]);
        worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
    }
    Ok((relative([log_probs]), worst))
}
