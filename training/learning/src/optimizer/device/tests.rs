//! The optimizer of the gpu backend against that of the cpu backend, both on the CPU.

use candle_core::{DType, Device, Tensor};
use webshop_lm::device::{Compute, DeviceRequest, KernelChoice};
use webshop_lm::{PackedTokens, Qwen2, Qwen2Config, Sampler};
use webshop_products::Seed;

use super::*;
use crate::optimizer::Optimizer;

const UPDATE: UpdateConfig = UpdateConfig { lr: 1e-2, grad_clip: 0.01 };

fn config() -> OptimizerConfig {
    OptimizerConfig { betas: [0.9, 0.98], ..OptimizerConfig::default() }
}

fn setup(dtype: ComputeDtype) -> (Qwen2, DeviceModel) {
    let shape = Qwen2Config { hidden_size: 16, intermediate_size: 32, ..Qwen2Config::small(40) };
    let model = Qwen2::random(&shape, Seed(1)).unwrap();
    let compute = Compute::choose(DeviceRequest::Cpu, Some(dtype), KernelChoice::Reference).unwrap();
    let device = DeviceModel::new(&model, &compute).unwrap();
    (model, device)
}

const IDS: [u32; 12] = [1, 5, 9, 3, 30, 2, 1, 1, 39, 0, 7, 5];
const POSITIONS: [u32; 6] = [0, 2, 3, 6, 8, 10];
const TARGETS: [u32; 6] = [5, 3, 30, 1, 0, 5];
/// Gradient of the loss with respect to the log-probabilities.
const D_LOG_PROB: [f32; 6] = [-0.1, -0.3, 0.2, -0.4, -0.1, -0.2];

fn tokens() -> PackedTokens<'static> {
    PackedTokens { ids: &IDS, lengths: &[7, 5], prefix_of: &[] }
}

fn gradients(device: &DeviceModel) -> Parameters {
    let gradients = device.weights().zeros_like().unwrap();
    let pass = device.record(&tokens(), &POSITIONS, &TARGETS, Sampler::UNTEMPERED).unwrap();
    pass.backward(&D_LOG_PROB, &gradients).unwrap();
    gradients
}

fn gradients_of_the_first_engine(model: &Qwen2) -> Vec<Vec<f32>> {
    let pass = model.record(&tokens(), &POSITIONS, &TARGETS, Sampler::UNTEMPERED).unwrap();
    let weights = Tensor::new(&D_LOG_PROB, &Device::Cpu).unwrap();
    pass.backward(&(&pass.stats().log_prob * weights).unwrap().sum_all().unwrap()).unwrap()
}

fn flat(parameters: &Parameters) -> Vec<f32> {
    let values = parameters.named().map(|(_, tensor)| {
        let wide = tensor.flatten_all().unwrap().to_dtype(DType::F32).unwrap();
        wide.to_vec1::<f32>().unwrap()
    });
    values.collect::<Vec<_>>().concat()
}

fn masters_of(optimizer: &DeviceOptimizer) -> &Parameters {
    let Learned::Weights { masters, .. } = &optimizer.learned else { panic!("an adapter") };
    masters
}

#[test]
fn steps_equal_those_of_the_cpu_backend() {
    for method in [Method::Adamw, Method::Muon] {
        let (model, device) = setup(ComputeDtype::F32);
        let mut ours = DeviceOptimizer::new(method, &config(), &device, None).unwrap();
        let mut theirs = Optimizer::new(method, &config(), model.parameters());
        for step in 0..4 {
            let mut expected = gradients_of_the_first_engine(&model);
            let expected = theirs.step(model.parameters(), &mut expected, UPDATE).unwrap();
            let outcome = ours.step(&device, &gradients(&device), UPDATE).unwrap();
            match (&outcome, &expected) {
                (StepOutcome::Stepped { grad_norm: a }, StepOutcome::Stepped { grad_norm: b }) => {
                    assert!(
                        (a - b).abs() < 1e-4 * b && *b > UPDATE.grad_clip,
                        "step {step}: {a} against {b}"
                    );
                }
                other => panic!("step {step}: {other:?}"),
            }
        }
        assert_eq!(ours.steps(), 4);
        for ((name, a), (_, b)) in
            device.weights().split(model.config()).unwrap().iter().zip(model.parameters())
        {
            let apart = (a - b.as_tensor()).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap();
            // Four steps of 0.01, of which Adam takes the sign and Muon the direction: a difference in the
            // gradient shows at once.
            assert!(apart.to_scalar::<f32>().unwrap() < 2e-4, "{method:?}, {name}: {apart}");
        }
    }
}

#[test]
fn clipping_is_by_the_norm_that_is_given() {
    let norm_of_momentum = |grad_clip: f64| {
        let (_, device) = setup(ComputeDtype::F32);
        let mut optimizer = DeviceOptimizer::new(Method::Adamw, &config(), &device, None).unwrap();
        optimizer.step(&device, &gradients(&device), UpdateConfig { lr: 0.0, grad_clip }).unwrap();
        let squares = optimizer.moments.iter().map(|of| of.first.sqr().unwrap().sum_all().unwrap());
        squares.map(|sum| f64::from(sum.to_scalar::<f32>().unwrap())).sum::<f64>().sqrt()
    };
    // m = (1 − .9) g after the first step.
    for grad_clip in [0.01, 0.02] {
        assert!((norm_of_momentum(grad_clip) - 0.1 * grad_clip).abs() < 1e-6 * grad_clip);
    }
    assert!(norm_of_momentum(0.0) > 0.002, "without a limit there is no clipping");
}

