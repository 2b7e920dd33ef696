//! Tokens per second and memory of rollouts and of a training step, on both backends.

use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;
use webshop_lm::device::{Compute, DeviceModel, Parameters, adamw};
use webshop_lm::{
    Context, Engine, Generator, GeneratorConfig, KnownShape, LmError, PackedTokens, Qwen2, Qwen2Config,
    Request, Sampler, SamplingCoordinates,
};
use webshop_products::Seed;

use crate::common::{add, ids, peak_resident_bytes};
use crate::options::Options;
use crate::report::{Report, gib};

/// Vocabulary of [`KnownShape::Tiny`].
pub(crate) const SMALL_VOCABULARY: usize = 2048;
/// Largest number of positions: the table of rotary angles takes memory for each.
const MAX_POSITIONS: usize = 8192;

/// The configuration of a shape.
pub(crate) fn config(shape: KnownShape) -> Qwen2Config {
    let config = shape.config(SMALL_VOCABULARY);
    let max_position_embeddings = config.max_position_embeddings.min(MAX_POSITIONS);
    Qwen2Config { max_position_embeddings, ..config }
}

/// How often a part is computed.
#[derive(Clone, Copy)]
struct Repetitions {
    warm_up: usize,
    counted: usize,
}

/// cuBLAS selects its kernels and the driver allocates memory in the first repetition.
const ON_GPU: Repetitions = Repetitions { warm_up: 1, counted: 3 };
/// A repetition on the CPU can take a minute, and the first is not slower.
const ON_CPU: Repetitions = Repetitions { warm_up: 0, counted: 1 };

/// The median of the seconds of `work`, which must wait for its results.
fn timed(repetitions: Repetitions, mut work: impl FnMut() -> Result<(), LmError>) -> Result<f64, LmError> {
    let mut seconds = Vec::new();
    for repetition in 0..repetitions.warm_up + repetitions.counted {
        let start = Instant::now();
        work()?;
        if repetition >= repetitions.warm_up {
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[seconds.len() / 2])
}

/// Resets the peak memory of the GPU, or of the process where Linux permits it.
fn reset_peak(compute: Option<&Compute>) -> Result<(), LmError> {
    match compute.filter(|compute| compute.is_gpu()) {
        Some(compute) => compute.reset_peak(),
        None => {
            // Without this file the peak is that since the start of the process.
            let _ = std::fs::write("/proc/self/clear_refs", "5");
            Ok(())
        }
    }
}

/// Peak memory in GiB since the reset: of the GPU, or the resident memory of the process.
fn peak(compute: Option<&Compute>) -> Result<String, LmError> {
    if let Some(bytes) = compute.map(Compute::peak_bytes).transpose()?.flatten() {
        return Ok(format!("{:.1}", gib(bytes)));
    }
    Ok(peak_resident_bytes().map_or_else(|| "–".to_owned(), |bytes| format!("{:.1}", gib(bytes))))
}

/// The name of the GPU backend in the tables.
fn device_backend(compute: &Compute) -> &'static str {
    match (compute.is_gpu(), compute.records()) {
        (true, true) => "GPU",
        (true, false) => "GPU, eager",
        (false, _) => "GPU code on the CPU",
    }
}

/// Measures both backends with a model of this shape.
pub(crate) fn measure(options: &Options, shape: KnownShape, report: &mut Report) -> Result<(), LmError> {
    let (compute, config) = (&options.compute, config(shape));
    let device = Arc::new(DeviceModel::for_measurement(&config, compute)?);
    let uses_cpu = !options.cpu_batches.is_empty();
    let on_host = uses_cpu.then(|| Qwen2::new(&config, device.weights().split(&config)?)).transpose()?;

    let columns = [
        "model",
        "backend",
        "lanes",
        "tokens of a prompt",
        "prefill, tokens/s",
        "decoding, tokens/s",
        "peak GiB",
        "counted GiB",
    ];
    report.table(&format!("Rollouts, {shape}"), &columns);
    let repetitions = if compute.is_gpu() { ON_GPU } else { ON_CPU };
    let engine = Engine::Device(Arc::clone(&device));
    rollouts(options, shape, (&engine, Some(compute)), &options.batches, repetitions, report);
    if compute.uses_custom_kernels() {
        let eager = compute.eager();
        let device = DeviceModel::with_weights(&config, &eager, device.weights().clone())?;
        let engine = Engine::Device(Arc::new(device));
        rollouts(options, shape, (&engine, Some(&eager)), &options.batches, repetitions, report);
    }
    if let Some(model) = &on_host {
        let engine = Engine::Cpu(Arc::new(model.decoder()?));
        rollouts(options, shape, (&engine, None), &options.cpu_batches, ON_CPU, report);
    }

    let columns = [
        "model",
        "backend",
        "sequences × tokens",
        "forward and backward, tokens/s",
        "AdamW, ms",
        "peak GiB",
        "counted GiB",
    ];
    report.table(&format!("A training step, {shape}"), &columns);
    let sizes = (options.train_sequences, options.train_length);
    let cells = [shape.to_string(), device_backend(compute).to_owned(), format!("{} × {}", sizes.0, sizes.1)];
    match train_on_device(options, &device, repetitions) {
        Ok(rest) => report.row(&[&cells[..], &rest].concat()),
        Err(error) => report.failed(&cells, &error),
    }
    drop((engine, device));
    if let Some(model) = &on_host {
        let sizes = (options.cpu_train_sequences, options.train_length);
        let cells = [shape.to_string(), "CPU".to_owned(), format!("{} × {}", sizes.0, sizes.1)];
        match train_on_cpu(model, sizes) {
            Ok(rest) => report.row(&[&cells[..], &rest].concat()),
            Err(error) => report.failed(&cells, &error),
        }
    }
    Ok(())
}

