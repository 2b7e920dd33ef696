//! The GPU backend compared with the CPU backend, on the CPU: with reference implementations and with
//! emulated CUDA kernels.

use candle_core::{DType, Device, Tensor};
use webshop_products::Seed;

use crate::device::{Compute, ComputeDtype, DeviceRequest, KernelChoice};
use crate::generation::sampler::Sampler;
use crate::qwen2::cpu::kv_cache::KvCache;
use crate::qwen2::gpu::{DeviceCache, DeviceModel, Parameters};
use crate::qwen2::{LaneTokens, PackedTokens, Qwen2, Qwen2Config};
use webshop_kernels::gpu::emulated;

const HEADS: [(usize, usize); 3] = [(2, 2), (4, 2), (3, 1)];

/// Sizes divisible by four, as the kernels require.
fn tiny((n_heads, n_kv_heads): (usize, usize), tied: bool) -> Qwen2 {
    let config = Qwen2Config {
        hidden_size: 24,
        intermediate_size: 20,
        num_hidden_layers: 2,
        num_attention_heads: n_heads,
        num_key_value_heads: Some(n_kv_heads),
        head_dim: Some(8),
        max_position_embeddings: 80,
        tie_word_embeddings: tied,
        initializer_range: 0.3,
        ..Qwen2Config::small(37)
    };
    let model = Qwen2::random(&config, Seed(3)).unwrap();
    // Zero biases and unit gains would hide an error in either.
    for (name, var) in model.parameters().iter().filter(|(_, var)| var.rank() == 1) {
        let values = (0..var.elem_count()).map(|i| ((i * 5 + name.len()) % 11) as f32 * 0.1 + 0.2);
        var.set(&Tensor::from_iter(values, &Device::Cpu).unwrap()).unwrap();
    }
    model
}

fn compute(dtype: ComputeDtype) -> Compute {
    Compute::choose(DeviceRequest::Cpu, Some(dtype), KernelChoice::Custom).unwrap()
}

/// The model with reference implementations and with emulated custom kernels.
fn both(model: &Qwen2) -> [DeviceModel; 2] {
    let reference = DeviceModel::new(model, &compute(ComputeDtype::F32)).unwrap();
    let heads = model.config().heads();
    let kernels = emulated::kernels(DType::F32, heads.head_dim, heads.group());
    [reference.clone(), reference.with_kernels(kernels)]
}

fn ids(count: usize, salt: usize) -> Vec<u32> {
    (0..count).map(|i| ((i * i + 7 * i + salt * 11) % 37) as u32).collect()
}

#[track_caller]
fn close(a: &[f32], b: &[f32], tolerance: f32, what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= tolerance, "{what}: element {i} is {a} against {b}");
    }
}

#[test]
fn decoding_equals_the_cpu_backend() {
    for (heads, tied) in [(HEADS[0], true), (HEADS[1], false), (HEADS[2], true)] {
        let model = tiny(heads, tied);
        let decoder = model.decoder().unwrap();
        for device in both(&model) {
            let mut theirs = KvCache::new(model.config(), 3, 64);
            let mut ours = DeviceCache::new(&device, 3, 64).unwrap();
            // Single tokens, a few, and so many that matrix products are used; lanes out of order.
            for (round, lengths) in [[3, 1, 17], [1, 1, 1], [20, 2, 1], [1, 9, 1]].into_iter().enumerate() {
                let texts: Vec<(usize, Vec<u32>)> = [2, 0, 1]
                    .into_iter()
                    .zip(lengths)
                    .map(|(lane, n)| (lane, ids(n, lane + round)))
                    .collect();
                let lanes: Vec<LaneTokens> =
                    texts.iter().map(|(lane, ids)| LaneTokens { lane: *lane, ids }).collect();
                let expected = decoder.decode(&mut theirs, &lanes).unwrap();
                let logits = device.decode(&mut ours, &lanes).unwrap();
                for (ours, theirs) in logits.rows().zip(expected.rows()) {
                    close(ours, theirs, 2e-5, &format!("{heads:?}, round {round}, {:?}", device.kernels()));
                }
                assert!((0..3).all(|lane| ours.len(lane) == theirs.len(lane)));
            }
        }
    }
}

#[test]
fn the_chunk_size_of_a_prefill_does_not_change_logits() {
    let model = tiny(HEADS[1], true);
    let [device, _] = both(&model);
    let texts = [ids(9, 1), ids(1, 2), ids(20, 3)];
    let lanes: Vec<LaneTokens> =
        texts.iter().enumerate().map(|(lane, ids)| LaneTokens { lane, ids }).collect();
    let read = |tokens_at_once| {
        let mut cache = DeviceCache::new(&device, 3, 64).unwrap();
        let logits = device.read_by(&mut cache, &lanes, tokens_at_once).unwrap();
        assert_eq!((cache.len(0), cache.len(1), cache.len(2)), (9, 1, 20));
        logits.flatten_all().unwrap().to_vec1::<f32>().unwrap()
    };
    let whole = read(100);
    for tokens_at_once in [1, 7, 9, 10, 30] {
        close(&read(tokens_at_once), &whole, 1e-5, &format!("{tokens_at_once} tokens at once"));
    }
}

