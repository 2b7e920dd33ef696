//! This project's side of the comparisons with PyTorch and llama.cpp: measures cases round by round.
//!
//! `scripts/bench_torch.py` and `scripts/bench_llama.py` start this program and alternate with it, so that both sides run under
//! the same load of the machine. A line of standard input is a case; the reply on standard output is the seconds of
//! one round. `done` frees the memory of the last case; the reply is the peak memory so far in bytes.
//! Arguments: the model (`tiny`, or `0.5b` with the sizes of Qwen2.5-0.5B) and its weights (`bf16`: values
//! exact in bfloat16, as in published checkpoints; `f32`: values that are not, as after training).
//!
//! ```text
//! prefill B T     prefills B lanes of T tokens and samples one token for each
//! decode B C N    samples N tokens for each of B lanes that hold C
//! train B T       forward and backward pass of the masked log-probabilities of B sequences of T tokens; as
//!                 in the trainer, micro-batches of a small model run in parallel, those of a wide one in
//!                 turn into one set of sums
//! snapshot        packs the weights for generation
//! ```
//!
//! Weights and tokens are arbitrary; speed does not depend on them. All threads of rayon are used
//! (`RAYON_NUM_THREADS`). The allocator is the command line's.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod common;

use std::io::BufRead;
use std::sync::Arc;
use std::time::Instant;

use candle_core::{Device, Tensor};
use rayon::prelude::*;
use webshop_lm::{
    Context, Generator, GeneratorConfig, KnownShape, PackedTokens, Qwen2, Qwen2Config, Request, Sampler,
    SamplingCoordinates,
};
use webshop_products::Seed;

use crate::common::{add, ids, peak_resident_bytes};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Tokens of a micro-batch of the small model, about what the trainer packs.
const MICRO_BATCH: usize = 1024;

fn config(model: &str) -> Qwen2Config {
    let shape: KnownShape = model.parse().expect("a known shape");
    let config = shape.config(2048);
    // The table of rotary angles takes memory for each position.
    Qwen2Config { max_position_embeddings: config.max_position_embeddings.min(4096), ..config }
}

fn model(config: &Qwen2Config, weights: &str) -> Qwen2 {
    let model = Qwen2::random(config, Seed(0)).expect("the configuration is valid");
    if weights == "bf16" {
        for (_, var) in model.parameters() {
            let values = var.flatten_all().and_then(|flat| flat.to_vec1::<f32>()).expect("f32 on the CPU");
            let cut = values.iter().map(|value| f32::from_bits(value.to_bits() & 0xffff_0000));
            let cut = Tensor::from_vec(cut.collect(), var.shape(), &Device::Cpu).expect("as many as before");
            var.set(&cut).expect("the same shape");
        }
    }
    model
}

struct Server {
    model: Qwen2,
    /// Lanes with a context, and the case that they belong to.
    lanes: Option<(String, Generator)>,
    turn: u64,
    /// Summed gradients of a wide model.
    sums: Vec<Vec<f32>>,
}

impl Server {
    fn generator(&self, n_lanes: usize, capacity: usize) -> Generator {
        let config = GeneratorConfig {
            n_lanes,
            capacity,
            sampler: Sampler::UNTEMPERED,
            seed: Seed(1),
            stop_ids: vec![],
            certainty: None,
        };
        let decoder = Arc::new(self.model.decoder().expect("parameters can be read"));
        Generator::new(decoder, config).expect("memory of the CPU")
    }

    /// Every lane prefills `n_new` tokens and samples `n_drawn`. Returns seconds.
    fn generate(&mut self, generator: &mut Generator, n_new: usize, n_drawn: usize) -> f64 {
        let vocab_size = self.model.config().vocab_size;
        self.turn += 1;
        let request = |lane| Request {
            lane,
            context: Context::Continue,
            prompt_ids: ids(n_new, lane, vocab_size),
            coordinates: SamplingCoordinates { task: lane as u64, turn: self.turn, ..Default::default() },
            constraint: None,
            max_new_tokens: n_drawn,
        };
        let requests: Vec<Request> = (0..generator.config().n_lanes).map(request).collect();
        let start = Instant::now();
        let completions = generator.generate(&requests).expect("the requests are valid");
        let seconds = start.elapsed().as_secs_f64();
        assert!(completions.iter().all(|completion| completion.ids.len() == n_drawn), "a lane was cut");
        seconds
    }

