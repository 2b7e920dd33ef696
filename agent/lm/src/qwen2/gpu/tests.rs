//! The GPU backend compared with the CPU backend, on the CPU: with reference implementations and with
//! emulated CUDA kernels.

use std::sync::Arc;

use candle_core::{DType, Tensor};
use webshop_products::Seed;

use crate::device::{Compute, ComputeDtype, DeviceRequest, KernelChoice};
use crate::engine::Engine;
use crate::error::LmError;
use crate::generation::sampler::Sampler;
use crate::lora::{Lora, LoraConfig};
use crate::qwen2::cpu::kv_cache::KvCache;
use crate::qwen2::gpu::{DeviceCache, DeviceModel, Parameters};
use crate::qwen2::tests::common::{
    Shape, assert_close, check_invalid_decoding, check_invalid_scoring, check_lanes, d_log_prob, ids, loss,
    output_gradients, scored, tiny,
};
use crate::qwen2::{LaneTokens, Qwen2, Qwen2Config, TokenStats};
use webshop_kernels::gpu::emulated;

const SHAPES: [Shape; 3] = [(2, 2, Some(8), true), (4, 2, Some(8), false), (3, 1, Some(8), true)];

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

#[test]
fn decoding_equals_the_cpu_backend() {
    for shape in SHAPES {
        let model = tiny(shape);
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
                    assert_close(
                        ours,
                        theirs,
                        2e-5,
                        &format!("{shape:?}, round {round}, {:?}", device.kernels()),
                    );
                }
                assert!((0..3).all(|lane| ours.len(lane) == theirs.len(lane)));
            }
        }
    }
}

/// Steps of single tokens with kernels that record, compared with the CPU backend: the lanes of each step in their order.
/// Returns the numbers of rows that are recorded at the end.
fn check_steps(device: &DeviceModel, model: &Qwen2, steps: &[&[usize]]) -> Vec<usize> {
    let decoder = model.decoder().unwrap();
    let (n_lanes, capacity) = (6, 16);
    let mut theirs = KvCache::new(model.config(), n_lanes, capacity);
    let mut ours = DeviceCache::new(device, n_lanes, capacity).unwrap();
    let texts: Vec<Vec<u32>> = (0..n_lanes).map(|lane| ids(3 + lane, lane)).collect();
    let begun: Vec<LaneTokens> =
        texts.iter().enumerate().map(|(lane, ids)| LaneTokens { lane, ids }).collect();
    decoder.decode(&mut theirs, &begun).unwrap();
    device.decode(&mut ours, &begun).unwrap();
    for (round, lanes) in steps.iter().enumerate() {
        let new: Vec<Vec<u32>> = lanes.iter().map(|lane| ids(1, 7 * round + lane)).collect();
        let new: Vec<LaneTokens> =
            lanes.iter().zip(&new).map(|(&lane, ids)| LaneTokens { lane, ids }).collect();
        let expected = decoder.decode(&mut theirs, &new).unwrap();
        let logits = device.decode(&mut ours, &new).unwrap();
        assert_eq!(logits.rows().count(), lanes.len());
        for (ours, theirs) in logits.rows().zip(expected.rows()) {
            assert_close(ours, theirs, 2e-5, &format!("round {round}"));
        }
        // A lane that starts again: what it held must not be seen.
        theirs.truncate_lane(round % n_lanes, 2);
        ours.truncate_lane(round % n_lanes, 2);
        assert!((0..n_lanes).all(|lane| ours.len(lane) == theirs.len(lane)));
    }
    ours.steps.map_or(Vec::new(), |steps| steps.recorded_rows().collect())
}

