//! Speed of the small model (hidden 128, 3 layers, vocabulary 2,048) on one core.
//!
//! `packed/train` is a forward and backward pass over five sequences of 1,200 tokens in all, with the
//! log-probability of every third token as the loss; `packed/score` is the forward pass alone. `decode/B`
//! decodes one token for each of B lanes that hold 250, `decode/prefill` prefills 250 tokens of one lane,
//! `snapshot` packs the weights for generation. Throughput counts tokens. The allocator is that of the
//! command line.
//!
//! Run with `taskset -c 0 cargo bench -p webshop-lm --bench model`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_main};
use webshop_lm::{KvCache, LaneTokens, PackedTokens, Qwen2, Qwen2Config, Sampler};
use webshop_products::Seed;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const VOCAB_SIZE: usize = 2048;
const LENGTHS: [usize; 5] = [190, 310, 240, 280, 180];
const CONTEXT: usize = 250;

fn model() -> Qwen2 {
    Qwen2::random(&Qwen2Config::small(VOCAB_SIZE), Seed(0)).expect("the small configuration is valid")
}

fn ids(count: usize) -> Vec<u32> {
    (0..count).map(|i| ((i * 7919 + i * i) % VOCAB_SIZE) as u32).collect()
}

fn training(criterion: &mut Criterion) {
    let (model, ids) = (model(), ids(LENGTHS.iter().sum()));
    let tokens = PackedTokens { ids: &ids, lengths: &LENGTHS, prefix_of: &[] };
    let positions: Vec<u32> = (0..ids.len() as u32 - 1).step_by(3).collect();
    let targets: Vec<u32> = positions.iter().map(|&position| ids[position as usize + 1]).collect();
    let mut group = criterion.benchmark_group("packed");
    group.throughput(Throughput::Elements(ids.len() as u64)).measurement_time(Duration::from_secs(5));
    group.sample_size(20);
    group.bench_function("train", |bencher| {
        bencher.iter(|| {
            let pass =
                model.record(&tokens, &positions, &targets, Sampler::UNTEMPERED).expect("valid positions");
            let loss = pass.stats().log_prob.mean_all().expect("numbers have a mean");
            pass.backward(&loss).expect("the loss is a scalar")
        });
    });
    group.bench_function("score", |bencher| {
        bencher.iter(|| {
            model.score(&tokens, &positions, &targets, Sampler::UNTEMPERED).expect("valid positions")
        });
    });
    group.finish();
}

fn decoding(criterion: &mut Criterion) {
    let (model, ids) = (model(), ids(CONTEXT + 1));
    let decoder = model.decoder().expect("the parameters can be read");
    let mut group = criterion.benchmark_group("decode");
    group.measurement_time(Duration::from_secs(4)).sample_size(20);
    for lanes in [1, 16, 64] {
        let mut cache = KvCache::new(model.config(), lanes, 512);
        let read = |cache: &mut KvCache, ids: &[u32]| {
            let new: Vec<LaneTokens> = (0..lanes).map(|lane| LaneTokens { lane, ids }).collect();
            decoder.decode(cache, &new).expect("valid tokens")
        };
        read(&mut cache, &ids[..CONTEXT]);
        group.throughput(Throughput::Elements(lanes as u64));
        group.bench_function(format!("{lanes}"), |bencher| {
            bencher.iter(|| {
                let logits = read(&mut cache, &ids[CONTEXT..]);
                (0..lanes).for_each(|lane| cache.truncate_lane(lane, CONTEXT));
                logits
            });
        });
    }
    group.throughput(Throughput::Elements(CONTEXT as u64));
    group.bench_function("prefill", |bencher| {
        let mut cache = KvCache::new(model.config(), 1, 512);
        bencher.iter(|| {
            cache.reset_lane(0);
            decoder.decode(&mut cache, &[LaneTokens { lane: 0, ids: &ids[..CONTEXT] }]).expect("valid tokens")
        });
    });
    group.finish();
    criterion.bench_function("snapshot", |bencher| {
        bencher.iter(|| black_box(model.decoder()));
    });
}

mod group {
    use super::{decoding, training};
    criterion::criterion_group!(benches, training, decoding);
}
criterion_main!(group::benches);