    fn prefill(&mut self, case: &str, n_lanes: usize, n_tokens: usize) -> f64 {
        let mut generator = self.kept(case, n_lanes, n_tokens + 1, 0);
        (0..n_lanes).for_each(|lane| generator.clear_lane(lane));
        let seconds = self.generate(&mut generator, n_tokens, 1);
        self.lanes = Some((case.to_owned(), generator));
        seconds
    }

    /// The contexts grow from round to round; PyTorch's do as well.
    fn decode(&mut self, case: &str, n_lanes: usize, context: usize, n_drawn: usize) -> f64 {
        let mut generator = self.kept(case, n_lanes, context + 2048, context);
        let seconds = self.generate(&mut generator, 0, n_drawn);
        self.lanes = Some((case.to_owned(), generator));
        seconds
    }

    fn kept(&mut self, case: &str, n_lanes: usize, capacity: usize, context: usize) -> Generator {
        match self.lanes.take() {
            Some((of, generator)) if of == case => generator,
            _ => {
                let mut generator = self.generator(n_lanes, capacity);
                if context > 0 {
                    self.generate(&mut generator, context, 1);
                }
                generator
            }
        }
    }

    fn train(&mut self, n_texts: usize, n_tokens: usize) -> f64 {
        let per_micro = (MICRO_BATCH / n_tokens).max(1);
        let vocab_size = self.model.config().vocab_size;
        let all: Vec<Vec<u32>> = (0..n_texts).map(|text| ids(n_tokens, text, vocab_size)).collect();
        let model = &self.model;
        let one = |texts: &[Vec<u32>], put: &mut dyn FnMut(usize, Vec<f32>)| {
            let (ids, lengths) = (texts.concat(), vec![n_tokens; texts.len()]);
            // Every third token is scored.
            let of_text =
                |text: usize| (0..n_tokens - 1).step_by(3).map(move |at| (text * n_tokens + at) as u32);
            let positions: Vec<u32> = (0..texts.len()).flat_map(of_text).collect();
            let targets: Vec<u32> = positions.iter().map(|&at| ids[at as usize + 1]).collect();
            let tokens = PackedTokens { ids: &ids, lengths: &lengths, prefix_of: &[] };
            let pass =
                model.record(&tokens, &positions, &targets, Sampler::UNTEMPERED).expect("valid positions");
            let loss = pass.stats().log_prob.mean_all().expect("numbers have a mean");
            pass.backward_each(&loss, put).expect("the loss is a scalar");
        };
        let n_parameters = model.parameters().len();
        self.sums.resize(n_parameters, Vec::new());
        let sums = &mut self.sums;
        let start = Instant::now();
        if model.is_wide() {
            for texts in all.chunks(per_micro) {
                one(texts, &mut |place, gradient| add(&mut sums[place], gradient));
            }
            return start.elapsed().as_secs_f64();
        }
        let apart = |texts| {
            let mut gradients = vec![Vec::new(); n_parameters];
            one(texts, &mut |place, gradient| gradients[place] = gradient);
            gradients
        };
        let gradients: Vec<_> = all.par_chunks(per_micro).map(apart).collect();
        let seconds = start.elapsed().as_secs_f64();
        drop(gradients);
        seconds
    }

    fn measure(&mut self, case: &str) -> f64 {
        let words: Vec<&str> = case.split(' ').collect();
        let size = |place: usize| words[place].parse::<usize>().expect("sizes are numbers");
        match words[0] {
            "prefill" => self.prefill(case, size(1), size(2)),
            "decode" => self.decode(case, size(1), size(2), size(3)),
            "train" => self.train(size(1), size(2)),
            "snapshot" => {
                let start = Instant::now();
                std::hint::black_box(self.model.decoder().expect("parameters can be read"));
                start.elapsed().as_secs_f64()
            }
            other => panic!("no case is called `{other}`"),
        }
    }
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let (Some(name), Some(weights)) = (args.next(), args.next()) else {
        println!(
            "scripts/bench_torch.py and scripts/bench_llama.py start this program with a model and its weights"
        );
        return;
    };
    let mut server = Server { model: model(&config(&name), &weights), lanes: None, turn: 0, sums: vec![] };
    println!("{}", rayon::current_num_threads());
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("standard input is readable");
        if line == "done" {
            (server.lanes, server.sums) = (None, Vec::new());
            // 0 if `/proc` is not available.
            println!("{}", peak_resident_bytes().unwrap_or(0));
        } else {
            println!("{}", server.measure(&line));
        }
    }
}
