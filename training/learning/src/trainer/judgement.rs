//! The judgement of a finished run: its policies and the baselines on test goals and on shops of the run's own seed.
//!
//! ```text
//! test     test goals of the evaluated shop; the same for every run
//! fresh    goals of shops that are generated for the run's seed; nothing can have been tuned on them
//!
//! learned                 sampled as in evaluations; the policy that is judged
//! learned (greedy)        temperature 0
//! warm start              the first reference, sampled
//! warm start (greedy)
//! base model              before the warm start, if the run begins with the base model
//! base model (greedy)
//! baselines               as beside every evaluation
//! ```
//!
//! A run without an RL step has no learned policy, and its warm start is judged. All policies of a set run on the same
//! goals, with the same draws. Nothing is trained or selected here. A judgement that was interrupted is made again.

use std::sync::atomic::Ordering;

use webshop_agent::Task;
use webshop_evaluation::{Baseline, JudgedSet, Judgement, Outcomes, baselines};
use webshop_products::Split;

use crate::data::generated_shops::fresh_shops;
use crate::data::held_out::{HeldOutGoal, evaluation_sample, goals_of, tally};
use crate::error::{Result, TrainingError};
use crate::model::network::Network;
use crate::run::atomic::write_json;
use crate::trainer::baselines::baseline_config;
use crate::trainer::experiment::Experiment;
use crate::trainer::{JUDGEMENT_STEP, Trainer};

/// Goals of one set.
struct GoalSample {
    /// The name of the set in `judgement.json`.
    name: &'static str,
    n_shops: usize,
    goals: Vec<HeldOutGoal>,
}

/// A policy of the run and how it decides.
struct Judged<'n> {
    name: String,
    network: &'n Network,
    temperature: f64,
}

/// Judges the run and writes `judgement.json`; does nothing if `judgement.episodes` is 0.
///
/// # Errors
/// [`TrainingError::Interrupted`] if a stop is asked for before the last policy.
pub(super) fn judge(trainer: &Trainer<'_>) -> Result<()> {
    let ex = trainer.ex;
    if ex.config.judgement.episodes == 0 {
        return Ok(());
    }
    let _span = tracing::debug_span!("judgement").entered();
    let samples = goal_samples(ex)?;
    let reference = ex.first_reference()?;
    let base = ex.base_model()?;
    let judged = judged_policies(trainer, &reference, base.as_ref());
    let n_goals: usize = samples.iter().map(|sample| sample.goals.len()).sum();
    ex.observer.begin("judgement", (n_goals * judged.len()) as u64, 0);
    let sets = samples.iter().map(|sample| judge_on(trainer, &judged, sample)).collect::<Result<Vec<_>>>();
    ex.observer.end();
    let judgement = Judgement { sets: sets? };
    for set in &judgement.sets {
        ex.observer.log(&format!("judged on {}: {}", set.title(), set.policies[0].summary));
    }
    write_json(&ex.run.judgement(), &judgement)
}

/// The test goals, and the goals of the fresh shops; sets without goals are left out.
fn goal_samples(ex: &Experiment<'_>) -> Result<Vec<GoalSample>> {
    let config = &ex.config.judgement;
    let test = goals_of(ex.tasks.shop(), Split::Test).collect();
    let test = GoalSample { name: "test", n_shops: 1, goals: evaluation_sample(test, config.episodes) };
    let shops = fresh_shops(ex.seed(), config.shops, ex.config.catalog.auxiliary_products)?;
    // The first shops have one more goal each if the number cannot be divided.
    let n_of =
        |place: usize| config.episodes / shops.len() + usize::from(place < config.episodes % shops.len());
    let fresh = shops
        .iter()
        .enumerate()
        .flat_map(|(place, shop)| evaluation_sample(goals_of(shop, Split::All).collect(), n_of(place)));
    let fresh = GoalSample { name: "fresh", n_shops: shops.len(), goals: fresh.collect() };
    Ok([test, fresh].into_iter().filter(|sample| !sample.goals.is_empty()).collect())
}

/// The policies of the run, the judged one first.
fn judged_policies<'n>(
    trainer: &'n Trainer<'_>,
    reference: &'n Network,
    base: Option<&'n Network>,
) -> Vec<Judged<'n>> {
    let ex = trainer.ex;
    let has_learned = trainer.progress.state.step > ex.first_rl_step();
    let begun = ex.config.model.first_name();
    let is_cloned = ex.first_rl_step() > 0;
    let first = if is_cloned { "warm start" } else { begun };
    let base = base.filter(|_| is_cloned).map(|base| (begun, base));
    let learned = has_learned.then(|| ("learned", trainer.train_state.network()));
    let sampled = ex.config.evaluation.temperature;
    let mut judged = Vec::new();
    for (name, network) in learned.into_iter().chain([(first, reference)]).chain(base) {
        judged.push(Judged { name: name.into(), network, temperature: sampled });
        // With temperature 0 in evaluations, both are the same.
        if sampled > 0.0 {
            judged.push(Judged { name: format!("{name} (greedy)"), network, temperature: 0.0 });
        }
    }
    judged
}

/// All policies on one set of goals, each with its difference to the first.
fn judge_on(trainer: &Trainer<'_>, judged: &[Judged<'_>], sample: &GoalSample) -> Result<JudgedSet> {
    let (ex, top_p) = (trainer.ex, trainer.ex.config.evaluation.top_p);
    let tasks: Vec<Task> = sample.goals.iter().map(|goal| goal.task(JUDGEMENT_STEP)).collect();
    let mut policies: Vec<Baseline> = Vec::new();
    let mut first: Option<Outcomes> = None;
    for Judged { name, network, temperature } in judged {
        if trainer.stop.load(Ordering::Relaxed) {
            let step = trainer.progress.state.step;
            return Err(TrainingError::Interrupted { step, run: ex.run.root().into() });
        }
        let advance = || ex.observer.advance(1, name);
        let episodes = ex.rollout_at(network, &tasks, (*temperature, top_p), &advance)?;
        let tally = tally(&episodes, &sample.goals);
        policies.push(Baseline::new(name, &tally, first.as_ref()));
        first.get_or_insert_with(|| tally.outcomes());
    }
    let first = first.expect("the warm start is always judged");
    policies.extend(baselines(&tasks, baseline_config(ex), &first)?);
    Ok(JudgedSet { name: sample.name.into(), shops: sample.n_shops, policies })
}
