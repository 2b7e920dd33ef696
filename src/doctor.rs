//! `webshop doctor`: estimates the memory of a training run before it starts.

use std::process::ExitCode;

use webshop_training::config::Preset;
use webshop_training::{Backend, MemoryEstimate, MemoryNeed, estimate_memory};

use crate::args::compute::ComputeArgs;
use crate::args::experiment::ExperimentArgs;
use crate::output::outln;

/// Flags of `webshop doctor`.
#[derive(clap::Args)]
#[command(after_help = "Writes no files. `--device cuda` needs no GPU: without one, the run is \
                  estimated and not compared with its memory.\n\n\
                  Exit codes: 0 the run fits into memory with a tenth to spare, 1 it does not, 2 error.")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    #[command(flatten)]
    compute: ComputeArgs,
}

/// Prints the estimate and whether the run fits into memory.
pub(crate) fn run(args: DoctorArgs) -> anyhow::Result<ExitCode> {
    let config = args.experiment.load(Preset::Medium)?;
    let (backend, problem) = args.compute.backend()?;
    let estimate = estimate_memory(&config, backend)?;
    let is_known = problem.is_none();
    print_memory(&estimate, backend, problem)?;
    let fits = estimate.fits();
    let result = match (fits, is_known) {
        (true, true) => "the run fits into memory",
        (true, false) => "the run fits into the memory of the host; that of the GPU is unknown",
        (false, _) => "the run does not fit into memory with a tenth to spare",
    };
    outln!("result: {result}")?;
    Ok(if fits { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `problem` says why the memory of the GPU is unknown.
fn print_memory(estimate: &MemoryEstimate, backend: Backend, problem: Option<String>) -> anyhow::Result<()> {
    let MemoryEstimate { n_parameters, n_learnable, n_example_tokens, .. } = estimate;
    let backend = match backend {
        Backend::Cpu => "on the CPU, in f32".to_owned(),
        Backend::GpuOnHost { dtype, .. } => format!("on the CPU with the GPU backend, in {dtype}"),
        Backend::Gpu { dtype, .. } => format!("on a GPU, in {dtype}"),
    };
    outln!("{n_parameters} parameters, {n_learnable} of them trainable; {backend}")?;
    if *n_example_tokens > 0 {
        outln!("{n_example_tokens} tokens of few-shot examples in front of every prompt")?;
    }
    print_need("", &estimate.host)?;
    print_available("available", estimate.available, "this system does not say")?;
    if let Some(gpu) = &estimate.gpu {
        print_need("GPU: ", gpu)?;
        print_available("GPU: memory", estimate.gpu_memory, &problem.unwrap_or_default())?;
    }
    outln!("")
}

/// Prints the parts that are not empty and the peaks, each name after `prefix`.
fn print_need(prefix: &str, need: &MemoryNeed) -> anyhow::Result<()> {
    let MemoryNeed {
        shops,
        weights,
        masters,
        reference,
        moments,
        gradients,
        activations,
        kept,
        decoder,
        cache,
        copies: _,
    } = *need;
    outln!("")?;
    let print = |name: &str, bytes| print_bytes(&format!("{prefix}{name}"), bytes);
    for (name, bytes) in [
        ("shops", shops),
        ("model weights", weights),
        ("master weights", masters),
        ("reference policy", reference),
        ("optimizer moments", moments),
        ("gradients", gradients),
        ("activations", activations),
        ("buffers kept between passes", kept),
        ("decoding buffers", decoder),
        ("KV cache", cache),
    ] {
        if bytes > 0 {
            print(name, bytes)?;
        }
    }
    print("peak during rollouts", need.rollout())?;
    print("peak during training steps", need.training())?;
    print("peak while saving", need.saving())
}

fn print_available(name: &str, bytes: Option<u64>, problem: &str) -> anyhow::Result<()> {
    match bytes {
        Some(bytes) => print_bytes(name, bytes),
        None => outln!("{name}: unknown: {problem}"),
    }
}

fn print_bytes(name: &str, bytes: u64) -> anyhow::Result<()> {
    outln!("{name:<32} {:>12.1} MiB", bytes as f64 / f64::from(1 << 20))
}
