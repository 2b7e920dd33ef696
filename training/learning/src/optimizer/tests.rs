//! Tests of the optimizers and the schedule.

use super::*;

fn parameter(name: &str, values: &[f32]) -> (String, Var) {
    (name.into(), Var::from_slice(values, values.len(), &Device::Cpu).unwrap())
}

fn values(parameter: &(String, Var)) -> Vec<f32> {
    parameter.1.to_vec1().unwrap()
}

fn config(weight_decay: f64) -> OptimizerConfig {
    OptimizerConfig { weight_decay, ..OptimizerConfig::default() }
}

/// Without clipping.
fn at(lr: f64) -> UpdateConfig {
    UpdateConfig { lr, grad_clip: 0.0 }
}

#[track_caller]
fn near(a: f32, b: f32) {
    assert!((a - b).abs() < 1e-6, "{a} is not {b}");
}

#[test]
fn two_steps_follow_the_equations() {
    let parameters = [parameter("q_proj.weight", &[1.0])];
    let mut adam = Optimizer::new(Method::Adamw, &config(0.5), &parameters);
    // t = 1: m̂ = g = .5, √v̂ = .5, so the step is lr = .1; decay takes .1 · .5 · 1 = .05. 1 − .05 − .1 =
    // .85
    adam.step(&parameters, &mut [vec![0.5]], at(0.1)).unwrap();
    near(values(&parameters[0])[0], 0.85);
    // t = 2, g = −1: m = .9 · .05 − .1 = −.055, m̂ = −.055 / .19 = −.2894737; v = .999 · .00025 + .001 =
    // .00124975, v̂ = .00124975 / .001999 = .6251876, √v̂ = .7906880; step = +.1 · .2894737 / .7906880 =
    // .0366104; decay = .05 · .85 = .0425. .85 − .0425 + .0366104 = .8441104
    adam.step(&parameters, &mut [vec![-1.0]], at(0.1)).unwrap();
    near(values(&parameters[0])[0], 0.844_110_4);
    assert_eq!(adam.steps(), 2);
}

#[test]
fn norms_and_biases_do_not_decay() {
    let parameters = [parameter("input_layernorm.weight", &[1.0]), parameter("q_proj.bias", &[1.0])];
    let mut adam = Optimizer::new(Method::Adamw, &config(0.5), &parameters);
    adam.step(&parameters, &mut [vec![0.0], vec![0.0]], at(0.1)).unwrap();
    assert_eq!((values(&parameters[0]), values(&parameters[1])), (vec![1.0], vec![1.0]));
    assert!(is_decayed("model.embed_tokens.weight") && !is_decayed("model.norm.weight"));
}

#[test]
fn clipping_is_by_the_norm_over_all_parameters() {
    let parameters = [parameter("a", &[0.0]), parameter("b", &[0.0])];
    let mut gradients = [vec![3.0], vec![4.0]];
    let mut adam = Optimizer::new(Method::Adamw, &config(0.0), &parameters);
    let outcome = adam.step(&parameters, &mut gradients, UpdateConfig { lr: 0.1, grad_clip: 1.0 }).unwrap();
    // √(9 + 16) = 5, so both shrink to a fifth.
    assert_eq!(outcome, StepOutcome::Stepped { grad_norm: 5.0 });
    near(gradients[0][0], 0.6);
    near(gradients[1][0], 0.8);
}

#[test]
fn a_gradient_that_is_not_finite_changes_nothing() {
    let parameters = [parameter("a", &[1.0]), parameter("b", &[1.0])];
    let mut adam = Optimizer::new(Method::Adamw, &config(0.1), &parameters);
    adam.step(&parameters, &mut [vec![1.0], vec![1.0]], at(0.1)).unwrap();
    let (before, weights) = (adam.clone(), values(&parameters[0]));
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let outcome = adam.step(&parameters, &mut [vec![1.0], vec![bad]], at(0.1)).unwrap();
        assert_eq!(outcome, StepOutcome::NonFinite { parameter: "b".into() });
    }
    assert_eq!((adam, values(&parameters[0])), (before, weights));
}

#[test]
fn another_model_is_refused() {
    let parameters = [parameter("a", &[1.0])];
    let mut adam = Optimizer::new(Method::Adamw, &config(0.0), &parameters);
    let error = adam.step(&[parameter("b", &[1.0])], &mut [vec![1.0]], at(0.1)).unwrap_err();
    assert_eq!(error.to_string(), "parameter `b`: does not match parameter `a` of the optimizer");
    let error = adam.step(&parameters, &mut [vec![1.0, 2.0]], at(0.1)).unwrap_err();
    assert_eq!(error.to_string(), "parameter `a`: has 1 values and 2 gradients, the optimizer 1");
}

