//! Models, inputs and cases shared by the tests of both backends.

use candle_core::{Device, Tensor, Var};
use webshop_products::Seed;

use crate::engine::{Engine, EngineCache};
use crate::error::LmError;
use crate::qwen2::{
    HiddenGradient, LaneTokens, OutputGradients, PackedTokens, Qwen2, Qwen2Config, TokenStats,
};

/// (query heads, key heads, head size if not hidden / heads, tied)
pub(crate) type Shape = (usize, usize, Option<usize>, bool);

/// Vocabulary of the models of [`tiny`].
const VOCAB_SIZE: usize = 37;
/// Number of positions of the models of [`tiny`].
const N_POSITIONS: usize = 80;

/// Two layers with random weights. All sizes are divisible by four, as the CUDA kernels require.
pub(crate) fn tiny((n_heads, n_kv_heads, head_dim, tied): Shape) -> Qwen2 {
    let config = Qwen2Config {
        hidden_size: 24,
        intermediate_size: 20,
        num_hidden_layers: 2,
        num_attention_heads: n_heads,
        num_key_value_heads: Some(n_kv_heads),
        head_dim,
        max_position_embeddings: N_POSITIONS,
        tie_word_embeddings: tied,
        initializer_range: 0.3,
        ..Qwen2Config::small(VOCAB_SIZE)
    };
    let model = Qwen2::random(&config, Seed(3)).unwrap();
    // Zero biases and unit gains would hide an error in either.
    for (name, var) in model.parameters().iter().filter(|(_, var)| var.rank() == 1) {
        let values = (0..var.elem_count()).map(|i| ((i * 5 + name.len()) % 11) as f32 * 0.1 + 0.2);
        var.set(&Tensor::from_iter(values, &Device::Cpu).unwrap()).unwrap();
    }
    model
}

/// Token ids for the models of [`tiny`].
pub(crate) fn ids(count: usize, salt: usize) -> Vec<u32> {
    (0..count).map(|i| ((i * i + 7 * i + salt * 11) % VOCAB_SIZE) as u32).collect()
}

#[track_caller]
pub(crate) fn assert_close(a: &[f32], b: &[f32], tolerance: f32, what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= tolerance, "{what}: element {i} is {a} against {b}");
    }
}

/// The input of a scoring pass.
pub(crate) struct Scored {
    ids: Vec<u32>,
    lengths: [usize; 2],
    pub(crate) positions: Vec<u32>,
    pub(crate) targets: Vec<u32>,
}

impl Scored {
    pub(crate) fn tokens(&self) -> PackedTokens<'_> {
        PackedTokens { ids: &self.ids, lengths: &self.lengths, prefix_of: &[] }
    }
}

/// Two sequences, scored at most of their positions, out of order and one position twice.
pub(crate) fn scored() -> Scored {
    let ids = ids(31, 3);
    let positions: Vec<u32> = (0..30).rev().filter(|&p| p != 19 && p != 4).chain([7]).collect();
    let targets = positions.iter().map(|&p| ids[p as usize + 1]).collect();
    Scored { ids, lengths: [20, 11], positions, targets }
}

/// The gradients of a loss with respect to `n` log-probabilities, all different.
pub(crate) fn d_log_prob(n: usize) -> Vec<f32> {
    (0..n).map(|i| 0.05 + 0.002 * i as f32).collect()
}

/// A loss with the gradients [`d_log_prob`].
pub(crate) fn loss(log_prob: &Tensor) -> Tensor {
    let n = log_prob.elem_count();
    let weights = Tensor::from_vec(d_log_prob(n), n, &Device::Cpu).unwrap();
    (log_prob * weights).unwrap().sum_all().unwrap()
}

/// The gradients of [`loss`] and of a weighted sum of the hidden states at three scored positions, one of them twice.
pub(crate) fn output_gradients(n: usize, width: usize) -> OutputGradients {
    let rows = vec![2, 0, 5, 2];
    let values = (0..rows.len() * width).map(|i| 0.03 * ((i * i) % 7) as f32 - 0.08).collect();
    OutputGradients { d_log_prob: d_log_prob(n), d_hidden: Some(HiddenGradient { rows, values }) }
}

