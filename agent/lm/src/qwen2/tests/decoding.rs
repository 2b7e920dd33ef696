//! Decoding compared with the packed pass, for batches and chunks of any size; errors.

use std::sync::Arc;

use super::*;
use crate::engine::Engine;
use crate::qwen2::batch::Logits;
use crate::qwen2::tests::common::{check_invalid_decoding, check_invalid_scoring, check_lanes};

#[test]
fn cached_equals_uncached() {
    for shape in SHAPES {
        let model = tiny(shape);
        let decoder = model.decoder().unwrap();
        let mut cache = KvCache::new(model.config(), 1, 80);
        let ids = ids(75, 4);
        let truth = packed_logits(&model, &ids, &[75]);
        let mut read = 0;
        for n_new in [5, 1, 1, 30, 1, 33, 4] {
            let new = LaneTokens { lane: 0, ids: &ids[read..read + n_new] };
            let logits = decoder.decode(&mut cache, &[new]).unwrap();
            read += n_new;
            assert_eq!(cache.len(0), read);
            assert_close(logits.row(0), &truth[read - 1], 1e-5, &format!("{shape:?}, {read} tokens"));
        }
    }
}

#[test]
fn logits_do_not_depend_on_other_lanes() {
    let model = tiny(SHAPES[1]);
    let decoder = model.decoder().unwrap();
    let prompts: Vec<Vec<u32>> = (0..17).map(|lane| ids(1 + lane * 3, lane)).collect();
    let mut together = KvCache::new(model.config(), 17, 80);
    let all: Vec<LaneTokens> =
        prompts.iter().enumerate().map(|(lane, ids)| LaneTokens { lane, ids }).collect();
    decoder.decode(&mut together, &all).unwrap();
    let steps: Vec<LaneTokens> = (0..17).map(|lane| LaneTokens { lane, ids: &[7] }).collect();
    let together = decoder.decode(&mut together, &steps).unwrap();
    for (lane, prompt) in prompts.iter().enumerate() {
        // Each sequence alone, in another lane, and with its prompt in two parts if it has at least two
        // tokens.
        let mut alone = KvCache::new(model.config(), 3, 70);
        for part in [&prompt[..prompt.len() / 2], &prompt[prompt.len() / 2..], &[7]] {
            if !part.is_empty() {
                let logits = decoder.decode(&mut alone, &[LaneTokens { lane: 2, ids: part }]).unwrap();
                if part == [7] {
                    assert_eq!(logits.row(0), together.row(lane), "lane {lane}");
                }
            }
        }
    }
}

#[test]
fn logits_after_every_token_are_those_of_single_steps() {
    for model in [tiny(SHAPES[1]), wide()] {
        let decoder = model.decoder().unwrap();
        let ids = ids(300, 4);
        let mut cache = KvCache::new(model.config(), 2, 300);
        let (first, rest) = ids.split_at(3);
        decoder.decode(&mut cache, &[LaneTokens { lane: 1, ids: first }]).unwrap();
        let lanes = [LaneTokens { lane: 1, ids: &rest[..40] }, LaneTokens { lane: 0, ids: &ids[..2] }];
        let each = decoder.decode_each(&mut cache, &lanes).unwrap();
        assert_eq!(each.rows().len(), 42);
        let mut alone = KvCache::new(model.config(), 1, 300);
        let steps: Vec<Logits> = ids[..43]
            .chunks(1)
            .map(|id| decoder.decode(&mut alone, &[LaneTokens { lane: 0, ids: id }]).unwrap())
            .collect();
        for (row, step) in steps[3..].iter().chain(&steps[..2]).enumerate() {
            assert_eq!(each.row(row), step.row(0), "row {row}");
        }
    }
}

fn engine(shape: Shape) -> Engine {
    Engine::from(Arc::new(tiny(shape).into_decoder().unwrap()))
}

#[test]
fn lanes_are_copied_truncated_and_cleared() {
    check_lanes(&engine(SHAPES[2]), 0.0);
    let mut cache = KvCache::new(tiny(SHAPES[2]).config(), 1, 8);
    cache.advance(0, 3);
    cache.reset_lane(0);
    assert!(cache.is_empty(0));
}

#[test]
fn invalid_calls_are_refused_and_leave_the_cache_unchanged() {
    check_invalid_decoding(&engine(SHAPES[0]), &engine(SHAPES[2]));
}

#[test]
fn invalid_tokens_are_not_scored() {
    let model = tiny(SHAPES[0]);
    check_invalid_scoring(|tokens, positions, targets| {
        model.score(tokens, positions, targets, Sampler::UNTEMPERED)
    });
    let tokens = PackedTokens { ids: &[1, 2], lengths: &[2], prefix_of: &[] };
    let greedy = model.score(&tokens, &[0], &[1], Sampler::GREEDY);
    assert!(greedy.unwrap_err().to_string().contains("temperature"));
}

#[test]
fn the_chunks_of_a_long_prefill_do_not_change_logits() {
    for model in [wide(), {
        let config = Qwen2Config { max_position_embeddings: 700, ..tiny(SHAPES[1]).config().clone() };
        Qwen2::random(&config, Seed(3)).unwrap()
    }] {
        let decoder = model.decoder().unwrap();
        let ids = ids(650, 8);
        let read = |parts: &[usize]| {
            let mut cache = KvCache::new(model.config(), 2, 700);
            let mut start = 0;
            let mut last = None;
            for part in parts {
                // Another lane reads at the same time, so that chunks start at other positions.
                let lanes = [
                    LaneTokens { lane: 1, ids: &ids[..100] },
                    LaneTokens { lane: 0, ids: &ids[start..start + part] },
                ];
                cache.reset_lane(1);
                last = Some(decoder.decode(&mut cache, &lanes).unwrap());
                start += part;
            }
            assert_eq!(start, 650);
            last.unwrap().row(1).to_vec()
        };
        let whole = read(&[650]);
        assert_eq!(read(&[1, 255, 257, 137]), whole);
        // Expected: the packed pass, which does not use chunks.
        let truth = packed_logits(&model, &ids, &[650]);
        assert_close(&whole, &truth[649], 1e-4, "a long text");
    }
}

#[test]
fn a_decoder_does_not_depend_on_its_model() {
    let model = tiny(SHAPES[1]);
    let kept = model.decoder().unwrap();
    let expected =
        kept.decode(&mut KvCache::new(model.config(), 1, 8), &[LaneTokens { lane: 0, ids: &[5, 6] }]);
    let config = model.config().clone();
    let alone = model.into_decoder().unwrap();
    let logits = alone.decode(&mut KvCache::new(&config, 1, 8), &[LaneTokens { lane: 0, ids: &[5, 6] }]);
    assert_eq!(logits.unwrap(), expected.unwrap());
}
