//! Cloning: demonstrations as trajectories, and the loss that imitates them.
//!
//! A demonstration is an episode of the [`Expert`] read through the same [`CompactRenderer`] as a rollout
//! and laid down as a [`Trajectory`], so that the model is trained on exactly the contexts it will meet.
//! Each draw is addressed by (step, position in the batch): which goal, and whether the customer is careful
//! or hasty. Most careful episodes shown are such that a candidate is refused for what its title says: to read
//! that, and not what was wanted, pays on those only, and is not learned where they are few. The loss is the
//! mean negative log-likelihood over the agent's tokens of the batch.

use rand::Rng;
use rayon::prelude::*;
use webshop_agent::compact::{CompactRenderer, Piece, PromptConfig, encode_pieces, render_completion};
use webshop_agent::{AgentError, DemonstrationRenderer, ExpertTurn, Expert, ExpertKind};
use webshop_lm::{Context, Sampler, BpeTokenizer};
use webshop_env::{Session, Shop};
use webshop_products::{GoalId, Purpose, Seed};

use crate::error::Result;
use crate::model::gradient::{Gradients, accumulate};
use crate::data::task_set::TaskSet;
use crate::model::network::Network;
use crate::data::trajectory::{MicroBatch, Trajectory};

/// Goals tried for one place in a batch; a goal can lack a demonstration that fits, or one that tells as much as
/// was asked for. The last that fits is taken; a place without any is left empty.
const DRAWS: u64 = 8;

/// Draws demonstrations from the training goals.
#[derive(Clone, Debug)]
pub struct Demonstrations<'a> {
    /// Where the goals are.
    pub task_set: &'a TaskSet,
    /// What text becomes.
    pub tokenizer: &'a BpeTokenizer,
    /// Who tells them in a chat; `None` in the plain prompt format.
    pub chat: Option<DemonstrationRenderer<'a>>,
    /// How pages are read.
    pub prompt: PromptConfig,
    /// Tokens of the longest demonstration; what is longer is not shown.
    pub max_context: usize,
    /// Share of episodes told by the thinking expert, 0 to 1.
    pub thinking_share: f64,
    /// Share of those for which goals are drawn until one is met whose episode refuses a candidate by its title, 0 to 1.
    pub rejection_share: f64,
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
        let mut rng = self.seed.rng(Purpose::Demonstration, &[step, place]);
        let thinking = rng.random::<f64>() < self.thinking_share;
        let kind = if thinking { ExpertKind::Thinking } else { ExpertKind::NoThinking };
        let rejecting = thinking && rng.random::<f64>() < self.rejection_share;
        let mut shown = None;
        for _ in 0..DRAWS {
            let goals = self.task_set.training();
            let goal = goals[rng.random_range(0..goals.len() as u64) as usize];
            let shop = self.task_set.shop_of(goal);
            let expert = Expert::new(shop, self.prompt.results_shown);
            let Some(turns) = expert.episode(goal.goal, kind) else { continue };
            let Some(trajectory) = self.laid_down(shop, goal.goal, &turns)? else { continue };
            if trajectory.longest_sequence() > self.max_context {
                continue;
            }
            shown = Some(trajectory);
            if !rejecting || turns.iter().any(ExpertTurn::rejects_by_title) {
                break;
            }
        }
        Ok(shown)
    }

    /// The trajectory of an episode; `None` if it cannot be told in the prompt format.
    fn laid_down(&self, shop: &Shop, goal: GoalId, turns: &[ExpertTurn]) -> Result<Option<Trajectory>> {
        let Some(chat) = &self.chat else {
            return Ok(Some(demonstration_trajectory(self.tokenizer, self.prompt, shop, goal, turns)?));
        };
        let rendered = chat.render(shop, goal, turns)?;
        Ok(rendered.map(|rendered| {
            let mut trajectory = Trajectory::new();
            for turn in rendered {
                if turn.context == Context::Fresh {
                    trajectory.begin_sequence();
                }
                trajectory.push_observation(&turn.prompt_ids);
                trajectory.push_completion(&turn.completion_ids, &vec![0.0; turn.completion_ids.len()]);
            }
            trajectory
        }))
    }
}

