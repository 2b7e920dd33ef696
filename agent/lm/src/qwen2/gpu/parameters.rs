//! One tensor for each parameter of a model, on a device: weights, gradients or moments.
//!
//! Matrices with the same input are joined (q, k, v; gate, up): one matrix product, one gradient and one
//! parameter for the optimizer. [`Parameters::write_to`] splits them for a checkpoint.

use candle_core::{DType, Device, Tensor};
use webshop_products::Seed;

use crate::purpose;

use crate::device::compute::Compute;
use crate::error::LmError;
use crate::qwen2::{Qwen2, Qwen2Config, normal, parameter_shapes};

/// The parameters of a layer in order: (joined name, names in the checkpoint).
const LAYER: [(&str, &[&str]); 7] = [
    ("input_layernorm.weight", &["input_layernorm.weight"]),
    (
        "self_attn.qkv_proj.weight",
        &["self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"],
    ),
    ("self_attn.qkv_proj.bias", &["self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"]),
    ("self_attn.o_proj.weight", &["self_attn.o_proj.weight"]),
    ("post_attention_layernorm.weight", &["post_attention_layernorm.weight"]),
    ("mlp.gate_up_proj.weight", &["mlp.gate_proj.weight", "mlp.up_proj.weight"]),
    ("mlp.down_proj.weight", &["mlp.down_proj.weight"]),
];
const EMBEDDING: &str = "model.embed_tokens.weight";
const NORM: &str = "model.norm.weight";
const HEAD: &str = "lm_head.weight";
/// Number of random values that [`Parameters::for_measurement`] repeats.
const BLOCK: usize = 1 << 20;

/// One tensor for each parameter: those of the layers, the embedding, the last norm, and the head if it is
/// not tied.
#[derive(Clone, Debug)]
pub struct Parameters {
    tensors: Vec<(String, Tensor)>,
    n_layers: usize,
}

/// The parameters of one layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layer<'a> {
    pub(super) input_norm: &'a Tensor,
    pub(super) qkv: &'a Tensor,
    pub(super) qkv_bias: &'a Tensor,
    pub(super) o_proj: &'a Tensor,
    pub(super) post_norm: &'a Tensor,
    pub(super) gate_up: &'a Tensor,
    pub(super) down_proj: &'a Tensor,
}

/// (joined name, names in the checkpoint) of every parameter of a model, in order.
fn names(config: &Qwen2Config) -> Vec<(String, Vec<String>)> {
    let in_layer = |layer: usize, name: &str| format!("model.layers.{layer}.{name}");
    let mut names: Vec<(String, Vec<String>)> = (0..config.num_hidden_layers)
        .flat_map(|layer| LAYER.iter().map(move |(joined, parts)| (layer, *joined, *parts)))
        .map(|(layer, joined, parts)| {
            (in_layer(layer, joined), parts.iter().map(|part| in_layer(layer, part)).collect())
        })
        .collect();
    let rest = [EMBEDDING, NORM].into_iter().chain((!config.tie_word_embeddings).then_some(HEAD));
    names.extend(rest.map(|name| (name.to_owned(), vec![name.to_owned()])));
    names
}

impl Parameters {
    /// The weights of `model` in `dtype` on `device`.
    pub(super) fn of(model: &Qwen2, dtype: DType, device: &Device) -> Result<Self, LmError> {
        let tensors = names(model.config()).into_iter().map(|(joined, parts)| {
            let parts: Vec<Tensor> = parts.iter().map(|part| model.parameter(part)).collect();
            // On one device a conversion to the same dtype would share the memory.
            let tensor = Tensor::cat(&parts, 0)?.to_device(device)?.to_dtype(dtype)?.copy()?;
            Ok((joined, tensor))
        });
        let tensors = tensors.collect::<Result<_, LmError>>()?;
        Ok(Self { tensors, n_layers: model.config().num_hidden_layers })
    }

    /// See [`DeviceModel::for_measurement`](super::DeviceModel::for_measurement). Repeats the same million
    /// normal numbers, with another start in each parameter.
    pub(super) fn for_measurement(
        config: &Qwen2Config,
        dtype: DType,
        device: &Device,
    ) -> Result<Self, LmError> {
        let numbers = normal(
            &mut Seed(0).rng(purpose::INIT, &[]),
            BLOCK,
            config.initializer_range.max(f64::MIN_POSITIVE),
        );
        let block = Tensor::from_vec(numbers, BLOCK, device)?.to_dtype(dtype)?;
        let shapes = parameter_shapes(config);
        let shape_of = |name: &str| {
            let found = shapes.iter().find(|(other, _)| other == name);
            &found.expect("joined parameters are made of the model's").1
        };
        let tensors = names(config).into_iter().enumerate().map(|(idx, (joined, parts))| {
            let mut shape = shape_of(&parts[0]).clone();
            shape[0] = parts.iter().map(|part| shape_of(part)[0]).sum();
            let n: usize = shape.iter().product();
            let start = idx * 7919 % BLOCK;
            let turned =
                Tensor::cat(&[block.narrow(0, start, BLOCK - start)?, block.narrow(0, 0, start)?], 0)?;
            let values = if joined.contains("norm") {
                Tensor::ones(n, dtype, device)?
            } else {
                Tensor::cat(&vec![turned; n.div_ceil(BLOCK)], 0)?.narrow(0, 0, n)?
            };
            Ok((joined, values.reshape(shape)?.copy()?))
        });
        Ok(Self { tensors: tensors.collect::<Result<_, LmError>>()?, n_layers: config.num_hidden_layers })
    }

