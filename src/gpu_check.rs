//! `webshop gpu-check`: what a GPU must show, as Markdown.

use std::io::stdout;
use std::process::ExitCode;

use webshop_agent::KnownShape;
use webshop_training::{GpuCheck, GpuPart};

use crate::compute::ComputeArgs;

/// Flags of `webshop gpu-check`.
#[derive(clap::Args)]
pub struct GpuCheckArgs {
    #[command(flatten)]
    compute: ComputeArgs,
    /// What to look at [default: everything]
    #[arg(long, value_enum, value_delimiter = ',')]
    parts: Vec<PartName>,
    /// Sizes of models: tiny, 0.5b, 1.5b, 3b
    #[arg(long, value_delimiter = ',', default_value = "0.5b,1.5b,3b")]
    shapes: Vec<KnownShape>,
    /// Lanes side by side
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256")]
    batches: Vec<usize>,
    /// Tokens in each lane while it is decoded
    #[arg(long, default_value_t = 2048, value_name = "N")]
    context: usize,
    /// Tokens of each prompt that is read
    #[arg(long, default_value_t = 512, value_name = "N")]
    prompt: usize,
    /// Sequences of a training step
    #[arg(long, default_value_t = 64, value_name = "N")]
    train_sequences: usize,
    /// Tokens of each of them
    #[arg(long, default_value_t = 2048, value_name = "N")]
    train_length: usize,
    /// Tokens of a training step that are computed together
    #[arg(long, default_value_t = 16_384, value_name = "N")]
    micro_batch_tokens: usize,
}

/// The parts of the check.
#[derive(clap::ValueEnum, Clone, Copy)]
enum PartName {
    /// Every kernel against its plain twin
    Twins,
    /// The device's engine against the CPU's
    Agreement,
    /// Reading prompts
    Prefill,
    /// One token for each lane at a time
    Decode,
    /// A training step
    Train,
}

/// Measures, prints, and judges what can be judged.
pub fn run(args: GpuCheckArgs) -> anyhow::Result<ExitCode> {
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