/// Demonstrated `turns` for `goal` in pieces: for each turn what would have been read, and what is said.
pub fn render_demonstration(
    prompt: PromptConfig,
    shop: &Shop,
    goal: GoalId,
    turns: &[ExpertTurn],
) -> Vec<(Vec<Piece>, Vec<Piece>)> {
    let mut session = Session::start(goal);
    let mut renderer = CompactRenderer::new(prompt);
    let mut rendered = Vec::with_capacity(turns.len());
    for turn in turns {
        let page = session.page(shop);
        let prompt = renderer.render(&page, None);
        rendered.push((prompt, render_completion(&turn.thought, &turn.action, &page)));
        session.act(shop, &turn.action);
    }
    rendered
}

/// The trajectory of demonstrated `turns` for `goal`.
pub fn demonstration_trajectory(
    tokenizer: &BpeTokenizer,
    prompt: PromptConfig,
    shop: &Shop,
    goal: GoalId,
    turns: &[ExpertTurn],
) -> Result<Trajectory, AgentError> {
    let mut trajectory = Trajectory::new();
    for (read, said) in render_demonstration(prompt, shop, goal, turns) {
        trajectory.push_observation(&encode_pieces(tokenizer, &read)?);
        let said = encode_pieces(tokenizer, &said)?;
        trajectory.push_completion(&said, &vec![0.0; said.len()]);
    }
    Ok(trajectory)
}

/// The gradient of the mean negative log-likelihood over all agent tokens of `batch`, and that mean in
/// nats per token.
pub fn cloning_gradient(
    network: &Network,
    batch: &[Trajectory],
    limit_tokens: usize,
) -> Result<(Gradients, f64)> {
    let n_tokens: usize = batch.iter().map(Trajectory::n_sampled).sum();
    let scale = -1.0 / n_tokens.max(1) as f64;
    let packed = MicroBatch::pack(batch, limit_tokens);
    let (gradients, shares) = accumulate(network, &packed, Sampler::UNTEMPERED, |_, stats| {
        let share = (stats.log_prob.sum_all()? * scale)?;
        let value = f64::from(share.to_scalar::<f32>()?);
        Ok((share, value))
    })?;
    Ok((gradients, shares.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::setup::limits::prompt_config;
    use crate::setup::open_shop::open_shop;
    use crate::setup::tokenizer::train_tokenizer;

    #[test]
    fn demonstrations_that_reject_a_candidate_are_preferred() {
        let config = Config::default();
        let task_set = TaskSet::new(open_shop(&config.catalog).unwrap(), 0, 0).unwrap();
        let tokenizer = train_tokenizer(&task_set, &config).unwrap();
        let refusing = |rejection_share, max_context| {
            let demonstrations = Demonstrations {
                task_set: &task_set,
                tokenizer: &tokenizer,
                chat: None,
                prompt: prompt_config(&config),
                max_context,
                thinking_share: 1.0,
                rejection_share,
                seed: Seed(0),
            };
            let batch = demonstrations.batch(0, 40).unwrap();
            assert!(batch.iter().all(|trajectory| trajectory.ids.len() <= max_context));
            let refuses = |trajectory: &&Trajectory| tokenizer.decode(&trajectory.ids).contains(" no</think>");
            (batch.iter().filter(refuses).count(), batch.len())
        };
        let (few, all) = refusing(0.0, 512);
        assert!((4..25).contains(&few) && all == 40, "{few} of {all}");
        let (most, all) = refusing(1.0, 512);
        assert!(most > 34 && all == 40, "{most} of {all}");
        // Of what fits into little room, something is shown although it refuses nothing.
        let (few, all) = refusing(1.0, 160);
        assert!(few < all, "{few} of {all}");
    }
}
