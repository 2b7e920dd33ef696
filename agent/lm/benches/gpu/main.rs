//! Correctness, speed and memory of the GPU backend, beside those of the CPU backend.
//!
//! The models have published shapes and random weights, the same on both backends, exact in the dtype of the
//! GPU. The output is Markdown:
//!
//! 1. **Kernels**: every CUDA kernel compared with its reference implementation, in f32 and bf16.
//! 2. **Backends**: logits, log-probabilities, gradients and greedy tokens of a small model on both backends.
//! 3. **Rollouts**: a [`Generator`](webshop_lm::Generator) prefills B prompts and samples one token for each,
//!    then decodes more tokens of each lane. Tokens per second of either part.
//! 4. **A training step**: forward and backward pass of packed sequences with every position scored, and
//!    AdamW on the device. The optimizer of the CPU backend belongs to another crate and is not measured.
//!
//! Times are those of the host's clock until the results are on the host or the device is synchronized: on a
//! GPU the median of three repetitions after one that is not counted, on the CPU one repetition. Memory is
//! the peak of the GPU's memory pool, on the CPU the peak resident memory of the process; beside it stands what
//! [`DeviceMemory`](webshop_lm::device::DeviceMemory) counts for the GPU backend, as `webshop doctor` does.
//!
//! Run on a machine with a GPU, where the result is meaningful:
//!
//! ```sh
//! cargo bench -p webshop-lm --features cuda --bench gpu
//! ```
//!
//! Without a GPU, or without the feature `cuda`, the code of the GPU backend runs on the CPU with reference
//! kernels and the shape `tiny`; the output says so. The options, after `--`, are in `options.rs`. Exit
//! codes: 0 if all results agree, 1 if a comparison differs, 2 if a part failed or an option is wrong.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod agreement;
#[path = "../common/mod.rs"]
mod common;
mod options;
mod report;
mod speed;

use std::process::ExitCode;

use webshop_lm::LmError;

use crate::options::Options;
use crate::report::Report;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(reason) => {
            eprintln!("error: {reason}");
            return ExitCode::from(2);
        }
    };
    let mut report = Report::default();
    if let Err(error) = run(&options, &mut report) {
        report.failed(&[], &error);
    }
    report.exit_code()
}

fn run(options: &Options, report: &mut Report) -> Result<(), LmError> {
    let compute = &options.compute;
    println!("GPU backend: {compute}. CPU backend: f32, {} threads.", rayon::current_num_threads());
    match compute.describe()? {
        Some((name, bytes)) => println!("GPU: {name}, {:.1} GiB.", report::gib(bytes as u64)),
        None => println!(
            "No GPU is used: the code of the GPU backend runs on the CPU, and its times say nothing about a GPU."
        ),
    }
    agreement::kernels(options, report);
    agreement::backends(options, report);
    for &shape in &options.shapes {
        if let Err(error) = speed::measure(options, shape, report) {
            report.failed(&[shape.to_string()], &error);
        }
    }
    Ok(())
}