#[test]
fn recorded_steps_equal_the_cpu_backend() {
    let model = tiny(SHAPES[1]);
    let [reference, device] = both(&model);
    // Four rows with and without an added one, other orders and lanes, one row, and more rows than a power of two.
    let steps: [&[usize]; 7] =
        [&[0, 3, 1], &[5, 2, 0], &[4, 1, 0, 2], &[3], &[5], &[0, 1, 2, 3, 4], &[5, 4, 3, 2, 1]];
    assert_eq!(check_steps(&device, &model, &steps), [1, 4, 6]);
    assert_eq!(check_steps(&reference, &model, &steps), [0; 0], "without kernels nothing is recorded");

    // An optimizer changes the weights in place, and recordings compute with what they are then.
    let mut cache = DeviceCache::new(&device, 2, 16).unwrap();
    let step = |cache: &mut DeviceCache, device: &DeviceModel| {
        cache.truncate_lane(0, 0);
        let logits = device.decode(cache, &[LaneTokens { lane: 0, ids: &[7] }]).unwrap();
        logits.row(0).to_vec()
    };
    let before = [step(&mut cache, &device), step(&mut cache, &device)];
    assert_eq!(before[0], before[1], "the step that is recorded and its replay");
    for (_, weight) in device.weights().named() {
        weight.slice_set(&(weight * 1.5).unwrap(), 0, 0).unwrap();
    }
    let changed = Qwen2::new(model.config(), device.weights().split(model.config()).unwrap()).unwrap();
    let mut theirs = KvCache::new(model.config(), 1, 16);
    let expected =
        changed.decoder().unwrap().decode(&mut theirs, &[LaneTokens { lane: 0, ids: &[7] }]).unwrap();
    assert_close(&step(&mut cache, &device), expected.row(0), 2e-5, "changed weights");
    // Other weights are recorded anew.
    let [_, other] = both(&model);
    assert_eq!(step(&mut cache, &other), before[0]);
}

#[test]
fn an_eager_step_has_the_bits_of_a_recorded_one() {
    let model = tiny(SHAPES[2]);
    let [_, recorded] = both(&model);
    let eager = DeviceModel { compute: recorded.compute().eager(), ..recorded.clone() };
    let draws = [recorded, eager].map(|device| {
        let mut cache = DeviceCache::new(&device, 4, 16).unwrap();
        let mut ids = vec![1, 2, 3];
        let mut all = Vec::new();
        for round in 0..4 {
            let lanes: Vec<LaneTokens> =
                ids.chunks(1).enumerate().map(|(lane, ids)| LaneTokens { lane, ids }).collect();
            let draws = device.draw(&mut cache, &lanes, &[0.1, 0.5, 0.2 * round as f32], 0.8).unwrap();
            ids = draws.iter().map(|draw| draw.id).collect();
            all.extend(draws.iter().map(|draw| (draw.id, draw.log_prob.to_bits(), draw.entropy.to_bits())));
        }
        (all, cache.steps.unwrap().recorded_rows().count())
    });
    assert_eq!(draws[0].0, draws[1].0);
    assert_eq!([draws[0].1, draws[1].1], [1, 0]);
}

#[test]
fn the_chunk_size_of_a_prefill_does_not_change_logits() {
    let model = tiny(SHAPES[1]);
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
        assert_close(&read(tokens_at_once), &whole, 1e-5, &format!("{tokens_at_once} tokens at once"));
    }
}

#[test]
fn log_probabilities_and_gradients_equal_the_cpu_backend() {
    let shaped = Sampler::new(0.9, 0.8).unwrap();
    for (shape, sampler) in [(SHAPES[1], Sampler::UNTEMPERED), (SHAPES[2], shaped)] {
        let model = tiny(shape);
        let scored = scored();
        let (tokens, positions, targets) = (scored.tokens(), &scored.positions, &scored.targets);
        let theirs = model.record(&tokens, positions, targets, sampler).unwrap();
        assert_eq!(theirs.stats().n_outside > 0, sampler == shaped);
        let expected = theirs.backward(&loss(&theirs.stats().log_prob)).unwrap();
        for device in both(&model) {
            let pass = device.record(&tokens, positions, targets, sampler).unwrap();
            let what = format!("{shape:?}, {:?}", device.kernels());
            let log_prob = theirs.stats().log_prob.to_vec1::<f32>().unwrap();
            assert_close(&pass.log_prob().to_vec1::<f32>().unwrap(), &log_prob, 1e-5, &what);
            assert_close(&pass.entropy().to_vec1::<f32>().unwrap(), &theirs.stats().entropy, 1e-5, &what);
            let n_outside = pass.outside().sum_all().unwrap().to_scalar::<f32>().unwrap();
            assert_eq!(n_outside as usize, theirs.stats().n_outside, "{what}");
            for stats in [device.score(&tokens, positions, targets, sampler), pass.stats()] {
                let stats = stats.unwrap();
                let on_host = stats.log_prob.to_vec1::<f32>().unwrap();
                assert_eq!(on_host, pass.log_prob().to_vec1::<f32>().unwrap());
                assert_eq!(stats.entropy, pass.entropy().to_vec1::<f32>().unwrap());
                assert_eq!(stats.n_outside, n_outside as usize);
            }

            let gradients = device.weights().zeros_like().unwrap();
            pass.backward(&d_log_prob(targets.len()), &gradients).unwrap();
            assert_equal_gradients(&gradients, &expected, &model, &what);
        }
    }
}

