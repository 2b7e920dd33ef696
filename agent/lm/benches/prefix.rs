//! The gain from keeping a lane's KV cache from turn to turn.
//!
//! An episode of nine turns with prompts and completions of typical lengths is generated twice: with the
//! context kept between turns, as [`Generator`] does, and with the lane cleared before every turn and the
//! whole context prefilled again, as servers without sessions do. Reports the prefilled tokens and the
//! seconds of an episode, the fastest of some rounds.
//!
//! Run with `RAYON_NUM_THREADS=2 cargo bench -p webshop-lm --bench prefix`; `tiny` or `0.5b` after `--`
//! selects one model.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::sync::Arc;
use std::time::Instant;

use webshop_lm::{
    Context, Decoder, Generator, GeneratorConfig, KnownShape, Qwen2, Qwen2Config, Request, Sampler,
    SamplingCoordinates,
};
use webshop_products::Seed;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// (tokens of the prompt, tokens of the completion) of every turn.
const EPISODE: [(usize, usize); 9] =
    [(110, 12), (620, 6), (240, 9), (260, 8), (270, 4), (90, 5), (260, 4), (150, 5), (270, 3)];

fn config(model: &str) -> Qwen2Config {
    let shape: KnownShape = model.parse().expect("a known shape");
    Qwen2Config { max_position_embeddings: 8192, ..shape.config(2048) }
}

/// Prefilled tokens and seconds of one episode, with or without the KV cache of earlier turns.
fn play(decoder: &Arc<Decoder>, is_kept: bool) -> (usize, f64) {
    let vocab_size = decoder.config().vocab_size as u32;
    let capacity = EPISODE.iter().map(|(n_prompt, n_new)| n_prompt + n_new).sum::<usize>() + 1;
    let config = GeneratorConfig {
        n_lanes: 1,
        capacity,
        sampler: Sampler::UNTEMPERED,
        seed: Seed(1),
        stop_ids: vec![],
        certainty: None,
    };
    let mut generator = Generator::new(Arc::clone(decoder), config).expect("memory of the CPU");
    let (mut context, mut n_prefilled) = (Vec::new(), 0);
    let start = Instant::now();
    for (turn, (n_prompt, n_new)) in EPISODE.iter().enumerate() {
        let prompt: Vec<u32> = (0..*n_prompt as u32).map(|i| (i * 7919 + turn as u32) % vocab_size).collect();
        context.extend_from_slice(&prompt);
        let prompt_ids = if is_kept {
            prompt
        } else {
            generator.clear_lane(0);
            context.clone()
        };
        // The last token of a completion is prefilled with the next prompt.
        n_prefilled += prompt_ids.len() + n_new - usize::from(!is_kept || turn + 1 == EPISODE.len());
        let coordinates = SamplingCoordinates { turn: turn as u64, ..Default::default() };
        let request = Request {
            lane: 0,
            context: Context::Continue,
            prompt_ids,
            coordinates,
            constraint: None,
            max_new_tokens: *n_new,
        };
        let completion = generator.generate(&[request]).expect("the context has room").remove(0);
        context.extend_from_slice(&completion.ids);
    }
    (n_prefilled, start.elapsed().as_secs_f64())
}

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let (n_prompt, n_new) =
        EPISODE.iter().fold((0, 0), |(n_prompt, n_new), turn| (n_prompt + turn.0, n_new + turn.1));
    println!(
        "{} turns, {n_prompt} prompt tokens and {n_new} completion tokens; {} threads\n",
        EPISODE.len(),
        rayon::current_num_threads()
    );
    println!("| model | context | tokens prefilled | seconds an episode |\n|---|---|---|---|");
    for (model, rounds) in [("tiny", 20), ("0.5b", 1)] {
        if !chosen.is_empty() && !chosen.iter().any(|name| name == model) {
            continue;
        }
        let random = Qwen2::random(&config(model), Seed(0)).expect("the configuration is valid");
        let decoder = Arc::new(random.into_decoder().expect("parameters can be read"));
        for (name, is_kept) in [("kept", true), ("prefilled again", false)] {
            let played: Vec<(usize, f64)> = (0..rounds).map(|_| play(&decoder, is_kept)).collect();
            let fastest = played.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
            println!("| {model} | {name} | {} | {fastest:.3} |", played[0].0);
        }
    }
}
