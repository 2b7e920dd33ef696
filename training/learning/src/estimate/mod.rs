//! Before a run on the CPU: whether it fits on this machine, and what it will take. What a GPU holds is not counted.
//!
//! [`examine`] opens what the run would open, counts the bytes of its two peaks ([`Need`]), and, if they are there, tries
//! a few of its steps on the real model and scales them to the whole ([`Forecast`]). Trips are taken to be as long as
//! demonstrations, which is what a model that has learned from them makes; one that has not talks longer, and pays for it
//! where it is evaluated first. Nothing is written, and no weight that is kept is moved.

pub mod memory;
pub mod plan;
pub mod probe;


pub use crate::estimate::memory::{Need, available_bytes};
pub use crate::estimate::plan::{Forecast, Stage as ForecastStage};

use crate::model::policy::Actor;
use crate::run::clock::Clock;
use crate::config::{Config, Practice};
use crate::error::{Result, TrainingError};
use crate::data::task_set::Ground;

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
    /// Bytes that this process held at most while it tried the steps: what is counted, and what pages, trips and the
    /// allocator take beside it.
    pub observed: Option<u64>,
    /// What the run takes; `None` where it does not fit.
    pub forecast: Option<Forecast>,
}

impl Diagnosis {
    /// Bytes at the run's peak: as counted, or as observed where that is more.
    pub fn peak(&self) -> u64 {
        self.need.peak().max(self.observed.unwrap_or_default())
    }

    /// Whether the run fits, as far as that is known.
    pub fn fits(&self) -> bool {
        self.available.is_none_or(|available| self.peak() <= available)
    }
}

/// Examines the run of `config` on this machine. One that practises single steps is refused: these are no trips.
pub fn examine(config: &Config) -> Result<Diagnosis> {
    if config.learner.practice == Practice::Steps {
        let problem =
            "must be \"trips\" here: what single steps take is not known before they are tried".into();
        return Err(TrainingError::InvalidValue { key: "learner.practice".into(), problem });
    }
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
        observed: None,
        forecast: None,
    };
    if diagnosis.fits() {
        diagnosis.forecast = Some(plan::forecast(config, &ground, &actor, &demonstrations, opening)?);
        diagnosis.observed = memory::peak_bytes();
    }
    Ok(diagnosis)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(more: &[&str]) -> Config {
        let tiny = r#"
            catalog = { size = 30, practice_shops = 1, practice_products = 10 }
            warm_start = { exercise_steps = 5, steps = 7, batch_episodes = 4 }
            value = { goals = 6, samples = 2 }
            learner = { steps = 3, batch_episodes = 8 }
            evaluation = { episodes = 4, every = 2, warm_start_every = 5 }
            model = { hidden_size = 16, layers = 1, heads = 2, kv_heads = 1, head_dim = 8, intermediate_size = 16, vocab_size = 700 }
        "#;
        let more: Vec<String> = more.iter().map(|text| text.to_string()).collect();
        Config::resolve("test", tiny, &more).unwrap()
    }

    #[test]
    fn a_run_is_counted_in_its_parts() {
        let diagnosis = examine(&config(&[])).unwrap();
        let forecast = diagnosis.forecast.as_ref().expect("a tiny model fits anywhere");
        let counts: Vec<(&str, u64)> =
            forecast.stages.iter().map(|stage| (stage.name, stage.count)).collect();
        let expected = [
            ("opening", 1),
            ("trips of the first evaluation", 4),
            ("steps of exercises", 5),
            ("steps of cloning", 7),
            // After steps 5 and 10 of twelve, 2 of three, and at both ends.
            ("trips of later evaluations", 4 * (2 + 1 + 2)),
            ("trips for V*", 12),
            ("learner steps", 3),
        ];
        assert_eq!(counts, expected);
        assert!(forecast.stages.iter().all(|stage| stage.seconds > 0.0), "{forecast:?}");
        let sum: f64 = forecast.stages.iter().map(|stage| stage.seconds * stage.count as f64).sum();
        assert_eq!(forecast.seconds(), sum);
        assert_eq!(diagnosis.n_parameters, diagnosis.n_learnable);
    }

    #[test]
    fn a_run_without_a_warm_start_has_none_in_its_forecast() {
        let diagnosis =
            examine(&config(&["exercise_steps=0", "warm_start.steps=0", "learner.steps=0"])).unwrap();
        let forecast = diagnosis.forecast.expect("a tiny model fits anywhere");
        let names: Vec<&str> = forecast.stages.iter().map(|stage| stage.name).collect();
        assert_eq!(names, ["opening", "trips of the first evaluation", "trips of later evaluations"]);
    }

    #[test]
    fn single_steps_are_no_trips() {
        let steps = config(&["prompt.dialect=\"shop-r1-minimal\"", "learner.practice=\"steps\""]);
        let error = examine(&steps).unwrap_err().to_string();
        assert!(error.contains("`learner.practice` must be \"trips\" here"), "{error}");
    }

    #[test]
    fn what_is_not_there_does_not_fit() {
        let need = Need { weights: 100, reference: 100, ..Need::default() };
        let known = Diagnosis {
            n_parameters: 25,
            n_learnable: 25,
            need,
            available: Some(199),
            observed: None,
            forecast: None,
        };
        assert!(!known.fits());
        assert!(Diagnosis { available: Some(200), ..known.clone() }.fits());
        assert!(!Diagnosis { available: Some(200), observed: Some(201), ..known.clone() }.fits());
        assert!(Diagnosis { available: None, ..known }.fits());
    }
}