/// Two sequences, scored at most of their positions, out of order and one position twice.
fn scored_positions() -> (Vec<u32>, [usize; 2], Vec<u32>, Vec<u32>) {
    let ids = ids(31, 3);
    let positions: Vec<u32> = (0..30).rev().filter(|&p| p != 19 && p != 4).chain([7]).collect();
    let targets = positions.iter().map(|&p| ids[p as usize + 1]).collect();
    (ids, [20, 11], positions, targets)
}

fn weights(n: usize) -> Vec<f32> {
    (0..n).map(|i| 0.05 + 0.002 * i as f32).collect()
}

#[test]
fn log_probabilities_and_gradients_equal_the_cpu_backend() {
    let shaped = Sampler::new(0.9, 0.8).unwrap();
    for (heads, tied, sampler) in [(HEADS[1], false, Sampler::UNTEMPERED), (HEADS[2], true, shaped)] {
        let model = tiny(heads, tied);
        let (ids, lengths, positions, targets) = scored_positions();
        let tokens = PackedTokens { ids: &ids, lengths: &lengths, prefix_of: &[] };
        let theirs = model.record(&tokens, &positions, &targets, sampler).unwrap();
        assert_eq!(theirs.stats().n_outside > 0, sampler == shaped);
        let d = weights(targets.len());
        let weighted = Tensor::from_slice(&d, d.len(), &Device::Cpu).unwrap();
        let loss = (&theirs.stats().log_prob * weighted).unwrap().sum_all().unwrap();
        let expected = theirs.backward(&loss).unwrap();
        for device in both(&model) {
            let pass = device.record(&tokens, &positions, &targets, sampler).unwrap();
            let what = format!("{heads:?}, {:?}", device.kernels());
            let log_prob = theirs.stats().log_prob.to_vec1::<f32>().unwrap();
            close(&pass.log_prob().to_vec1::<f32>().unwrap(), &log_prob, 1e-5, &what);
            close(&pass.entropy().to_vec1::<f32>().unwrap(), &theirs.stats().entropy, 1e-5, &what);
            let n_outside = pass.outside().sum_all().unwrap().to_scalar::<f32>().unwrap();
            assert_eq!(n_outside as usize, theirs.stats().n_outside, "{what}");
            for answers in [device.score(&tokens, &positions, &targets, sampler), pass.stats()] {
                let answers = answers.unwrap();
                let on_host = answers.log_prob.to_vec1::<f32>().unwrap();
                assert_eq!(on_host, pass.log_prob().to_vec1::<f32>().unwrap());
                assert_eq!(answers.entropy, pass.entropy().to_vec1::<f32>().unwrap());
                assert_eq!(answers.n_outside, n_outside as usize);
            }

            let gradients = device.weights().zeros_like().unwrap();
            pass.backward(&d, &gradients).unwrap();
            for ((name, gradient), expected) in gradients.split(model.config()).unwrap().iter().zip(&expected)
            {
                let ours = gradient.flatten_all().unwrap().to_vec1::<f32>().unwrap();
                let norm = |x: &[f32]| x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
                let apart: Vec<f32> = ours.iter().zip(expected).map(|(a, b)| a - b).collect();
                let error = norm(&apart) / norm(expected);
                assert!(error < 1e-4, "{what} `{name}`: {error:e} apart");
            }
        }
    }
}

#[test]
fn gradients_add_up_over_passes() {
    let model = tiny(HEADS[0], true);
    let [device, _] = both(&model);
    let (ids, lengths, positions, targets) = scored_positions();
    let pass = device
        .record(
            &PackedTokens { ids: &ids, lengths: &lengths, prefix_of: &[] },
            &positions,
            &targets,
            Sampler::UNTEMPERED,
        )
        .unwrap();
    let flat = |gradients: &Parameters| -> Vec<f32> {
        let values = gradients.named().map(|(_, g)| g.flatten_all().unwrap().to_vec1::<f32>().unwrap());
        values.collect::<Vec<_>>().concat()
    };
    let gradients = device.weights().zeros_like().unwrap();
    pass.backward(&weights(targets.len()), &gradients).unwrap();
    let once = flat(&gradients);
    assert!(once.iter().any(|g| g.abs() > 1e-3));
    pass.backward(&weights(targets.len()), &gradients).unwrap();
    let doubled: Vec<f32> = once.iter().map(|g| 2.0 * g).collect();
    close(&flat(&gradients), &doubled, 1e-5, "twice the same");
    gradients.clear().unwrap();
    assert!(flat(&gradients).iter().all(|g| *g == 0.0));
}

