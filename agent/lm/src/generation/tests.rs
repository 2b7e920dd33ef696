//! Batching, contexts, constraints and errors of the generator.

use std::sync::Arc;

use webshop_products::Seed;

use webshop_kernels::cpu::threads::Threads;

use super::*;
use crate::device::{Compute, DeviceRequest, KernelChoice};
use crate::generation::constraint::{Allowed, Budget};
use crate::qwen2::cpu::kv_cache::KvCache;
use crate::qwen2::gpu::DeviceModel;
use crate::qwen2::{Decoder, LaneTokens, Qwen2, Qwen2Config};

const V: u32 = 23;
const STOP: u32 = 2;
const CAPACITY: usize = 40;
const NOTHING_FREE: Budget = Budget { thought: 0, text: 0 };

fn decoder() -> Arc<Decoder> {
    let config = Qwen2Config {
        hidden_size: 16,
        intermediate_size: 16,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        max_position_embeddings: CAPACITY,
        initializer_range: 0.5,
        ..Qwen2Config::small(V as usize)
    };
    Arc::new(Qwen2::random(&config, Seed(5)).unwrap().decoder().unwrap())
}

/// Wide enough that matrix products are divided among threads.
fn wide_decoder() -> Arc<Decoder> {
    let config = Qwen2Config {
        hidden_size: 512,
        intermediate_size: 544,
        num_hidden_layers: 1,
        num_attention_heads: 8,
        max_position_embeddings: CAPACITY,
        initializer_range: 0.2,
        ..Qwen2Config::small(600)
    };
    Arc::new(Qwen2::random(&config, Seed(6)).unwrap().into_decoder().unwrap())
}

fn generator(n_lanes: usize, stop_ids: &[u32]) -> Generator {
    generator_of(decoder(), n_lanes, stop_ids)
}

fn generator_of(decoder: Arc<Decoder>, n_lanes: usize, stop_ids: &[u32]) -> Generator {
    let config = GeneratorConfig {
        n_lanes,
        capacity: CAPACITY,
        sampler: Sampler::UNTEMPERED,
        seed: Seed(11),
        stop_ids: stop_ids.to_vec(),
        certainty: None,
    };
    Generator::new(decoder, config).unwrap()
}

/// A prompt of k mod 5 + 1 tokens for lane k.
fn request(lane: usize, turn: u64) -> Request {
    Request {
        lane,
        context: Context::Continue,
        prompt_ids: (0..lane % 5 + 1).map(|i| (7 * lane + 3 * i + turn as usize) as u32 % V).collect(),
        coordinates: SamplingCoordinates { task: lane as u64, turn, ..Default::default() },
        constraint: None,
        max_new_tokens: 7,
    }
}

fn requests(lanes: impl Iterator<Item = usize>, turn: u64) -> Vec<Request> {
    lanes.map(|lane| request(lane, turn)).collect()
}

#[test]
fn a_completion_does_not_depend_on_other_lanes() {
    // 37 lanes form three groups; each lane alone is a batch of one.
    let mut together = generator(37, &[STOP]);
    for turn in 0..2 {
        let actual = together.generate(&requests(0..37, turn)).unwrap();
        for (lane, expected) in actual.iter().enumerate() {
            let mut alone = generator(37, &[STOP]);
            let turns: Vec<Vec<Completion>> =
                (0..=turn).map(|turn| alone.generate(&[request(lane, turn)]).unwrap()).collect();
            assert_eq!(&turns[turn as usize][0], expected, "lane {lane}, turn {turn}");
        }
    }
}

