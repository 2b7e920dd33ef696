//! Tokens a second and memory of models with random weights.
//!
//! Times are of the host's clock around work that was waited for, the median of several repetitions after one that is
//! not counted. The floor of a decoding step is the time to read all weights and all keys and values once at the
//! bandwidth on the data sheet of an H200; of a training step, 6 operations a parameter and token (8 with the layers
//! computed again) and 12 · layers · hidden · context for attention, at the matrix units' dense rate in bf16.

use webshop_lm::LmError;
use webshop_lm::device::{Compute, DeviceCache, DeviceModel, Parameters};
use webshop_agent::AgentError;
use webshop_lm::{KnownShape, LaneTokens, PackedTokens, Sampler};

use crate::gpu_check::{GpuCheck, Page, SMALL_VOCABULARY, failure};
use crate::run::clock::Clock;
use crate::config::{Method, OptimizerConfig};
use crate::error::Result;
use crate::optimizer::{DeviceOptimizer, StepOutcome, Stride};

/// Bytes a second that an H200's memory delivers by its data sheet.
const BANDWIDTH: f64 = 4.8e12;
const REPETITIONS: usize = 3;
/// Steps of one timed repetition of decoding.
const STEPS: usize = 32;

fn ids(n: usize, vocab_size: usize) -> Vec<u32> {
    (0..n).map(|i| ((i * 7919 + i * i) % vocab_size) as u32).collect()
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Seconds of `work` on the device, the median after one uncounted time.
fn timed(compute: &Compute, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut seconds = Vec::new();
    for repetition in 0..=REPETITIONS {
        compute.synchronize()?;
        let clock = Clock::resume(0.0);
        work()?;
        compute.synchronize()?;
        if repetition > 0 {
            seconds.push(clock.seconds());
        }
    }
    Ok(median(seconds))
}

fn peak(compute: &Compute) -> Result<String> {
    let bytes = compute.peak_bytes()?;
    Ok(bytes.map_or_else(|| "–".to_owned(), |bytes| format!("{:.1}", bytes as f64 / f64::from(1 << 30))))
}

/// A row for each model and number of lanes, which tells of texts of `length` tokens what `measure` finds.
fn rows(
    check: &GpuCheck,
    page: &mut Page,
    length: usize,
    measure: impl Fn(&DeviceModel, usize) -> Result<Vec<String>>,
) -> Result<()> {
    for &shape in &check.shapes {
        let model = match DeviceModel::for_measurement(&shape.config(SMALL_VOCABULARY), &check.compute) {
            Ok(model) => model,
            Err(error) => {
                page.failed(&[shape.to_string()], &error.into())?;
                continue;
            }
        };
        for &batch in &check.batches {
            let cells = [shape.to_string(), batch.to_string(), length.to_string()];
            match measure(&model, batch) {
                Ok(rest) => page.row(&[&cells[..], &rest].concat())?,
                Err(error) => page.failed(&cells, &error)?,
            }
        }
    }
    Ok(())
}

/// Reading prompts, for each model and number of lanes.
pub fn prefill(check: &GpuCheck, page: &mut Page) -> Result<()> {
    page.table("Prefill", &["model", "lanes", "tokens a lane", "tokens/s", "peak GiB"])?;
    rows(check, page, check.prompt, |model, batch| prefill_of(check, model, batch))
}

fn prefill_of(check: &GpuCheck, model: &DeviceModel, batch: usize) -> Result<Vec<String>> {
    let compute = model.compute();
    compute.forget_peak()?;
    let mut cache = DeviceCache::new(model, batch, check.prompt)?;
    let text = ids(check.prompt, model.config().vocab_size);
    let lanes: Vec<LaneTokens> = (0..batch).map(|lane| LaneTokens { lane, ids: &text }).collect();
    let seconds = timed(compute, || {
        (0..batch).for_each(|lane| cache.truncate_lane(lane, 0));
        model.read(&mut cache, &lanes)?;
        Ok(())
    })?;
    Ok(vec![format!("{:.0}", (batch * check.prompt) as f64 / seconds), peak(compute)?])
}

/// One token for each lane at a time: launched kernel by kernel, and replayed as a graph.
pub fn decode(check: &GpuCheck, page: &mut Page) -> Result<()> {
    let columns = [
        "model",
        "lanes",
        "context",
        "ms a step",
        "tokens/s",
        "ms as a graph",
        "tokens/s",
        "floor, ms",
        "best / floor",
        "peak GiB",
    ];
    page.table("Decoding", &columns)?;
    rows(check, page, check.context, |model, batch| decode_of(check, model, batch))
}

fn decode_of(check: &GpuCheck, model: &DeviceModel, batch: usize) -> Result<Vec<String>> {
    let compute = model.compute();
    compute.forget_peak()?;
    // Room for the uncounted repetition, the counted ones, and what is read while a graph is recorded.
    let n_steps = (REPETITIONS + 1) * STEPS;
    let mut cache = DeviceCache::new(model, batch, check.context + n_steps + 1)?;
    let context = check.context.min(cache.capacity().saturating_sub(n_steps + 1));
    let text = ids(context, model.config().vocab_size);
    model.read(&mut cache, &[LaneTokens { lane: 0, ids: &text }])?;
    (1..batch).try_for_each(|lane| cache.copy_lane(0, lane))?;
    let first = ids(batch, model.config().vocab_size);

    let eager = {
        let mut stepper = model.stepper(&mut cache, &first, 0.0)?;
        timed(compute, || Ok((0..STEPS).try_for_each(|_| stepper.step())?))? / STEPS as f64
    };
    (0..batch).for_each(|lane| cache.truncate_lane(lane, context));
    let graph = compute.has_own_kernels().then(|| replayed(model, &mut cache, &first));

    let kv_bytes = (batch * context * model.cache_bytes_per_token()) as f64;
    let weight_bytes = (model.n_parameters() * compute.dtype().dtype().size_in_bytes()) as f64;
    let floor = (weight_bytes + kv_bytes) / BANDWIDTH;
    let best = graph.iter().flatten().fold(eager, |best, graph| best.min(*graph));
    let nothing = || "–".to_owned();
    // The floor is that of a GPU's memory.
    let [floor_ms, over_floor] = if compute.is_gpu() {
        [format!("{:.3}", floor * 1e3), format!("{:.1}", best / floor)]
    } else {
        [nothing(), nothing()]
    };
    let [graph_ms, graph_rate] = match &graph {
        Some(Ok(seconds)) => [format!("{:.3}", seconds * 1e3), format!("{:.0}", batch as f64 / seconds)],
        Some(Err(error)) => [failure(error), nothing()],
        None => [nothing(), nothing()],
    };
    Ok(vec![
        format!("{:.3}", eager * 1e3),
        format!("{:.0}", batch as f64 / eager),
        graph_ms,
        graph_rate,
        floor_ms,
        over_floor,
        peak(compute)?,
    ])
}

fn replayed(model: &DeviceModel, cache: &mut DeviceCache, first: &[u32]) -> Result<f64> {
    let mut stepper = model.stepper(cache, first, 0.0)?;
    // Once as it is, so that nothing is set up while it is recorded.
    stepper.step()?;
    let mut graph = stepper.record()?;
    let seconds = timed(model.compute(), || Ok((0..STEPS).try_for_each(|_| stepper.replay(&mut graph))?))?;
    Ok(seconds / STEPS as f64)
}

/// A step of AdamW on packed sequences, every position scored.
pub fn train(check: &GpuCheck, page: &mut Page) -> Result<()> {
    let compute = &check.compute;
    let columns =
        ["model", "sequences × tokens", "seconds", "tokens/s", "TFLOP/s without recomputation", "peak GiB"];
    page.table("A training step", &columns)?;
    for &shape in &check.shapes {
        let cells = [shape.to_string(), format!("{} × {}", check.train.0, check.train.1)];
        match train_of(check, shape, compute) {
            Ok(rest) => page.row(&[&cells[..], &rest].concat())?,
            Err(error) => page.failed(&cells, &error)?,
        }
    }
    Ok(())
}

fn train_of(check: &GpuCheck, shape: KnownShape, compute: &Compute) -> Result<Vec<String>> {
    compute.forget_peak()?;
    let (config, (n_sequences, length)) = (shape.config(SMALL_VOCABULARY), check.train);
    let model = DeviceModel::for_measurement(&config, compute)?;
    let optimizer = OptimizerConfig::default();
    let stride = Stride { lr: 1e-6, grad_clip: optimizer.grad_clip };
    let mut optimizer = DeviceOptimizer::new(Method::Adamw, &optimizer, &model, None)?;
    let gradients = model.weights().zeros_like()?;
    let at_once = (check.micro_batch_tokens / length).clamp(1, n_sequences);
    let mut step = |n_sequences: usize| -> Result<()> {
        gradients.clear()?;
        for first in (0..n_sequences).step_by(at_once) {
            micro_batch(&model, &gradients, at_once.min(n_sequences - first), length)?;
        }
        match optimizer.step(&model, &gradients, stride)? {
            StepOutcome::Stepped { .. } => Ok(compute.synchronize()?),
            StepOutcome::NonFinite { parameter } => {
                Err(LmError::Weights(format!("the gradient of `{parameter}` is not finite")).into())
            }
        }
    };
    // One micro-batch that is not counted: memory is taken and cuBLAS chooses its kernels.
    step(at_once)?;
    let clock = Clock::resume(0.0);
    step(n_sequences)?;
    let seconds = clock.seconds();
    let n_tokens = (n_sequences * length) as f64;
    let attention = (12 * config.num_hidden_layers * config.hidden_size * length) as f64 / 2.0;
    let operations = n_tokens * (6.0 * model.n_parameters() as f64 + attention);
    Ok(vec![
        format!("{seconds:.2}"),
        format!("{:.0}", n_tokens / seconds),
        format!("{:.1}", operations / seconds / 1e12),
        peak(compute)?,
    ])
}

fn micro_batch(model: &DeviceModel, gradients: &Parameters, n_sequences: usize, length: usize) -> Result<()> {
    let text = ids(n_sequences * length, model.config().vocab_size);
    let lengths = vec![length; n_sequences];
    let ends = |position: u32| (position as usize + 1).is_multiple_of(length);
    let positions: Vec<u32> = (0..text.len() as u32).filter(|&position| !ends(position)).collect();
    let targets: Vec<u32> = positions.iter().map(|&position| text[position as usize + 1]).collect();
    let pass = model.record(
        &PackedTokens { ids: &text, lengths: &lengths, trunks: &[] },
        &positions,
        &targets,
        Sampler::PLAIN,
    )?;
    pass.backward(&vec![-1.0 / positions.len() as f32; positions.len()], gradients)?;
    Ok(())
}
