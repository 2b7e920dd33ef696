//! `webshop gpu-check` (hidden): checks and measures the GPU backend; prints Markdown.

use std::io::stdout;
use std::process::ExitCode;

use webshop_lm::KnownShape;
use webshop_training::{GpuCheck, GpuPart};

use crate::args::compute::ComputeArgs;

/// Flags of `webshop gpu-check`.
#[derive(clap::Args)]
pub(crate) struct GpuCheckArgs {
    #[command(flatten)]
    compute: ComputeArgs,
    /// Parts to run [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    parts: Vec<PartName>,
    /// Model shapes: tiny, 0.5b, 1.5b, 3b
    #[arg(long, value_delimiter = ',', default_value = "0.5b,1.5b,3b")]
    shapes: Vec<KnownShape>,
    /// Batch sizes of decoding
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256")]
    batches: Vec<usize>,
    /// Tokens in the KV cache of each lane while decoding
    #[arg(long, default_value_t = 2048, value_name = "N")]
    context: usize,
    /// Tokens of each prompt in prefill
    #[arg(long, default_value_t = 512, value_name = "N")]
    prompt: usize,
    /// Sequences of a training step
    #[arg(long, default_value_t = 64, value_name = "N")]
    train_sequences: usize,
    /// Tokens of each of these sequences
    #[arg(long, default_value_t = 2048, value_name = "N")]
    train_length: usize,
    /// Tokens of a micro-batch
    #[arg(long, default_value_t = 16_384, value_name = "N")]
    micro_batch_tokens: usize,
}

/// The parts of the check.
#[derive(clap::ValueEnum, Clone, Copy)]
enum PartName {
    /// Each kernel against its reference implementation
    Twins,
    /// The GPU backend against the CPU backend
    Agreement,
    /// Speed of prefill
    Prefill,
    /// Speed of decoding
    Decode,
    /// Speed of a training step
    Train,
}

/// Runs the parts and prints their results.
pub(crate) fn run(args: GpuCheckArgs) -> anyhow::Result<ExitCode> {
    let parts = args.parts.iter().map(|part| match part {
        PartName::Twins => GpuPart::Twins,
        PartName::Agreement => GpuPart::Agreement,
        PartName::Prefill => GpuPart::Prefill,
        PartName::Decode => GpuPart::Decode,
        PartName::Train => GpuPart::Train,
    });
    let check = GpuCheck {
        compute: args.compute.choose()?,
        parts: if args.parts.is_empty() { GpuPart::ALL.to_vec() } else { parts.collect() },
        shapes: args.shapes,
        batches: args.batches,
        context: args.context,
        prompt: args.prompt,
        train: (args.train_sequences, args.train_length),
        micro_batch_tokens: args.micro_batch_tokens,
    };
    let verdict = check.run(&mut stdout().lock())?;
    eprintln!("{} comparisons differ, {} parts failed", verdict.differences, verdict.failures);
    Ok(match (verdict.failures, verdict.differences) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::from(1),
        _ => ExitCode::from(2),
    })
}
