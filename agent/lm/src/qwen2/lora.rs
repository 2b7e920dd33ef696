//! Models with a LoRA adapter: they compute with `W' = W + s · B A`.
//!
//! [`Qwen2::adapted`] shares the base weights, so a policy and its reference model need one set of weights
//! and at most two adapters. A matrix W' exists only while a pass or the packing of a decoder needs it, one
//! layer at a time. The gradient of W' is computed as without an adapter and converted at once to those of A
//! and B.
//!
//! Deviation from "LoRA" (arXiv 2106.09685), which computes `x Aᵀ Bᵀ` beside `x Wᵀ`: computing W' and its
//! gradient takes about half as long again, but generation, which packs W', and training compute the same
//! bits.

use std::sync::Arc;

use candle_core::{Tensor, Var};

use crate::error::LmError;
use crate::lora::{Lora, Matrix};
use crate::qwen2::Qwen2;

/// An adapter and its learnable parameters by name.
#[derive(Debug)]
pub(super) struct Adapter {
    lora: Lora,
    learnable: Vec<(String, Var)>,
}

impl Qwen2 {
    /// Every matrix that an adapter can be added to, in the order of the parameters: all except the
    /// embedding.
    pub fn matrices(&self) -> Vec<Matrix> {
        let matrix = |(name, var): &(String, Var)| match *var.dims() {
            [out, inputs] if name != "model.embed_tokens.weight" => {
                Some(Matrix { parameter: name.clone(), out, inputs })
            }
            _ => None,
        };
        self.parameters.iter().filter_map(matrix).collect()
    }

    /// This model with the adapter `lora` instead of any other. Fails if the adapter belongs to another
    /// shape.
    pub fn adapted(&self, lora: Lora) -> Result<Self, LmError> {
        lora.check(&self.matrices())?;
        let learnable = lora.modules().iter().flat_map(|module| {
            let name = module.parameter.trim_end_matches(".weight");
            [("A", &module.a), ("B", &module.b)]
                .map(|(side, var)| (format!("{name}.lora_{side}.weight"), var.clone()))
        });
        let adapter = Adapter { learnable: learnable.collect(), lora };
        Ok(Self { adapter: Some(Arc::new(adapter)), ..self.clone() })
    }

    /// The adapter, if there is one.
    pub fn adapter(&self) -> Option<&Lora> {
        self.adapter.as_ref().map(|adapter| &adapter.lora)
    }

    /// The model without its adapter, sharing the weights.
    pub fn base(&self) -> Self {
        Self { adapter: None, ..self.clone() }
    }

    /// A model without an adapter whose weights include the additions; the model itself if it has no adapter.
    pub fn merged(self) -> Result<Self, LmError> {
        match self.adapter() {
            Some(_) => {
                let named = self.parameters.iter().enumerate();
                Self::new(
                    &self.config,
                    named.map(|(idx, (name, _))| (name.clone(), self.weight(idx))).collect(),
                )
            }
            None => Ok(self),
        }
    }

    /// The learnable parameters: all parameters, or with an adapter its A and B of each matrix in the order
    /// of the matrices. Gradients have this order.
    pub fn learnable(&self) -> &[(String, Var)] {
        self.adapter.as_ref().map_or(&self.parameters, |adapter| &adapter.learnable)
    }

    /// The values of parameter `idx` including the adapter's addition.
    pub fn weight(&self, idx: usize) -> Tensor {
        let (name, var) = &self.parameters[idx];
        with_addition(self.adapter.as_deref(), name, var)
    }

    /// Converts the gradient of parameter `idx` to those of its learnable parameters, and calls `put` with
    /// each and its index in [`Qwen2::learnable`].
    pub(super) fn put_gradient(
        &self,
        idx: usize,
        gradient: Vec<f32>,
        put: &mut impl FnMut(usize, Vec<f32>),
    ) -> Result<(), LmError> {
        let Some(lora) = self.adapter() else {
            put(idx, gradient);
            return Ok(());
        };
        if let Some((place, module)) = lora.module(&self.parameters[idx].0) {
            let gradient = module.gradient(&gradient)?;
            put(2 * place, gradient.a);
            put(2 * place + 1, gradient.b);
        }
        Ok(())
    }

    /// Whether the parameter or its addition is learnable.
    pub(super) fn learns(&self, name: &str) -> bool {
        self.adapter().is_none_or(|lora| lora.module(name).is_some())
    }
}

/// The values of a parameter including an adapter's addition.
pub(super) fn with_addition(adapter: Option<&Adapter>, name: &str, var: &Var) -> Tensor {
    match adapter.and_then(|adapter| adapter.lora.module(name)) {
        Some((_, module)) => module.added_to(var).expect("`Qwen2::adapted` checked the shapes"),
        None => var.as_detached_tensor(),
    }
}