#[test]
fn saved_state_continues_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("optimizer.safetensors");
    let parameters = [parameter("a", &[0.3, -0.7]), parameter("b.bias", &[0.1])];
    let mut straight = Optimizer::new(Method::Adamw, &config(0.01), &parameters);
    straight.step(&parameters, &mut [vec![0.1, 0.2], vec![0.3]], at(0.01)).unwrap();
    straight.save(&path).unwrap();
    let mut loaded = Optimizer::load(Method::Adamw, &config(0.01), &parameters, &path).unwrap();
    assert_eq!(loaded, straight);
    let copies = [parameter("a", &values(&parameters[0])), parameter("b.bias", &values(&parameters[1]))];
    for (optimizer, parameters) in [(&mut straight, &parameters), (&mut loaded, &copies)] {
        optimizer.step(parameters, &mut [vec![-0.2, 0.1], vec![0.4]], at(0.01)).unwrap();
    }
    assert_eq!(loaded, straight);
    for (copy, parameter) in copies.iter().zip(&parameters) {
        assert_eq!(values(copy), values(parameter));
    }

    let larger = [parameter("a", &[0.3, -0.7, 1.0]), parameter("b.bias", &[0.1])];
    let error = Optimizer::load(Method::Adamw, &config(0.01), &larger, &path).unwrap_err();
    assert!(error.to_string().ends_with("`first.a` is not 3 values of f32"), "{error}");
    std::fs::write(&path, "not tensors").unwrap();
    assert!(Optimizer::load(Method::Adamw, &config(0.01), &parameters, &path).is_err());
}

#[test]
fn muon_updates_matrices_and_adam_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("optimizer.safetensors");
    let matrix = Var::from_tensor(&Tensor::zeros((2, 2), candle_core::DType::F32, &Device::Cpu).unwrap());
    let parameters = [("q_proj.weight".to_string(), matrix.unwrap()), parameter("q_proj.bias", &[0.0])];
    let mut optimizer = Optimizer::new(Method::Muon, &config(0.0), &parameters);
    optimizer.step(&parameters, &mut [vec![3.0, 0.0, 0.0, 4.0], vec![2.0]], at(0.1)).unwrap();
    let moved = parameters[0].1.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    // Both directions by about lr · .2 · √2 = .028, whatever their gradients; Adam's first step is lr.
    assert!(moved[0] < -0.019 && moved[0] > -0.035 && moved[3] < -0.019 && moved[3] > -0.035, "{moved:?}");
    near(values(&parameters[1])[0], -0.1);

    optimizer.save(&path).unwrap();
    let loaded = Optimizer::load(Method::Muon, &config(0.0), &parameters, &path).unwrap();
    assert_eq!(loaded, optimizer);
    assert!(Optimizer::load(Method::Adamw, &config(0.0), &parameters, &path).is_err());
}

#[test]
fn both_methods_decay_matrices_by_the_rate_times_the_decay() {
    for method in [Method::Muon, Method::Adamw] {
        let matrix = Var::from_tensor(&Tensor::full(2.0_f32, (2, 2), &Device::Cpu).unwrap()).unwrap();
        let parameters = [("q_proj.weight".to_string(), matrix), parameter("q_proj.bias", &[2.0])];
        let mut optimizer = Optimizer::new(method, &config(0.5), &parameters);
        optimizer.step(&parameters, &mut [vec![0.0; 4], vec![0.0]], at(0.1)).unwrap();
        let decayed = parameters[0].1.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        decayed.into_iter().for_each(|value| near(value, 2.0 * (1.0 - 0.1 * 0.5)));
        near(values(&parameters[1])[0], 2.0);
    }
}

#[test]
fn the_learning_rate_rises_then_stays_or_falls() {
    let constant = Schedule { peak: 1.0, warmup: 4, decay: Decay::None, total: 8 };
    let rates: Vec<f64> = (0..8).map(|step| constant.lr(step, 0.0)).collect();
    assert_eq!(rates, [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0]);
    let linear = Schedule { decay: Decay::Linear, ..constant };
    let rates: Vec<f64> = (0..9).map(|step| linear.lr(step, 0.0)).collect();
    assert_eq!(rates, [0.25, 0.5, 0.75, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0]);
    let cold = Schedule { warmup: 0, ..constant };
    assert_eq!(cold.lr(0, 0.0), 1.0);
    // Half of the steps are done, and three quarters of another budget.
    assert_eq!((linear.lr(6, 0.75), linear.lr(6, 0.25)), (0.25, 0.5));
}
