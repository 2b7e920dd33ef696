//! What it is worth to keep a trip's context from turn to turn.
//!
//! The trip is one a careful customer makes in the embedded catalog of 100 products: each turn the model reads
//! the page and says as many tokens as the customer's action has. Once every turn feeds only what is new, as
//! [`Generator`] does, and once every turn forgets the lane and reads the whole context again, as servers
//! without sessions do. A token is taken to be four bytes of page text, about what a published tokenizer makes
//! of English. Told are the tokens fed and the seconds for one trip, the fastest of some rounds.
//!
//! Run with `RAYON_NUM_THREADS=2 cargo bench -p webshop-agent --bench prefix`; `tiny` or `0.5b` behind `--`
//! chooses one model.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::sync::Arc;
use std::time::Instant;

use webshop_lm::{Context, Decoder, Generator, GeneratorConfig, KnownShape, Qwen2, Qwen2Config, Request, Sampler, SamplingCoordinates};
use webshop_agent::{Demonstrator, Manner};
use webshop_env::{Session, Shop};
use webshop_products::{Catalog, EmbeddedCatalog, GoalKind, GoalSet, RawData, Seed, Split};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Bytes of English in a token.
const BYTES: usize = 4;

/// (tokens read, tokens said) of every turn of one trip.
fn trip() -> Vec<(usize, usize)> {
    let data = RawData::embedded(EmbeddedCatalog::Hundred);
    let catalog = Catalog::from_raw(&data, Seed(0)).expect("the embedded catalog is sound");
    let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).expect("and its goals");
    let shop = Shop::new(catalog, goals).expect("the shop opens");
    let goal = shop.goals().split(Split::Train)[0];
    let turns = Demonstrator::new(&shop, 5).trip(goal, Manner::Careful).expect("the goal can be reached");
    let mut session = Session::start(goal);
    let instruction = shop.goals().get(goal).instruction.len();
    let mut lengths = Vec::new();
    for turn in &turns {
        let page: usize = session.page(&shop).nodes().iter().map(|node| node.text.len() + 1).sum();
        let read = page + if lengths.is_empty() { instruction } else { 0 };
        lengths.push((read.div_ceil(BYTES), turn.action.to_string().len().div_ceil(BYTES)));
        session.act(&shop, &turn.action);
    }
    lengths
}

fn config(model: &str) -> Qwen2Config {
    let shape: KnownShape = model.parse().expect("a known shape");
    Qwen2Config { max_position_embeddings: 8192, ..shape.config(2048) }
}

/// Tokens fed and seconds for one trip, with or without the context of earlier turns.
fn play(decoder: &Arc<Decoder>, trip: &[(usize, usize)], is_kept: bool) -> (usize, f64) {
    let vocab_size = decoder.config().vocab_size as u32;
    let capacity = trip.iter().map(|(read, said)| read + said).sum::<usize>() + 1;
    let config = GeneratorConfig {
        n_lanes: 1,
        capacity,
        sampler: Sampler::UNTEMPERED,
        seed: Seed(1),
        stop_ids: vec![],
        certainty: None,
    };
    let mut generator = Generator::new(Arc::clone(decoder), config).expect("memory of the CPU");
    let (mut context, mut n_fed) = (Vec::new(), 0);
    let start = Instant::now();
    for (turn, (read, said)) in trip.iter().enumerate() {
        let page: Vec<u32> = (0..*read as u32).map(|i| (i * 7919 + turn as u32) % vocab_size).collect();
        context.extend_from_slice(&page);
        let prompt_ids = if is_kept {
            page
        } else {
            generator.clear_lane(0);
            context.clone()
        };
        // The last token of a turn is read with the next prompt, if at all.
        n_fed += prompt_ids.len() + said - usize::from(!is_kept || turn + 1 == trip.len());
        let coordinates = SamplingCoordinates { turn: turn as u64, ..Default::default() };
        let request = Request {
            lane: 0,
            context: Context::Continue,
            prompt_ids,
            coordinates,
            constraint: None,
            max_new_tokens: *said,
        };
        let completion = generator.generate(&[request]).expect("the context has room").remove(0);
        context.extend_from_slice(&completion.ids);
    }
    (n_fed, start.elapsed().as_secs_f64())
}

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let trip = trip();
    let (read, said) = trip.iter().fold((0, 0), |(read, said), turn| (read + turn.0, said + turn.1));
    println!(
        "{} turns, {read} tokens read and {said} said; {} threads\n",
        trip.len(),
        rayon::current_num_threads()
    );
    println!("| model | context | tokens fed a trip | seconds a trip |\n|---|---|---|---|");
    for (model, rounds) in [("tiny", 20), ("0.5b", 1)] {
        if !chosen.is_empty() && !chosen.iter().any(|name| name == model) {
            continue;
        }
        let random = Qwen2::random(&config(model), Seed(0)).expect("the configuration is valid");
        let decoder = Arc::new(random.into_decoder().expect("parameters can be read"));
        for (name, is_kept) in [("kept", true), ("read again", false)] {
            let played: Vec<(usize, f64)> = (0..rounds).map(|_| play(&decoder, &trip, is_kept)).collect();
            let fastest = played.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
            println!("| {model} | {name} | {} | {fastest:.3} |", played[0].0);
        }
    }
}