/// Compares the gradient of a parameter with finite differences of the loss, along a direction of mixed
/// signs, which involves all elements at once. `var` has its old values afterwards.
#[track_caller]
pub(crate) fn check_slope(what: &str, var: &Var, gradient: &[f32], step: f32, loss: impl Fn() -> f64) {
    let values = var.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let signs: Vec<f32> = (0..values.len()).map(|i| if i * i % 7 < 3 { 1.0 } else { -1.0 }).collect();
    let at = |step: f32| {
        let moved: Vec<f32> = values.iter().zip(&signs).map(|(v, s)| v + step * s).collect();
        var.set(&Tensor::from_vec(moved, var.shape(), &Device::Cpu).unwrap()).unwrap();
        loss()
    };
    // Two step widths cancel the third-order error (Richardson).
    let coarse = (at(2.0 * step) - at(-2.0 * step)) / (4.0 * f64::from(step));
    let fine = (at(step) - at(-step)) / (2.0 * f64::from(step));
    let numeric = (4.0 * fine - coarse) / 3.0;
    var.set(&Tensor::from_slice(&values, var.shape(), &Device::Cpu).unwrap()).unwrap();
    let slope: f64 = gradient.iter().zip(&signs).map(|(g, s)| f64::from(g * s)).sum();
    let error = (slope - numeric).abs();
    assert!(error < 2e-3 * numeric.abs().max(0.3), "{what}: {slope} against {numeric}");
}

/// Copies, truncates and clears lanes. Logits of the same context, appended in other chunks, must agree
/// within `tolerance`.
pub(crate) fn check_lanes(engine: &Engine, tolerance: f32) {
    let mut cache = engine.cache(2, N_POSITIONS).unwrap();
    let ids = ids(40, 5);
    let append = |cache: &mut EngineCache, lane, ids| {
        engine.decode(cache, &[LaneTokens { lane, ids }]).unwrap().row(0).to_vec()
    };
    append(&mut cache, 0, &ids[..30]);
    match &mut cache {
        EngineCache::Cpu(cache) => cache.copy_lane(0, 1),
        EngineCache::Device(cache) => cache.copy_lane(0, 1).unwrap(),
    }
    let expected = append(&mut cache, 0, &ids[30..]);
    assert_eq!(append(&mut cache, 1, &ids[30..]), expected);
    cache.truncate_lane(0, 12);
    assert_eq!(cache.len(0), 12);
    assert_close(&append(&mut cache, 0, &ids[12..]), &expected, tolerance, "truncated");
    cache.truncate_lane(1, 0);
    assert_eq!(cache.len(1), 0);
    assert_close(&append(&mut cache, 1, &ids), &expected, tolerance, "cleared");
}

/// Invalid calls of `decode` fail and leave the cache unchanged. `other` has another number of key heads.
pub(crate) fn check_invalid_decoding(engine: &Engine, other: &Engine) {
    let mut cache = engine.cache(2, 10).unwrap();
    engine.decode(&mut cache, &[LaneTokens { lane: 0, ids: &[1, 2] }]).unwrap();
    let good = LaneTokens { lane: 1, ids: &[1] };
    for (bad, named) in [
        (LaneTokens { lane: 2, ids: &[1] }, "lane 2"),
        (LaneTokens { lane: 1, ids: &[1] }, "twice"),
        (LaneTokens { lane: 0, ids: &[] }, "no new tokens"),
        (LaneTokens { lane: 0, ids: &[37] }, "token 37"),
        (LaneTokens { lane: 0, ids: &[1; 9] }, "9 more"),
    ] {
        let message = engine.decode(&mut cache, &[good, bad]).unwrap_err().to_string();
        assert!(message.contains(named), "{message}");
        assert_eq!((cache.len(0), cache.len(1)), (2, 0));
    }
    let mut of_other = other.cache(2, 10).unwrap();
    assert!(engine.decode(&mut of_other, &[good]).unwrap_err().to_string().contains("another shape"));
}

/// `score` must fail for invalid ids, lengths, positions and targets.
pub(crate) fn check_invalid_scoring(
    score: impl Fn(&PackedTokens, &[u32], &[u32]) -> Result<TokenStats, LmError>,
) {
    for (ids, lengths, positions, targets) in [
        (&[1, 2][..], &[1][..], &[0][..], &[1][..]),
        (&[1, 2], &[2, 0], &[0], &[1]),
        (&[1, 37], &[2], &[0], &[1]),
        (&[1, 2], &[2], &[2], &[1]),
        (&[1, 2], &[2], &[0], &[37]),
        (&[1, 2], &[2], &[0], &[]),
        (&[1; N_POSITIONS + 1], &[N_POSITIONS + 1], &[0], &[1]),
    ] {
        let tokens = PackedTokens { ids, lengths, prefix_of: &[] };
        assert!(score(&tokens, positions, targets).is_err(), "{ids:?} {lengths:?} {positions:?} {targets:?}");
    }
}