#[test]
fn saved_state_continues_to_the_same_bits_and_has_the_file_of_the_cpu_backend() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for method in [Method::Adamw, Method::Muon] {
        let (model, device) = setup(ComputeDtype::Bf16);
        let masters = Parameters::masters_of(&model, device.compute()).unwrap();
        let mut straight = DeviceOptimizer::new(method, &config(), &device, Some(masters)).unwrap();
        straight.step(&device, &gradients(&device), UPDATE).unwrap();
        straight.save(&path("ours")).unwrap();
        straight.write_to(&model).unwrap();

        let theirs = Optimizer::load(method, &config(), model.parameters(), &path("ours")).unwrap();
        assert_eq!(theirs.steps(), 1);
        theirs.save(&path("theirs")).unwrap();
        assert!(std::fs::read(path("ours")).unwrap() == std::fs::read(path("theirs")).unwrap(), "{method:?}");

        let resumed = DeviceModel::new(&model, device.compute()).unwrap();
        assert_eq!(flat(resumed.weights()), flat(device.weights()), "weights are the rounded masters");
        let masters = Parameters::masters_of(&model, resumed.compute()).unwrap();
        let again = DeviceOptimizer::new(method, &config(), &resumed, Some(masters)).unwrap();
        let mut again = again.load(&path("theirs")).unwrap();
        straight.step(&device, &gradients(&device), UPDATE).unwrap();
        again.step(&resumed, &gradients(&resumed), UPDATE).unwrap();
        assert_eq!(again.steps(), 2);
        assert_eq!(flat(masters_of(&again)), flat(masters_of(&straight)), "{method:?}");
    }
    // The last file is Muon's, which has one moment of a matrix.
    let (_, device) = setup(ComputeDtype::F32);
    let other = DeviceOptimizer::new(Method::Adamw, &config(), &device, None).unwrap();
    let error = other.load(&path("ours")).unwrap_err().to_string();
    assert!(error.contains("`second.model.layers.0.self_attn.q_proj.weight` is not"), "{error}");
}

#[test]
fn a_restart_keeps_the_weights_and_forgets_the_moments() {
    let (_, device) = setup(ComputeDtype::F32);
    let mut optimizer = DeviceOptimizer::new(Method::Muon, &config(), &device, None).unwrap();
    optimizer.step(&device, &gradients(&device), UPDATE).unwrap();
    let before = flat(device.weights());
    optimizer.restart(Method::Adamw).unwrap();
    assert_eq!((optimizer.steps(), flat(device.weights())), (0, before.clone()));
    // The first step of AdamW is the learning rate long in each direction; it updates the model's own
    // weights.
    optimizer.step(&device, &gradients(&device), UPDATE).unwrap();
    let largest = before.iter().zip(flat(device.weights())).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!((0.0099..0.0103).contains(&largest), "{largest}");
}

#[test]
fn masters_keep_what_bf16_drops() {
    for method in [Method::Adamw, Method::Muon] {
        let (model, device) = setup(ComputeDtype::Bf16);
        let masters = Parameters::masters_of(&model, device.compute()).unwrap();
        let mut optimizer = DeviceOptimizer::new(method, &config(), &device, Some(masters)).unwrap();
        let gradients = gradients(&device);
        let gain = |parameters: &Parameters| flat(parameters)[0];
        // A gain of 1 moves by 1e-4 a step; the next bf16 below 1 is 1 − 2⁻⁸ = 0.996.
        assert_eq!(gain(masters_of(&optimizer)), 1.0);
        for _ in 0..5 {
            optimizer.step(&device, &gradients, UpdateConfig { lr: 1e-4, ..UPDATE }).unwrap();
        }
        assert!((gain(masters_of(&optimizer)) - 1.0).abs() > 4e-4);
        assert_eq!(gain(device.weights()), 1.0);
    }
}

#[test]
fn a_gradient_that_is_not_finite_changes_nothing() {
    let (_, device) = setup(ComputeDtype::F32);
    let before = flat(device.weights());
    let mut optimizer = DeviceOptimizer::new(Method::Adamw, &config(), &device, None).unwrap();
    let gradients = device.weights().zeros_like().unwrap();
    let bad = gradients.named().nth(3).unwrap();
    bad.1.slice_set(&(bad.1.ones_like().unwrap() * f64::NAN).unwrap(), 0, 0).unwrap();
    let outcome = optimizer.step(&device, &gradients, UPDATE).unwrap();
    assert_eq!(outcome, StepOutcome::NonFinite { parameter: bad.0.to_owned() });
    assert_eq!((optimizer.steps(), flat(device.weights())), (0, before));
}