/// A row for each number of lanes. `compute` is that of the GPU backend.
fn rollouts(
    options: &Options,
    shape: KnownShape,
    (engine, compute): (&Engine, Option<&Compute>),
    batches: &[usize],
    repetitions: Repetitions,
    report: &mut Report,
) {
    let backend = compute.map_or("CPU", device_backend);
    for &n_lanes in batches {
        let cells = [shape.to_string(), backend.to_owned(), n_lanes.to_string(), options.prompt.to_string()];
        let measured = reset_peak(compute)
            .and_then(|()| rollout(options, engine, n_lanes, repetitions))
            .and_then(|[prefill, decoding]| {
                Ok([
                    prefill,
                    decoding,
                    peak(compute)?,
                    counted_rollout(options, engine, n_lanes, repetitions),
                ])
            });
        match measured {
            Ok(rest) => report.row(&[&cells[..], &rest].concat()),
            Err(error) => report.failed(&cells, &error),
        }
    }
}

/// Tokens that a lane has room for: its prompt, the token after it, and those that are decoded.
fn capacity(options: &Options, repetitions: Repetitions) -> usize {
    options.prompt + 1 + (repetitions.warm_up + repetitions.counted) * options.n_new
}

/// What [`rollout`] takes of a GPU by [`DeviceMemory`](webshop_lm::device::DeviceMemory), of which `doctor` makes its
/// estimates; on the CPU a dash.
fn counted_rollout(options: &Options, engine: &Engine, n_lanes: usize, repetitions: Repetitions) -> String {
    let Engine::Device(model) = engine else { return "–".to_owned() };
    let (memory, capacity) = (model.memory(), capacity(options, repetitions));
    let cache = (n_lanes * capacity * memory.cached_token()) as u64;
    let decoding = memory.decoding(n_lanes * options.prompt, n_lanes, capacity);
    format!("{:.1}", gib(memory.values(model.n_parameters()) + cache + decoding))
}

/// The same of [`train_on_device`]: the larger of its passes and its step of AdamW.
fn counted_training(model: &DeviceModel, batches: &[MicroBatch]) -> String {
    let (memory, n_weights) = (model.memory(), model.n_parameters());
    let pass = |batch: &MicroBatch| memory.pass(&batch.lengths, batch.targets.len());
    let passes = batches.iter().map(pass).max().unwrap_or(0);
    // The masters and two averages, which are made after the passes.
    let floats = |n_copies: usize| (n_copies * n_weights * size_of::<f32>()) as u64;
    format!("{:.1}", gib(memory.values(n_weights) + floats(1) + passes.max(floats(3))))
}

/// Tokens per second of prefilling a prompt in each lane and sampling one token, and of decoding more tokens.
fn rollout(
    options: &Options,
    engine: &Engine,
    n_lanes: usize,
    repetitions: Repetitions,
) -> Result<[String; 2], LmError> {
    let config = GeneratorConfig {
        n_lanes,
        capacity: capacity(options, repetitions),
        sampler: options.sampler,
        seed: Seed(1),
        stop_ids: vec![],
        certainty: None,
    };
    let mut generator = Generator::new(engine.clone(), config)?;
    let vocab_size = engine.config().vocab_size;
    let mut turn = 0;
    let mut generate = |generator: &mut Generator, n_prompt: usize, n_new: usize| {
        turn += 1;
        let request = |lane| Request {
            lane,
            context: Context::Continue,
            prompt_ids: ids(n_prompt, lane, vocab_size),
            coordinates: SamplingCoordinates { task: lane as u64, turn, ..Default::default() },
            constraint: None,
            max_new_tokens: n_new,
        };
        let completions = generator.generate(&(0..n_lanes).map(request).collect::<Vec<_>>())?;
        match completions.iter().all(|completion| completion.ids.len() == n_new) {
            true => Ok(()),
            false => Err(LmError::Input("the prompt and the new tokens exceed the model's positions".into())),
        }
    };
    let prefill = timed(repetitions, || {
        (0..n_lanes).for_each(|lane| generator.clear_lane(lane));
        generate(&mut generator, options.prompt, 1)
    })?;
    let decoding = timed(repetitions, || generate(&mut generator, 0, options.n_new))?;
    let rate = |n_tokens: usize, seconds: f64| format!("{:.0}", (n_lanes * n_tokens) as f64 / seconds);
    Ok([rate(options.prompt, prefill), rate(options.n_new, decoding)])
}