#[test]
fn a_completion_does_not_depend_on_64_lanes_or_two_threads() {
    for (decoder, is_wide) in [(decoder(), false), (wide_decoder(), true)] {
        assert_eq!(decoder.threads() == Threads::All, is_wide);
        let generate = |n_threads: usize, lanes: std::ops::Range<usize>| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let long = |request| Request { max_new_tokens: 30, ..request };
            let requests: Vec<Request> = requests(lanes, 0).into_iter().map(long).collect();
            pool.install(|| generator_of(Arc::clone(&decoder), 64, &[]).generate(&requests).unwrap())
        };
        let together = generate(1, 0..64);
        assert_eq!(generate(2, 0..64), together);
        for (lane, expected) in together.iter().enumerate() {
            let n_threads = 1 + lane % 2;
            let alone = generate(n_threads, lane..lane + 1);
            assert_eq!(alone[0], *expected, "lane {lane}, {n_threads} threads");
        }
        // If all lanes had equal completions, the comparison would prove nothing.
        let actual: std::collections::BTreeSet<&[u32]> =
            together.iter().map(|actual| &actual.ids[..]).collect();
        assert_eq!(actual.len(), 64);
    }
}

#[test]
fn threads_and_order_do_not_change_completions() {
    let on_threads = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| generator(37, &[STOP]).generate(&requests(0..37, 0)).unwrap())
    };
    let expected = on_threads(1);
    assert_eq!(on_threads(2), expected);
    let mut backwards = generator(37, &[STOP]).generate(&requests((0..37).rev(), 0)).unwrap();
    backwards.reverse();
    assert_eq!(backwards, expected);
}

#[test]
fn a_continued_context_equals_the_whole_context() {
    let mut kept = generator(1, &[]);
    let first = kept.generate(&[request(0, 0)]).unwrap().remove(0);
    assert_eq!(kept.context_len(0), 1 + 7);
    let second = kept.generate(&[request(0, 1)]).unwrap().remove(0);
    let whole = [request(0, 0).prompt_ids, first.ids, request(0, 1).prompt_ids].concat();
    let fresh = generator(1, &[]).generate(&[Request { prompt_ids: whole, ..request(0, 1) }]).unwrap();
    assert_eq!(fresh[0].ids, second.ids);
    for (a, b) in fresh[0].log_probs.iter().zip(&second.log_probs) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
}

#[test]
fn a_fresh_prompt_is_the_whole_context() {
    let prompt = |ids: &[u32]| Request { context: Context::Fresh, prompt_ids: ids.to_vec(), ..request(0, 0) };
    let fresh = |ids: &[u32]| generator(1, &[]).generate(&[prompt(ids)]).unwrap().remove(0);
    let mut kept = generator(1, &[]);
    // A prompt with another last token, the same prompt, a prefix of it, a longer one, and one that continues
    // the completion.
    let completion = fresh(&[3, 1, 4, 1]).ids;
    let continued = [&[3, 1, 4, 1], &completion[..3], &[9]].concat();
    for ids in [&[3, 1, 4, 1][..], &[3, 1, 5, 9], &[3, 1, 5, 9], &[3, 1], &[3, 1, 4, 1], &continued] {
        assert_eq!(kept.generate(&[prompt(ids)]).unwrap()[0], fresh(ids), "{ids:?}");
        assert_eq!(kept.context_len(0), ids.len() + 7);
    }
}

#[test]
fn a_fresh_prompt_reuses_the_common_prefix() {
    let mut kept = generator(1, &[]);
    let prompt = |ids: &[u32]| Request {
        context: Context::Fresh,
        prompt_ids: ids.to_vec(),
        max_new_tokens: 1,
        ..request(0, 0)
    };
    kept.generate(&[prompt(&[3, 1, 4, 1, 5])]).unwrap();
    kept.groups[0].replace(0, 0, &[3, 1, 4, 8]);
    assert_eq!(kept.groups[0].cache.len(0), 3);
    kept.groups[0].replace(0, 0, &[3, 1]);
    assert_eq!(kept.groups[0].cache.len(0), 1);
}

