//! Writes a loss, takes its gradient, and trains the base model with it: REINFORCE with the median reward of the batch as
//! baseline.
//!
//! ```text
//! L = −(1/B) Σ_b (r_b − median(r)) · Σₜ lpₜ
//! ```
//!
//! Run with `cargo run --release --example own_loss`.

use std::error::Error;

use candle_core::{Device, Tensor, Var};
use webshop_training::config::Config;
use webshop_training::loss::{AdvantageSource, LogProbs, Loss, Prepared, Scored, Target, Term};
use webshop_training::{Result, RunFolder, TrainOptions, train};

/// What differs from the default run: no cloning, and few and small batches.
const SETTINGS: &str = r#"
    catalog.auxiliary_shops = 4
    warm_start.steps = 0
    rl = { steps = 3, batch_episodes = 128, minibatches = 2, lr = 3e-4, warmup_steps = 1 }
    evaluation = { every = 0, episodes = 100, shops = 0 }
    judgement.episodes = 0
"#;

struct MedianReinforce;

impl Loss for MedianReinforce {
    fn name(&self) -> &'static str {
        "median-reinforce"
    }

    fn advantage_source(&self) -> AdvantageSource {
        AdvantageSource::Reward
    }

    /// One advantage for each episode; 1/B goes into its share.
    fn prepare(&self, batch: &[Scored]) -> Result<Prepared> {
        let mut rewards: Vec<f64> = batch.iter().map(|scored| scored.reward).collect();
        rewards.sort_by(f64::total_cmp);
        let Some(&median) = rewards.get(rewards.len() / 2) else { return Ok(Prepared::NoSignal) };
        let share = 1.0 / batch.len() as f64;
        let target = |scored: &Scored| Target::whole(scored.n_tokens(), scored.reward - median, 1.0, share);
        Ok(Prepared::Learn(batch.iter().map(target).collect()))
    }

    /// One episode's share of the loss, differentiable in `log_probs.policy`. `[T]`
    fn loss(&self, target: &Target, log_probs: &LogProbs) -> Result<Term> {
        let value = (log_probs.policy.sum_all()? * (-target.share * target.advantage()))?;
        Ok(Term { value, n_clipped: 0 })
    }
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    check_gradient()?;
    let config = Config::resolve("SETTINGS", SETTINGS, &[])?;
    let folder = tempfile::tempdir()?;
    let run = RunFolder::create(folder.path(), &config)?;
    let options = TrainOptions { loss: Some(&MedianReinforce), ..TrainOptions::default() };
    let summary = train(&config, &run, options)?;
    let learned = summary.learned.ok_or("the run has an evaluation at its end")?;
    println!("after {} steps: {}", learned.step, learned.summary);
    Ok(())
}

fn check_gradient() -> std::result::Result<(), Box<dyn Error>> {
    // Three episodes of two tokens each, with rewards 1, 0.5 and 0.
    let batch = [1.0, 0.5, 0.0].map(|reward| Scored::single_turn(0, reward, 0.0, 2));
    let Prepared::Learn(targets) = MedianReinforce.prepare(&batch)? else { return Err("no signal".into()) };

    let policy = Var::from_tensor(&Tensor::full(-1.0f32, 6, &Device::Cpu)?)?;
    let (policy_log_probs, sampled) = (policy.as_tensor().clone(), policy.as_tensor().detach());
    let log_probs = LogProbs { policy: policy_log_probs, reference: sampled.clone(), behaviour: sampled };
    let loss = webshop_training::loss::summed_loss(&MedianReinforce, &targets, &log_probs)?.value;
    let gradients = loss.backward()?;
    let gradient = gradients.get(&policy).ok_or("the loss depends on the policy")?.to_vec1::<f32>()?;
    println!("loss {:.3}, gradient {gradient:.3?}", loss.to_scalar::<f32>()?);
    // The better episode becomes likelier, the worse less likely, the median one stays.
    assert!(gradient[0] < 0.0 && gradient[2] == 0.0 && gradient[5] > 0.0);
    Ok(())
}
