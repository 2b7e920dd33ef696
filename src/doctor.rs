//! `webshop doctor`: estimates the memory of a training run on this machine's CPU before it starts.

use std::process::ExitCode;

use webshop_training::config::Preset;
use webshop_training::{MemoryEstimate, MemoryNeed, estimate_memory};

use crate::args::experiment::ExperimentArgs;
use crate::output::outln;

/// Flags of `webshop doctor`.
#[derive(clap::Args)]
#[command(after_help = "Writes no files.\n\n\
                  Exit codes: 0 the run fits into memory with a tenth to spare, 1 it does not, 2 error.")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
}

/// Prints the estimate and whether the run fits into memory.
pub(crate) fn run(args: DoctorArgs) -> anyhow::Result<ExitCode> {
    let config = args.experiment.load(Preset::Medium)?;
    let estimate = estimate_memory(&config)?;
    print_memory(&estimate)?;
    let fits = estimate.fits();
    outln!(
        "{}",
        if fits {
            "result: the run fits into memory"
        } else {
            "result: the run does not fit into memory with a tenth to spare"
        }
    )?;
    Ok(if fits { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_memory(estimate: &MemoryEstimate) -> anyhow::Result<()> {
    let MemoryEstimate { n_parameters, n_learnable, n_example_tokens, need, available } = estimate;
    outln!("{n_parameters} parameters, {n_learnable} of them trainable; on the CPU, in f32")?;
    if *n_example_tokens > 0 {
        outln!("{n_example_tokens} tokens of worked examples in front of every prompt")?;
    }
    outln!("")?;
    let MemoryNeed { shops, weights, reference, moments, gradients, activations, kept, decoder, cache } =
        *need;
    for (name, bytes) in [
        ("shops", shops),
        ("model weights", weights),
        ("reference policy", reference),
        ("optimizer moments", moments),
        ("gradients", gradients),
        ("activations", activations),
        ("buffers kept between passes", kept),
        ("decoding buffers", decoder),
        ("KV cache", cache),
        ("peak during rollouts", need.rollout()),
        ("peak during training steps", need.training()),
        ("peak while saving", need.saving()),
    ] {
        outln!("{name:<32} {:>12.1} MiB", mebibytes(bytes))?;
    }
    match available {
        Some(bytes) => outln!("{:<32} {:>12.1} MiB", "available", mebibytes(*bytes))?,
        None => outln!("available memory: unknown on this system")?,
    }
    outln!("")
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