#[test]
fn log_probs_are_those_of_the_distribution_after_the_prefix() {
    let actual = generator(1, &[STOP]).generate(&[request(0, 0)]).unwrap().remove(0);
    let mut context = request(0, 0).prompt_ids;
    for (id, log_prob) in actual.ids.iter().zip(&actual.log_probs) {
        let decoder = decoder();
        let mut cache = KvCache::new(decoder.config(), 1, CAPACITY);
        let logits = decoder.decode(&mut cache, &[LaneTokens { lane: 0, ids: &context }]).unwrap();
        let expected = Sampler::UNTEMPERED.log_prob(logits.row(0), Allowed::All, *id).unwrap();
        assert!((expected - log_prob).abs() < 1e-5, "{expected} {log_prob}");
        context.push(*id);
    }
}

#[test]
fn each_token_of_a_turn_has_its_own_draw() {
    // A temperature at which all tokens are equally probable.
    let hot = Sampler::new(1e30, 1.0).unwrap();
    let config = GeneratorConfig { sampler: hot, ..generator(1, &[]).config().clone() };
    let actual = Generator::new(decoder(), config).unwrap().generate(&[request(0, 3)]).unwrap();
    for (token, id) in actual[0].ids.iter().enumerate() {
        let at = SamplingCoordinates { token: token as u64, ..request(0, 3).coordinates };
        let draw = hot.sample(&[0.0; V as usize], Allowed::All, Seed(11), at).unwrap();
        assert_eq!(draw.id, *id, "token {token}");
    }
}

#[test]
fn a_stop_token_ends_the_turn_and_is_part_of_it() {
    let all: Vec<u32> = (0..V).collect();
    let actual = generator(3, &all).generate(&requests(0..3, 0)).unwrap();
    assert!(actual.iter().all(|actual| actual.ids.len() == 1 && actual.stop == StopReason::EndOfTurn));
    let actual = generator(3, &[]).generate(&requests(0..3, 0)).unwrap();
    assert!(actual.iter().all(|actual| actual.ids.len() == 7 && actual.stop == StopReason::Length));
    assert!(actual.iter().all(|actual| actual.log_probs.len() == 7 && actual.entropy.len() == 7));
}

#[test]
fn a_full_context_is_reported_and_never_exceeded() {
    let check = |n_prompt: usize, n_new: usize, expected: StopReason, context_len: usize| {
        let mut generator = generator(1, &[]);
        let request = Request { prompt_ids: vec![4; n_prompt], ..request(0, 0) };
        let actual = generator.generate(&[request]).unwrap().remove(0);
        assert_eq!((actual.ids.len(), actual.stop), (n_new, expected), "{n_prompt}");
        assert_eq!(generator.context_len(0), context_len, "{n_prompt}");
    };
    check(CAPACITY - 7, 7, StopReason::Length, CAPACITY);
    check(CAPACITY - 6, 6, StopReason::ContextFull, CAPACITY);
    check(CAPACITY - 1, 1, StopReason::ContextFull, CAPACITY);
    check(CAPACITY, 0, StopReason::ContextFull, 0);
    check(CAPACITY + 9, 0, StopReason::ContextFull, 0);
}

#[test]
fn a_full_lane_does_not_affect_the_others() {
    let mut crowded = requests(0..3, 0);
    crowded[1].prompt_ids = vec![4; CAPACITY];
    let actual = generator(3, &[STOP]).generate(&crowded).unwrap();
    let expected = generator(3, &[STOP]).generate(&requests([0, 2].into_iter(), 0)).unwrap();
    assert_eq!([&actual[0], &actual[2]], [&expected[0], &expected[1]]);
    assert_eq!(actual[1].stop, StopReason::ContextFull);
}

