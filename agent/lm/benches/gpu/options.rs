//! The command line of the benchmark.

use webshop_lm::device::{Compute, KernelChoice};
use webshop_lm::{KnownShape, LmError, Sampler};

/// What is measured, where and at which sizes.
#[derive(Debug)]
pub(crate) struct Options {
    /// `--device cpu|cuda|cuda:N|auto` [auto] and `--dtype f32|bf16` [bf16 on a GPU]: those of the GPU
    /// backend.
    pub(crate) compute: Compute,
    /// `--shapes`: names of [`KnownShape`], separated by commas [0.5b,1.5b; without a GPU tiny].
    pub(crate) shapes: Vec<KnownShape>,
    /// `--batches`: numbers of lanes on the GPU backend [1,16,64,256; without a GPU 1,4].
    pub(crate) batches: Vec<usize>,
    /// `--cpu-batches`: numbers of lanes on the CPU backend; 0 skips that backend [1,16; without a GPU 1,4].
    pub(crate) cpu_batches: Vec<usize>,
    /// `--prompt`: tokens of a prompt [512; without a GPU 64].
    pub(crate) prompt: usize,
    /// `--new`: tokens decoded in each lane in one repetition [32; without a GPU 8].
    pub(crate) n_new: usize,
    /// `--top-p`: 1 samples on the device; less copies the logits to the host, as constraints do [1].
    pub(crate) sampler: Sampler,
    /// `--train-sequences`: sequences of a training step on the GPU backend [32; without a GPU 4].
    pub(crate) train_sequences: usize,
    /// `--cpu-train-sequences`: the same on the CPU backend [2; without a GPU 4].
    pub(crate) cpu_train_sequences: usize,
    /// `--train-length`: tokens of a sequence [1024; without a GPU 64].
    pub(crate) train_length: usize,
    /// `--micro-batch-tokens`: tokens that the GPU backend computes in one pass [16384].
    pub(crate) micro_batch_tokens: usize,
}

impl Options {
    /// Reads the arguments of the program. Fails for an unknown option or an invalid value, and if the device
    /// of `--device` cannot be used.
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Self, String> {
        // Cargo passes `--bench`.
        let mut args = args.filter(|arg| arg != "--bench");
        let mut given = Vec::new();
        while let Some(flag) = args.next() {
            let value = args.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            given.push((flag, value));
        }
        let value_of =
            |flag: &str| given.iter().rev().find(|(other, _)| other == flag).map(|(_, value)| value);
        let device = value_of("--device").map_or("auto", String::as_str).parse()?;
        let dtype = value_of("--dtype").map(|dtype| dtype.parse()).transpose()?;
        let compute =
            Compute::choose(device, dtype, KernelChoice::Custom).map_err(|error| error.to_string())?;
        let mut options = Self::defaults(compute);
        for (flag, value) in &given {
            options.set(flag, value).map_err(|reason| format!("`{flag} {value}`: {reason}"))?;
        }
        Ok(options)
    }

    fn defaults(compute: Compute) -> Self {
        let on_gpu = Self {
            compute,
            shapes: vec![KnownShape::HalfBillion, KnownShape::OneAndAHalfBillion],
            batches: vec![1, 16, 64, 256],
            cpu_batches: vec![1, 16],
            prompt: 512,
            n_new: 32,
            sampler: Sampler::UNTEMPERED,
            train_sequences: 32,
            cpu_train_sequences: 2,
            train_length: 1024,
            micro_batch_tokens: 16_384,
        };
        if on_gpu.compute.is_gpu() {
            return on_gpu;
        }
        Self {
            shapes: vec![KnownShape::Tiny],
            batches: vec![1, 4],
            cpu_batches: vec![1, 4],
            prompt: 64,
            n_new: 8,
            train_sequences: 4,
            cpu_train_sequences: 4,
            train_length: 64,
            ..on_gpu
        }
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        match flag {
            "--device" | "--dtype" => {}
            "--shapes" => {
                self.shapes = list(value, |name| name.parse().map_err(|error: LmError| error.to_string()))?
            }
            "--batches" => self.batches = list(value, positive)?,
            "--cpu-batches" if value == "0" => self.cpu_batches.clear(),
            "--cpu-batches" => self.cpu_batches = list(value, positive)?,
            "--prompt" => self.prompt = positive(value)?,
            "--new" => self.n_new = positive(value)?,
            "--top-p" => {
                let top_p = value.parse().map_err(|_| "not a number".to_owned())?;
                self.sampler = Sampler::new(1.0, top_p).map_err(|error| error.to_string())?;
            }
            "--train-sequences" => self.train_sequences = positive(value)?,
            "--cpu-train-sequences" => self.cpu_train_sequences = positive(value)?,
            // A sequence of one token has no target.
            "--train-length" => self.train_length = positive(value)?.max(2),
            "--micro-batch-tokens" => self.micro_batch_tokens = positive(value)?,
            _ => return Err("unknown option".to_owned()),
        }
        Ok(())
    }
}

fn positive(value: &str) -> Result<usize, String> {
    value.parse().ok().filter(|n| *n > 0).ok_or_else(|| "not a positive integer".to_owned())
}

fn list<T>(values: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    values.split(',').map(parse).collect()
}
