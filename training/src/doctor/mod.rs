//! Before a run: whether it fits on this machine, and what it will take.
//!
//! [`examine`] opens what the run would open, counts the bytes of its two peaks ([`Need`]), and, if they are there, tries
//! a few of its steps on the real model and scales them to the whole ([`Forecast`]). Trips are taken to be as long as
//! demonstrations, which is what a model that has learned from them makes; one that has not talks longer, and pays for it
//! where it is evaluated first. Nothing is written, and no weight that is kept is moved.

mod memory;
mod plan;
mod probe;

pub use memory::{Need, available_bytes};
pub use plan::{Forecast, Stage as ForecastStage};

use crate::actor::Actor;
use crate::clock::Clock;
use crate::config::Config;
use crate::error::Result;
use crate::ground::Ground;

/// What was found out.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// Parameters of the model, and how many of them learn; an adapter's are its own.
    pub n_parameters: usize,
    /// See `n_parameters`.
    pub n_learnable: usize,
    /// Bytes of the run's peaks.
    pub need: Need,
    /// Bytes that there are for them, where the system tells.
    pub available: Option<u64>,
    /// What the run takes; `None` where it does not fit.
    pub forecast: Option<Forecast>,
}

impl Diagnosis {
    /// Whether the run fits, as far as that is known.
    pub fn fits(&self) -> bool {
        self.available.is_none_or(|available| self.need.peak() <= available)
    }
}

/// Examines the run of `config` on this machine.
pub fn examine(config: &Config) -> Result<Diagnosis> {
    let clock = Clock::resume(0.0);
    let ground = Ground::open(config)?;
    let shops = memory::resident_bytes();
    let actor = Actor::begin(config, &ground)?;
    let demonstrations = plan::demonstrations(config, &ground, &actor)?;
    let opening = clock.seconds();
    let need = Need::of(config, &actor.model, &demonstrations, shops.unwrap_or_default());
    let elements = |parameters: &[(String, candle_core::Var)]| -> usize {
        parameters.iter().map(|(_, var)| var.elem_count()).sum()
    };
    let mut diagnosis = Diagnosis {
        n_parameters: elements(actor.model.parameters()),
        n_learnable: elements(actor.model.learnable()),
        need,
        // What this process holds by now is what the run will hold instead.
        available: available_bytes().map(|bytes| bytes + memory::resident_bytes().unwrap_or_default()),
        forecast: None,
    };
    if diagnosis.fits() {
        diagnosis.forecast = Some(plan::forecast(config, &ground, &actor, &demonstrations, opening)?);
    }
    Ok(diagnosis)
}