#[test]
fn constrained_completions_are_admissible() {
    let admissible = [vec![5, 6, 7, STOP], vec![5, 6, 8, STOP], vec![9, STOP]];
    let mut generator = generator(20, &[STOP]);
    let with_constraint = |request: Request| {
        let constraint = Constraint::new(&admissible, None, None, NOTHING_FREE).unwrap();
        Request { constraint: Some(constraint), ..request }
    };
    for turn in 0..2 {
        let constrained: Vec<Request> = requests(0..20, turn).into_iter().map(with_constraint).collect();
        for actual in generator.generate(&constrained).unwrap() {
            assert!(admissible.contains(&actual.ids), "{:?}", actual.ids);
            assert_eq!(actual.stop, StopReason::EndOfTurn);
            // Only the first token and, after "5 6", the third one are sampled; all others are forced.
            let is_decision = |place: usize| place == 0 || place == 2;
            for (place, log_prob) in actual.log_probs.iter().enumerate() {
                assert_eq!(*log_prob < 0.0, is_decision(place), "{:?} {place}", actual.ids);
            }
        }
    }
}

#[test]
fn a_single_allowed_completion_does_not_run_the_model() {
    let mut generator = generator(1, &[]);
    let constraint = Constraint::new(&[vec![9, 10, STOP]], None, None, NOTHING_FREE).unwrap();
    let actual = generator.generate(&[Request { constraint: Some(constraint), ..request(0, 0) }]).unwrap();
    assert_eq!(actual[0].ids, [9, 10, STOP]);
    assert_eq!(actual[0].log_probs, [0.0; 3]);
    assert_eq!(actual[0].stop, StopReason::EndOfTurn);
    assert_eq!(generator.context_len(0), 1 + 3);
    assert_eq!(generator.groups[0].cache.len(0), 0);
}

#[test]
fn a_cleared_lane_has_an_empty_context() {
    let mut generator = generator(2, &[STOP]);
    let first = generator.generate(&requests(0..2, 0)).unwrap();
    generator.clear_lane(1);
    assert_eq!(generator.context_len(1), 0);
    assert_eq!(generator.generate(&requests(1..2, 0)).unwrap()[0], first[1]);
    generator.set_engine(decoder());
    assert_eq!(generator.generate(&requests(0..2, 0)).unwrap(), first);
}

#[test]
fn invalid_requests_are_refused() {
    let check = |requests: &[Request], expected: &str| {
        let error = generator(2, &[]).generate(requests).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(&requests(2..3, 0), "sampling: there is no lane `2`");
    check(&requests([1, 1].into_iter(), 0), "sampling: lane `1` is requested twice");
    let empty = Request { prompt_ids: Vec::new(), ..request(1, 0) };
    check(&[empty], "sampling: lane `1` has an empty context");
}

#[test]
fn both_backends_give_the_same_completions() {
    let model = Qwen2::random(decoder().config(), Seed(5)).unwrap();
    let compute = Compute::choose(DeviceRequest::Cpu, None, KernelChoice::Custom).unwrap();
    let device = Arc::new(DeviceModel::new(&model, &compute).unwrap());
    // Sampled on the device, sampled on the host, and greedy.
    let samplers = [Sampler::UNTEMPERED, Sampler::new(0.8, 0.9).unwrap(), Sampler::GREEDY];
    for sampler in samplers {
        let config = GeneratorConfig { sampler, ..generator(20, &[STOP]).config().clone() };
        let mut first = Generator::new(decoder(), config.clone()).unwrap();
        let mut second = Generator::new(device.clone(), config).unwrap();
        for turn in 0..2 {
            let expected = first.generate(&requests((0..20).rev(), turn)).unwrap();
            let actual = second.generate(&requests((0..20).rev(), turn)).unwrap();
            for (actual, expected) in actual.iter().zip(&expected) {
                assert_eq!((&actual.ids, actual.stop), (&expected.ids, expected.stop), "{sampler:?}");
                let pairs = actual.log_probs.iter().zip(&expected.log_probs);
                let pairs = pairs.chain(actual.entropy.iter().zip(&expected.entropy));
                assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-4), "{actual:?} and {expected:?}");
            }
        }
        assert!((0..20).all(|lane| first.context_len(lane) == second.context_len(lane)));
    }
}