/// Packed sequences of one pass, with every position scored except the last of each sequence.
struct MicroBatch {
    ids: Vec<u32>,
    lengths: Vec<usize>,
    positions: Vec<u32>,
    targets: Vec<u32>,
}

impl MicroBatch {
    fn new(n_sequences: usize, length: usize, vocab_size: usize) -> Self {
        let ids = ids(n_sequences * length, 0, vocab_size);
        let is_last = |position: u32| (position as usize + 1).is_multiple_of(length);
        let positions: Vec<u32> = (0..ids.len() as u32).filter(|&position| !is_last(position)).collect();
        let targets = positions.iter().map(|&position| ids[position as usize + 1]).collect();
        Self { ids, lengths: vec![length; n_sequences], positions, targets }
    }

    fn tokens(&self) -> PackedTokens<'_> {
        PackedTokens { ids: &self.ids, lengths: &self.lengths, prefix_of: &[] }
    }
}

/// Tokens per second of forward and backward passes, milliseconds of AdamW, and memory, measured and counted, on the
/// GPU backend.
fn train_on_device(
    options: &Options,
    model: &DeviceModel,
    repetitions: Repetitions,
) -> Result<[String; 4], LmError> {
    let (compute, length) = (model.compute(), options.train_length);
    reset_peak(Some(compute))?;
    let vocab_size = model.config().vocab_size;
    let at_once = (options.micro_batch_tokens / length).clamp(1, options.train_sequences);
    let starts = (0..options.train_sequences).step_by(at_once);
    let batches: Vec<MicroBatch> = starts
        .map(|start| MicroBatch::new(at_once.min(options.train_sequences - start), length, vocab_size))
        .collect();
    let gradients = model.weights().zeros_like()?;
    let passes = timed(repetitions, || {
        gradients.clear()?;
        for batch in &batches {
            let pass =
                model.record(&batch.tokens(), &batch.positions, &batch.targets, Sampler::UNTEMPERED)?;
            let n_targets = pass.stats()?.entropy.len();
            pass.backward(&vec![-1.0 / n_targets as f32; n_targets], &gradients)?;
        }
        compute.synchronize()
    })?;
    let (masters, first, second) =
        (model.weights().widened()?, gradients.zeros_like()?, gradients.zeros_like()?);
    let step = timed(repetitions, || {
        update(model, [&masters, &first, &second], &gradients)?;
        compute.synchronize()
    })?;
    let n_tokens = (options.train_sequences * length) as f64;
    let rate = format!("{:.0}", n_tokens / passes);
    Ok([rate, format!("{:.1}", step * 1e3), peak(Some(compute))?, counted_training(model, &batches)])
}

/// The norm of each gradient and one step of AdamW with the learning rate 0.
fn update(
    model: &DeviceModel,
    [masters, first, second]: [&Parameters; 3],
    gradients: &Parameters,
) -> Result<(), LmError> {
    let by = adamw::Coefficients {
        scale: 1.0,
        keep: 1.0,
        rate: 0.0,
        correction: 1.0,
        betas: [0.9, 0.95],
        complements: [0.1, 0.05],
        epsilon: 1e-8,
    };
    let moments = first.named().zip(second.named());
    let parameters = masters.named().zip(moments).zip(model.weights().named());
    for ((((_, parameter), ((_, first), (_, second))), (_, weight)), (_, gradient)) in
        parameters.zip(gradients.named())
    {
        adamw::sum_of_squares(model.kernels(), gradient)?;
        let copy = (weight.dtype() != parameter.dtype()).then_some(weight);
        let state = adamw::State { parameter, first, second, copy };
        adamw::update(model.kernels(), state, gradient, by)?;
    }
    Ok(())
}

/// As [`train_on_device`], on the CPU backend and without AdamW. A micro-batch is one sequence; those of a
/// wide model run one after the other, those of a small one in parallel, as in the trainer.
fn train_on_cpu(model: &Qwen2, (n_sequences, length): (usize, usize)) -> Result<[String; 4], LmError> {
    reset_peak(None)?;
    let batch = MicroBatch::new(1, length, model.config().vocab_size);
    let one = |put: &mut dyn FnMut(usize, Vec<f32>)| -> Result<(), LmError> {
        let pass = model.record(&batch.tokens(), &batch.positions, &batch.targets, Sampler::UNTEMPERED)?;
        pass.backward_each(&pass.stats().log_prob.mean_all()?, put)
    };
    let n_learnable = model.learnable().len();
    let seconds = timed(ON_CPU, || {
        if model.is_wide() {
            let mut sums = vec![Vec::new(); n_learnable];
            return (0..n_sequences)
                .try_for_each(|_| one(&mut |place, gradient| add(&mut sums[place], gradient)));
        }
        (0..n_sequences).into_par_iter().try_for_each(|_| {
            let mut gradients = vec![Vec::new(); n_learnable];
            one(&mut |place, gradient| gradients[place] = gradient)
        })
    })?;
    let n_tokens = (n_sequences * length) as f64;
    Ok([format!("{:.0}", n_tokens / seconds), "–".to_owned(), peak(None)?, "–".to_owned()])
}