    /// Zeros of the same shapes in f32: gradients or moments.
    pub fn zeros_like(&self) -> Result<Self, LmError> {
        let zeros = self.tensors.iter().map(|(name, tensor)| {
            Ok((name.clone(), Tensor::zeros(tensor.shape(), DType::F32, tensor.device())?))
        });
        Ok(Self { tensors: zeros.collect::<Result<_, LmError>>()?, n_layers: self.n_layers })
    }

    /// The weights of `model` in f32 on the device of `compute`: master weights for an optimizer.
    pub fn masters_of(model: &Qwen2, compute: &Compute) -> Result<Self, LmError> {
        Self::of(model, DType::F32, &compute.device)
    }

    /// A copy of the values in f32.
    pub fn widened(&self) -> Result<Self, LmError> {
        let tensors = self
            .tensors
            .iter()
            .map(|(name, tensor)| Ok((name.clone(), tensor.to_dtype(DType::F32)?.copy()?)));
        Ok(Self { tensors: tensors.collect::<Result<_, LmError>>()?, n_layers: self.n_layers })
    }

    /// Sets every value to zero.
    pub fn clear(&self) -> Result<(), LmError> {
        Ok(self.tensors.iter().try_for_each(|(_, tensor)| tensor.zero_set())?)
    }

    /// The parameters with their names, in an order that depends on the configuration alone.
    pub fn named(&self) -> impl ExactSizeIterator<Item = (&str, &Tensor)> {
        self.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// The parameter at a place in the order of [`named`](Self::named).
    pub(super) fn at(&self, place: usize) -> &Tensor {
        &self.tensors[place].1
    }

    pub(super) fn layer(&self, idx: usize) -> Layer<'_> {
        let at = |i: usize| self.at(idx * LAYER.len() + i);
        Layer {
            input_norm: at(0),
            qkv: at(1),
            qkv_bias: at(2),
            o_proj: at(3),
            post_norm: at(4),
            gate_up: at(5),
            down_proj: at(6),
        }
    }

    pub(super) fn embedding(&self) -> &Tensor {
        self.at(self.n_layers * LAYER.len())
    }

    pub(super) fn norm(&self) -> &Tensor {
        self.at(self.n_layers * LAYER.len() + 1)
    }

    /// The matrix of the head; the embedding if they are tied.
    pub(super) fn head(&self) -> &Tensor {
        let at = self.n_layers * LAYER.len() + 2;
        self.tensors.get(at).map_or_else(|| self.embedding(), |(_, tensor)| tensor)
    }

    /// The parts of each joined parameter, in the order of [`named`](Self::named): (name in the checkpoint,
    /// number of rows), from the first row down.
    pub fn parts(config: &Qwen2Config) -> Vec<Vec<(String, usize)>> {
        let shapes = parameter_shapes(config);
        let with_rows = |part: String| {
            let found = shapes.binary_search_by(|(name, _)| name.cmp(&part));
            let n_rows = shapes[found.expect("joined parameters are made of the model's")].1[0];
            (part, n_rows)
        };
        names(config).into_iter().map(|(_, parts)| parts.into_iter().map(with_rows).collect()).collect()
    }

    /// The parameters under their checkpoint names, split, in f32 on the CPU.
    pub fn split(&self, config: &Qwen2Config) -> Result<Vec<(String, Tensor)>, LmError> {
        let mut split = Vec::new();
        for (parts, (_, joined)) in Self::parts(config).into_iter().zip(&self.tensors) {
            let joined = joined.to_device(&Device::Cpu)?.to_dtype(DType::F32)?;
            let mut start = 0;
            for (part, n_rows) in parts {
                split.push((part, joined.narrow(0, start, n_rows)?.contiguous()?));
                start += n_rows;
            }
        }
        split.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(split)
    }

    /// Copies the values into the variables of `model`, which must have the same shape.
    pub fn write_to(&self, model: &Qwen2) -> Result<(), LmError> {
        for (name, tensor) in self.split(model.config())? {
            model.parameters[model.position(&name)].1.set(&tensor)?;
        }
        Ok(())
    }
}
