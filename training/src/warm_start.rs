//! Cloning: demonstrations as trajectories, and the loss that imitates them.
//!
//! A demonstration is a trip of the [`Demonstrator`] read through the same [`Transcriber`] as a rollout
//! and laid down as a [`Trajectory`], so that the model is trained on exactly the contexts it will meet.
//! Each draw is addressed by (step, position in the batch): which goal, and whether the customer is careful
//! or hasty. The loss is the mean negative log-likelihood over the agent's tokens of the batch.

use rand::Rng;
use rayon::prelude::*;
use webshop_agent::dialect::utterance;
use webshop_agent::prompt::{Piece, PromptConfig, Transcriber, encode};
use webshop_agent::{AgentError, DemonstratedTurn, Demonstrator, Manner, Qwen2, ShopTokenizer};
use webshop_env::{Session, Shop};
use webshop_products::{GoalId, Purpose, Seed};

use crate::error::Result;
use crate::gradient::{Gradients, accumulate};
use crate::ground::Ground;
use crate::trajectory::{MicroBatch, Trajectory};

/// Goals tried for one place in a batch before it is left empty; a goal can lack a demonstration.
const DRAWS: u64 = 8;

/// Draws demonstrations from the training goals.
#[derive(Clone, Copy, Debug)]
pub struct Demonstrations<'a> {
    /// Where the goals are.
    pub ground: &'a Ground,
    /// What text becomes.
    pub tokenizer: &'a ShopTokenizer,
    /// How pages are read.
    pub prompt: PromptConfig,
    /// Share of trips told by the careful customer, 0 to 1.
    pub think_share: f64,
    /// The run's seed.
    pub seed: Seed,
}

impl Demonstrations<'_> {
    /// The batch of `step`: up to `n` trajectories; fewer only if a place found no demonstrable goal in
    /// several draws.
    pub fn batch(&self, step: u64, n: usize) -> Result<Vec<Trajectory>> {
        let drawn: Vec<Result<Option<Trajectory>>> =
            (0..n as u64).into_par_iter().map(|place| self.draw(step, place)).collect();
        drawn.into_iter().filter_map(Result::transpose).collect()
    }

    fn draw(&self, step: u64, place: u64) -> Result<Option<Trajectory>> {
        for attempt in 0..DRAWS {
            let mut rng = self.seed.rng(Purpose::Demonstration, &[step, place, attempt]);
            let goals = self.ground.training();
            let goal = goals[rng.random_range(0..goals.len() as u64) as usize];
            let careful = rng.random::<f64>() < self.think_share;
            let manner = if careful { Manner::Careful } else { Manner::Hasty };
            let shop = self.ground.shop_of(goal);
            if let Some(turns) = Demonstrator::new(shop, self.prompt.results_shown).trip(goal.goal, manner) {
                return Ok(Some(lay_down(self.tokenizer, self.prompt, shop, goal.goal, &turns)?));
            }
        }
        Ok(None)
    }
}

/// Demonstrated `turns` for `goal` in pieces: for each turn what would have been read, and what is said.
pub fn recount(
    prompt: PromptConfig,
    shop: &Shop,
    goal: GoalId,
    turns: &[DemonstratedTurn],
) -> Vec<(Vec<Piece>, Vec<Piece>)> {
    let mut session = Session::start(goal);
    let mut reader = Transcriber::new(prompt);
    let mut told = Vec::with_capacity(turns.len());
    for turn in turns {
        let page = session.page(shop);
        let read = reader.read(shop.catalog(), &page, None);
        told.push((read, utterance(&turn.thought, &turn.action, &page)));
        session.act(shop, &turn.action);
    }
    told
}

/// The trajectory of demonstrated `turns` for `goal`.
pub fn lay_down(
    tokenizer: &ShopTokenizer,
    prompt: PromptConfig,
    shop: &Shop,
    goal: GoalId,
    turns: &[DemonstratedTurn],
) -> Result<Trajectory, AgentError> {
    let mut trajectory = Trajectory::new();
    for (read, said) in recount(prompt, shop, goal, turns) {
        trajectory.push_observation(&encode(tokenizer, &read)?);
        let said = encode(tokenizer, &said)?;
        trajectory.push_utterance(&said, &vec![0.0; said.len()]);
    }
    Ok(trajectory)
}

/// The gradient of the mean negative log-likelihood over all agent tokens of `batch`, and that mean in
/// nats per token.
pub fn cloning_gradient(
    model: &Qwen2,
    batch: &[Trajectory],
    limit_tokens: usize,
) -> Result<(Gradients, f64)> {
    let n_tokens: usize = batch.iter().map(Trajectory::n_sampled).sum();
    let scale = -1.0 / n_tokens.max(1) as f64;
    let (gradients, shares) = accumulate(model, &MicroBatch::pack(batch, limit_tokens), |_, stats| {
        let share = (stats.log_prob.sum_all()? * scale)?;
        let value = f64::from(share.to_scalar::<f32>()?);
        Ok((share, value))
    })?;
    Ok((gradients, shares.iter().sum()))
}
