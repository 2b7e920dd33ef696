//! A model with an adapter on it: the weights stay, and what is computed with is `W' = W + s · B A`.
//!
//! [`Qwen2::adapted`] shares the weights of the model it is made of, so that a policy and the reference it began as are
//! one set of weights and two adapters at most. A matrix W' exists while a pass or a decoder's packing needs it, those
//! of one layer at a time. The gradient of W' is made as without an adapter and taken to those of A and B at once, and
//! only these are handed on.
//!
//! Deviation from "LoRA" (arXiv 2106.09685), where `x Aᵀ Bᵀ` is computed beside `x Wᵀ`: making W' and its gradient costs
//! about half as much again as that, and buys that sampling, which packs W', and training compute with the same bits.

use std::sync::Arc;

use candle_core::{Tensor, Var};

use crate::qwen2::Qwen2;
use crate::error::LmError;
use crate::lora::{Lora, Matrix};

/// An adapter and the list of what learns in it.
#[derive(Debug)]
pub(super) struct Adapter {
    lora: Lora,
    learnable: Vec<(String, Var)>,
}

impl Qwen2 {
    /// Every matrix that an adapter can be added to, in the order of the parameters: all except the embedding.
    pub fn matrices(&self) -> Vec<Matrix> {
        let matrix = |(name, var): &(String, Var)| match *var.dims() {
            [out, inputs] if name != "model.embed_tokens.weight" => {
                Some(Matrix { parameter: name.clone(), out, inputs })
            }
            _ => None,
        };
        self.parameters.iter().filter_map(matrix).collect()
    }

    /// This model with `lora` in the place of any adapter it has. Fails if the adapter is for another shape.
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

    /// One set of weights with everything that is added to them; the model itself, if nothing is.
    pub fn merged(self) -> Result<Self, LmError> {
        match self.adapter() {
            Some(_) => {
                let named = self.parameters.iter().enumerate();
                Self::new(&self.config, named.map(|(idx, (name, _))| (name.clone(), self.weight(idx))).collect())
            }
            None => Ok(self),
        }
    }

    /// What learns: all parameters, or those of the adapter alone, A before B, in the order of the matrices they are
    /// for. Gradients come in this order.
    pub fn learnable(&self) -> &[(String, Var)] {
        self.adapter.as_ref().map_or(&self.parameters, |adapter| &adapter.learnable)
    }

    /// The values that are computed with in the place of a parameter: it, with what the adapter adds.
    pub fn weight(&self, idx: usize) -> Tensor {
        let (name, var) = &self.parameters[idx];
        with_addition(self.adapter.as_deref(), name, var)
    }

    /// Hands over the gradient of the parameter at `idx` as those of what learns of it, with their places in
    /// [`Qwen2::learnable`].
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

    /// Whether the parameter of this name learns, itself or by an addition.
    pub(super) fn learns(&self, name: &str) -> bool {
        self.adapter().is_none_or(|lora| lora.module(name).is_some())
    }
}

/// The values of the parameter of this name, with what an adapter adds to it.
pub(super) fn with_addition(adapter: Option<&Adapter>, name: &str, var: &Var) -> Tensor {
    match adapter.and_then(|adapter| adapter.lora.module(name)) {
        Some((_, module)) => {
            module.added_to(var).expect("the shapes were checked when the adapter was put on")
        }
        None => var.as_detached_tensor(),
    }
}