#[track_caller]
fn assert_equal_gradients(gradients: &Parameters, expected: &[Vec<f32>], model: &Qwen2, what: &str) {
    for ((name, gradient), expected) in gradients.split(model.config()).unwrap().iter().zip(expected) {
        let ours = gradient.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let norm = |x: &[f32]| x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
        let difference: Vec<f32> = ours.iter().zip(expected).map(|(a, b)| a - b).collect();
        let error = norm(&difference) / norm(expected);
        assert!(error < 1e-4, "{what} `{name}`: relative error {error:e}");
    }
}

#[test]
fn hidden_states_and_gradients_through_them_equal_the_cpu_backend() {
    let model = tiny(SHAPES[1]);
    let scored = scored();
    let (tokens, positions, targets) = (scored.tokens(), &scored.positions, &scored.targets);
    let theirs = model.record(&tokens, positions, targets, Sampler::UNTEMPERED).unwrap();
    let outputs = output_gradients(targets.len(), model.config().hidden_size);
    let rows = &outputs.d_hidden.as_ref().unwrap().rows;
    let mut expected = vec![Vec::new(); model.learnable().len()];
    theirs.backward_from(&outputs, |place, gradient| expected[place] = gradient).unwrap();
    for device in both(&model) {
        let what = format!("{:?}", device.kernels());
        let pass = device.record(&tokens, positions, targets, Sampler::UNTEMPERED).unwrap();
        let of_rows = pass.hidden_states(rows).unwrap();
        assert_close(&of_rows, &theirs.hidden_states(rows).unwrap(), 1e-5, &what);
        let of_all = device.hidden_states(&tokens, positions).unwrap();
        assert_close(&of_all, &model.hidden_states(&tokens, positions).unwrap(), 1e-5, &what);
        assert!(pass.hidden_states(&[targets.len() as u32]).is_err());
        let gradients = device.weights().zeros_like().unwrap();
        pass.backward_from(&outputs, &gradients).unwrap();
        assert_equal_gradients(&gradients, &expected, &model, &what);
    }
}

/// A tiny model with an adapter on matrices that are joined with others and on one that is not; its B is not zero.
fn adapted() -> Qwen2 {
    let model = tiny(SHAPES[1]);
    let config = LoraConfig::new(2, 3.0, &["q_proj", "v_proj", "up_proj", "down_proj"]);
    let lora = Lora::random(&model.matrices(), &config, Seed(5)).unwrap();
    for module in lora.modules() {
        let values = (0..module.b.elem_count()).map(|i| 0.1 * ((i * 7 % 5) as f32 - 2.0));
        let values = Tensor::from_iter(values, module.b.device()).unwrap();
        module.b.set(&values.reshape(module.b.shape()).unwrap()).unwrap();
    }
    model.adapted(lora).unwrap()
}

#[test]
fn an_adapter_is_added_and_has_the_gradients_of_the_cpu_backend() {
    let model = adapted();
    let scored = scored();
    let (tokens, positions, targets) = (scored.tokens(), &scored.positions, &scored.targets);
    let theirs = model.record(&tokens, positions, targets, Sampler::UNTEMPERED).unwrap();
    let expected = theirs.backward(&loss(&theirs.stats().log_prob)).unwrap();
    let (device, adapter) = DeviceModel::with_adapter(&model, &compute(ComputeDtype::F32)).unwrap();
    let adapter = adapter.expect("the model has one");
    let pass = device.record(&tokens, positions, targets, Sampler::UNTEMPERED).unwrap();
    let log_prob = theirs.stats().log_prob.to_vec1::<f32>().unwrap();
    assert_close(&pass.log_prob().to_vec1::<f32>().unwrap(), &log_prob, 1e-5, "log-probabilities");
    let of_weights = device.weights().zeros_like().unwrap();
    pass.backward(&d_log_prob(targets.len()), &of_weights).unwrap();
    let gradients = adapter.gradients(&of_weights).unwrap();
    assert_eq!(gradients.len(), expected.len());
    for (((name, var), (other, _)), (ours, theirs)) in
        model.learnable().iter().zip(adapter.learnable()).zip(gradients.iter().zip(&expected))
    {
        assert_eq!((name.as_str(), var.dims()), (other, ours.dims()));
        let norm = |x: &[f32]| x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
        let ours = ours.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let difference: Vec<f32> = ours.iter().zip(theirs).map(|(a, b)| a - b).collect();
        assert!(norm(&difference) < 1e-4 * norm(theirs), "`{name}`");
    }
}

