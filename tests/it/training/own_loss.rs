//! A loss of the caller.

use webshop_training::Result;
use webshop_training::loss::{AdvantageSource, LogProbs, Loss, Prepared, Scored, Target, Term};

use super::*;

/// REINFORCE without a baseline, with this weight for every episode and so many targets more than episodes.
struct Weighted {
    weight: f64,
    n_more: usize,
}

impl Loss for Weighted {
    fn name(&self) -> &'static str {
        "weighted"
    }

    fn advantage_source(&self) -> AdvantageSource {
        AdvantageSource::Reward
    }

    fn prepare(&self, batch: &[Scored]) -> Result<Prepared> {
        let share = 1.0 / batch.len() as f64;
        let target = |scored: &Scored| Target::whole(scored.n_tokens(), scored.reward, self.weight, share);
        let more = batch.iter().cycle().take(self.n_more);
        Ok(Prepared::Learn(batch.iter().chain(more).map(target).collect()))
    }

    fn loss(&self, target: &Target, log_probs: &LogProbs) -> Result<Term> {
        let value = (log_probs.policy.sum_all()? * (-target.share * target.advantage()))?;
        Ok(Term { value, n_clipped: 0 })
    }
}

/// The end of a run that branches from the warm start and learns with `loss`, in a folder of its own.
fn learned(loss: &Weighted, settings: &[&str]) -> (TempDir, RunFolder, Result<()>) {
    let config = toy(settings);
    let (keep, run) = branch(&config);
    let end = train(&config, &run, TrainOptions { loss: Some(loss), ..TrainOptions::default() });
    (keep, run, end.map(drop))
}

#[test]
fn a_minibatch_without_weights_is_learned_from_its_demonstrations() {
    let weights = |settings: &[&str]| {
        let (_keep, run, end) = learned(&Weighted { weight: 0.0, n_more: 0 }, settings);
        end.expect("a run to the end");
        let records = read_records(run.root(), "test").expect("metrics");
        let steps: Vec<Record> = records.into_iter().filter(|one| one.phase == Phase::Learn).collect();
        let has_norms = steps.iter().filter(|one| one.get(Metric::TrainGradNorm).is_some()).count() as u64;
        let model = run.checkpoints().join("last/model/model.safetensors");
        (fs::read(model).expect("weights"), has_norms)
    };
    let before = fs::read(WARM_START.1.root().join("checkpoints/last/model/model.safetensors"));
    let (same, n_norms) = weights(&["rl.minibatches=2"]);
    assert!(same == before.expect("weights") && n_norms == 0, "{n_norms} steps with a gradient");
    let (other, n_norms) = weights(&["rl.minibatches=2", "rl.demonstration_share=0.5"]);
    assert!(other != same && n_norms == RL_STEPS, "{n_norms} steps with a gradient");
}

#[test]
fn a_loss_that_does_not_fit_is_refused() {
    let refusal = |loss, settings: &[&str]| learned(&loss, settings).2.expect_err("refused").to_string();
    assert_eq!(
        refusal(Weighted { weight: 1.0, n_more: 0 }, &["rl.loss.kind=ppo"]),
        "loss `weighted`: has no critic; `rl.loss.kind` must not be `ppo`"
    );
    let found = refusal(Weighted { weight: 1.0, n_more: 1 }, &[]);
    assert!(found.starts_with("loss `weighted`: it has 17 targets for 16 episodes"), "{found}");
}