#[test]
fn bf16_is_close_to_f32() {
    let model = tiny(HEADS[1], true);
    let device = DeviceModel::new(&model, &compute(ComputeDtype::Bf16)).unwrap();
    let (ids, lengths, positions, targets) = scored_positions();
    let tokens = PackedTokens { ids: &ids, lengths: &lengths, prefix_of: &[] };
    let log_prob = device.score(&tokens, &positions, &targets, Sampler::UNTEMPERED).unwrap().log_prob;
    let expected = model
        .score(&tokens, &positions, &targets, Sampler::UNTEMPERED)
        .unwrap()
        .log_prob
        .to_vec1::<f32>()
        .unwrap();
    let ours = log_prob.to_vec1::<f32>().unwrap();
    assert_ne!(ours, expected);
    // Two layers of products rounded to 8 significant bits, on logits of size 10.
    close(&ours, &expected, 0.15, "bf16");
}

#[test]
fn lanes_are_forked_cut_and_reset() {
    let model = tiny(HEADS[2], true);
    let [device, _] = both(&model);
    let mut cache = DeviceCache::new(&device, 2, 80).unwrap();
    let ids = ids(40, 5);
    let feed = |cache: &mut DeviceCache, lane, ids| {
        device.decode(cache, &[LaneTokens { lane, ids }]).unwrap().row(0).to_vec()
    };
    feed(&mut cache, 0, &ids[..30]);
    cache.copy_lane(0, 1).unwrap();
    let straight = feed(&mut cache, 0, &ids[30..]);
    assert_eq!(feed(&mut cache, 1, &ids[30..]), straight);
    cache.truncate_lane(0, 12);
    assert_eq!(cache.len(0), 12);
    close(&feed(&mut cache, 0, &ids[12..]), &straight, 1e-5, "cut");
    cache.truncate_lane(1, 0);
    assert_eq!(cache.len(1), 0);
    close(&feed(&mut cache, 1, &ids), &straight, 1e-5, "reset");
}

#[test]
fn invalid_calls_are_refused_and_leave_the_cache_unchanged() {
    let model = tiny(HEADS[0], true);
    let [device, _] = both(&model);
    let mut cache = DeviceCache::new(&device, 2, 10).unwrap();
    device.decode(&mut cache, &[LaneTokens { lane: 0, ids: &[1, 2] }]).unwrap();
    let good = LaneTokens { lane: 1, ids: &[1] };
    for (bad, named) in [
        (LaneTokens { lane: 2, ids: &[1] }, "lane 2"),
        (LaneTokens { lane: 1, ids: &[1] }, "twice"),
        (LaneTokens { lane: 0, ids: &[] }, "no new tokens"),
        (LaneTokens { lane: 0, ids: &[37] }, "token 37"),
        (LaneTokens { lane: 0, ids: &[1; 9] }, "9 more"),
    ] {
        let message = device.decode(&mut cache, &[good, bad]).unwrap_err().to_string();
        assert!(message.contains(named), "{message}");
        assert_eq!((cache.len(0), cache.len(1)), (2, 0));
    }
    let [other, _] = both(&tiny(HEADS[1], true));
    let mut shallow = DeviceCache::new(&other, 2, 10).unwrap();
    shallow.layers.pop();
    assert!(device.decode(&mut shallow, &[good]).unwrap_err().to_string().contains("another shape"));
    for (ids, lengths, positions, targets) in [
        (&[1, 2][..], &[1][..], &[0][..], &[1][..]),
        (&[1, 2], &[2, 0], &[0], &[1]),
        (&[1, 37], &[2], &[0], &[1]),
        (&[1, 2], &[2], &[2], &[1]),
        (&[1, 2], &[2], &[0], &[37]),
        (&[1, 2], &[2], &[0], &[]),
        (&[1; 81], &[81], &[0], &[1]),
    ] {
        assert!(
            device
                .score(
                    &PackedTokens { ids, lengths, prefix_of: &[] },
                    positions,
                    targets,
                    Sampler::UNTEMPERED
                )
                .is_err()
        );
    }
}

#[test]
fn splitting_inverts_joining() {
    let model = tiny(HEADS[1], false);
    let [device, _] = both(&model);
    let apart = device.weights().split(model.config()).unwrap();
    for ((name, var), (other, tensor)) in model.parameters().iter().zip(&apart) {
        assert_eq!(name, other);
        assert_eq!(var.dims(), tensor.dims());
        let values = |x: &Tensor| x.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert_eq!(values(var.as_tensor()), values(tensor), "{name}");
    }
    let copy = Qwen2::random(model.config(), Seed(9)).unwrap();
    device.weights().write_to(&copy).unwrap();
    assert_eq!(copy.fingerprint().unwrap(), model.fingerprint().unwrap());
}

#[test]
fn measured_models_have_the_right_size() {
    let config = Qwen2Config::small(50);
    let device = DeviceModel::for_measurement(&config, &compute(ComputeDtype::F32)).unwrap();
    let model = Qwen2::random(&config, Seed(0)).unwrap();
    assert_eq!(
        device.n_parameters(),
        model.parameters().iter().map(|(_, var)| var.elem_count()).sum::<usize>()
    );
    let apart = device.weights().split(&config).unwrap();
    Qwen2::new(&config, apart).unwrap();
}