#[test]
fn a_trained_adapter_is_written_to_weights_and_host() {
    for dtype in [ComputeDtype::F32, ComputeDtype::Bf16] {
        let (model, compute) = (adapted(), compute(dtype));
        let (device, adapter) = DeviceModel::with_adapter(&model, &compute).unwrap();
        let adapter = adapter.expect("the model has one");
        for (_, matrix) in adapter.learnable() {
            matrix.slice_set(&(matrix * 1.5).unwrap(), 0, 0).unwrap();
        }
        let before = model.fingerprint().unwrap();
        adapter.apply(device.weights()).unwrap();
        assert_eq!(model.fingerprint().unwrap(), before, "the host has its own copy");
        adapter.write_to(&model).unwrap();
        // What is saved gives the same bits when it is loaded.
        let loaded = DeviceModel::new(&model, &compute).unwrap();
        for ((name, weight), (_, again)) in device.weights().named().zip(loaded.weights().named()) {
            let values =
                |x: &Tensor| x.to_dtype(DType::F32).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
            assert_eq!(values(weight), values(again), "{dtype:?}, {name}");
        }
        assert_ne!(model.fingerprint().unwrap(), before);
    }
}

#[test]
fn gradients_add_up_over_passes() {
    let model = tiny(SHAPES[0]);
    let [device, _] = both(&model);
    let scored = scored();
    let pass =
        device.record(&scored.tokens(), &scored.positions, &scored.targets, Sampler::UNTEMPERED).unwrap();
    let flat = |gradients: &Parameters| -> Vec<f32> {
        let values = gradients.named().map(|(_, g)| g.flatten_all().unwrap().to_vec1::<f32>().unwrap());
        values.collect::<Vec<_>>().concat()
    };
    let (gradients, d) = (device.weights().zeros_like().unwrap(), d_log_prob(scored.targets.len()));
    pass.backward(&d, &gradients).unwrap();
    let once = flat(&gradients);
    assert!(once.iter().any(|g| g.abs() > 1e-3));
    pass.backward(&d, &gradients).unwrap();
    let doubled: Vec<f32> = once.iter().map(|g| 2.0 * g).collect();
    assert_close(&flat(&gradients), &doubled, 1e-5, "twice the same");
    gradients.clear().unwrap();
    assert!(flat(&gradients).iter().all(|g| *g == 0.0));
}

#[test]
fn bf16_is_close_to_f32() {
    let model = tiny((4, 2, Some(8), true));
    let device = DeviceModel::new(&model, &compute(ComputeDtype::Bf16)).unwrap();
    let scored = scored();
    let (tokens, positions, targets) = (scored.tokens(), &scored.positions, &scored.targets);
    let log_prob = |stats: Result<TokenStats, LmError>| stats.unwrap().log_prob.to_vec1::<f32>().unwrap();
    let expected = log_prob(model.score(&tokens, positions, targets, Sampler::UNTEMPERED));
    let ours = log_prob(device.score(&tokens, positions, targets, Sampler::UNTEMPERED));
    assert_ne!(ours, expected);
    // Two layers of products rounded to 8 significant bits, on logits of size 10.
    assert_close(&ours, &expected, 0.15, "bf16");
}

fn engine(shape: Shape) -> Engine {
    let [device, _] = both(&tiny(shape));
    Engine::from(Arc::new(device))
}

#[test]
fn lanes_are_copied_truncated_and_cleared() {
    check_lanes(&engine(SHAPES[2]), 1e-5);
}

#[test]
fn invalid_calls_are_refused_and_leave_the_cache_unchanged() {
    check_invalid_decoding(&engine(SHAPES[0]), &engine(SHAPES[2]));
    let [device, _] = both(&tiny(SHAPES[0]));
    let mut shallow = DeviceCache::new(&device, 1, 10).unwrap();
    shallow.layers.pop();
    let refused = device.decode(&mut shallow, &[LaneTokens { lane: 0, ids: &[1] }]);
    assert!(refused.unwrap_err().to_string().contains("another shape"));
}

#[test]
fn invalid_tokens_are_not_scored() {
    let [device, _] = both(&tiny(SHAPES[0]));
    check_invalid_scoring(|tokens, positions, targets| {
        device.score(tokens, positions, targets, Sampler::UNTEMPERED)
    });
}

#[test]
fn splitting_inverts_joining() {
    let model = tiny(SHAPES[1]);
    let [device, _] = both(&model);
    let split = device.weights().split(model.config()).unwrap();
    for ((name, var), (other, tensor)) in model.parameters().iter().zip(&split) {
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
    Qwen2::new(&config, device.weights().split(&config).unwrap()).unwrap();
}
