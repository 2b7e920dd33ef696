//! Cloning: demonstrations as trajectories, and their loss.
//!
//! A demonstration is an episode of the [`BrowsingExpert`] or of the [`Expert`], rendered in the same
//! [`Layout`] as a rollout and stored as a [`Trajectory`], so that the model is trained on exactly the
//! contexts of its rollouts. A draw depends on the seed and on (step, position in the batch), which decide the
//! goal and the habits or the [`ExpertKind`]. Episodes in which the thinking expert rejects a candidate because
//! of its title are sought: copying from the title instead of the goal reduces the loss on these episodes only,
//! and is not learned if they are rare. The loss is the mean negative log-likelihood over the agent's tokens of
//! the batch.
//!
//! A *reading task* teaches to read and not to decide: an episode of a [`BrowsingExpert`] that reads the features of
//! every fitting product, in which the thoughts have a loss and the actions have none.

use std::borrow::Cow;

use candle_core::Tensor;
use rand::Rng;
use rayon::prelude::*;
use webshop_agent::compact::Piece;
use webshop_agent::{BrowsingExpert, BrowsingHabits, Demonstrated, Expert, ExpertKind, ExpertTurn, Layout};
use webshop_env::Shop;
use webshop_lm::{BpeTokenizer, Context, Sampler};
use webshop_products::{GoalId, Seed};

use crate::config::{Config, DemonstrationKind, WarmStartConfig};
use crate::data::layout_demonstrations::{layout_trajectory, render_demonstration, thought_pieces};
use crate::data::task_set::{TaskId, TaskSet};
use crate::data::trajectory::{MicroBatch, Trajectory};
use crate::error::Result;
use crate::math::sum_all;
use crate::model::gradient::{Gradients, accumulate};
use crate::model::network::Network;
use crate::model::policy::{Demonstrator, PolicyModel};
use crate::purpose;

/// Goals drawn at most for one place in a batch. A goal can lack a demonstration that fits into the context,
/// or that rejects a candidate when one is needed. The last one that fits is used; a place without any stays
/// empty.
const DRAWS: u64 = 8;

/// Draws demonstrations from the training goals.
#[derive(Clone, Debug)]
pub(crate) struct Demonstrations<'a> {
    /// The shops and training goals.
    pub(crate) task_set: &'a TaskSet,
    /// The tokenizer.
    pub(crate) tokenizer: &'a BpeTokenizer,
    /// Renders demonstrations.
    pub(crate) demonstrator: Demonstrator<'a>,
    /// Listed products that an expert sees.
    pub(crate) results_shown: usize,
    /// Largest numbers of tokens of a sequence and of a completion, and of actions. Demonstrations that exceed one are
    /// not used, since a rollout would be cut off there. Reading tasks, whose actions are not learned, are limited by the first.
    pub(crate) max_context: usize,
    pub(crate) max_turn_tokens: usize,
    pub(crate) max_steps: u32,
    /// Who demonstrates what.
    pub(crate) config: &'a WarmStartConfig,
    /// Whether demonstrations with a reward below 1 are left out (filtered cloning).
    pub(crate) only_successful: bool,
    /// The run's seed.
    pub(crate) seed: Seed,
}

impl<'a> Demonstrations<'a> {
    /// Those that the run of a configuration draws at `step`.
    ///
    /// # Errors
    /// If the prompt format of `policy` has no demonstrations.
    pub(crate) fn of_run(
        config: &'a Config,
        task_set: &'a TaskSet,
        policy: &'a PolicyModel,
        step: u64,
    ) -> Result<Self> {
        Ok(Self {
            task_set,
            tokenizer: &policy.tokenizer,
            demonstrator: policy.demonstrator(config)?,
            results_shown: config.prompt.results_shown,
            max_context: config.prompt.max_context,
            max_turn_tokens: config.prompt.max_turn_tokens,
            max_steps: config.run.max_steps,
            config: &config.warm_start,
            only_successful: config.warm_start.is_filtered(step),
            seed: Seed(config.seed),
        })
    }
}

impl Demonstrations<'_> {
    /// The batch of `step`: `n` trajectories, or fewer if a place found no usable demonstration.
    pub(crate) fn batch(&self, step: u64, n: usize) -> Result<Vec<Trajectory>> {
        let drawn: Vec<Result<Option<Trajectory>>> =
            (0..n as u64).into_par_iter().map(|place| self.draw(step, place)).collect();
        drawn.into_iter().filter_map(Result::transpose).collect()
    }

    fn draw(&self, step: u64, place: u64) -> Result<Option<Trajectory>> {
        let mut rng = self.seed.rng(purpose::DEMONSTRATION, &[step, place]);
        match self.config.demonstrations {
            DemonstrationKind::Browsing => self.draw_browsing(&mut rng),
            DemonstrationKind::TwoHabits => self.draw_of_two_habits(&mut rng),
        }
    }

    fn draw_browsing(&self, rng: &mut impl Rng) -> Result<Option<Trajectory>> {
        // A chat format has no reading tasks: its turns are rendered as a whole.
        let reading =
            self.demonstrator.layout().filter(|_| rng.random::<f64>() < self.config.reading_task_share);
        for _ in 0..DRAWS {
            let fitting = match reading {
                Some(layout) => self.reading_task(layout, rng),
                None => self.cloned(rng),
            }?;
            if fitting.is_some() {
                return Ok(fitting);
            }
        }
        Ok(None)
    }

    /// A demonstration for a drawn goal; `None` if it is filtered out or too long.
    fn cloned(&self, rng: &mut impl Rng) -> Result<Option<Trajectory>> {
        let habits = self.config.habits;
        let Some((goal, shop, episode)) = self.browse(habits, rng) else { return Ok(None) };
        if self.only_successful && episode.reward < 1.0 {
            return Ok(None);
        }
        self.fitting_trajectory(shop, goal, &episode.turns)
    }

    /// A reading task for a drawn goal; `None` if it is too long or has no thought. Half of the products are rejected,
    /// so that later ones are read too.
    fn reading_task(&self, layout: Layout, rng: &mut impl Rng) -> Result<Option<Trajectory>> {
        let habits = BrowsingHabits {
            reads_features: 1.0,
            rejects_at_random: 0.5,
            rejects_by_notes: 0.0,
            ..self.config.habits
        };
        let Some((goal, shop, episode)) = self.browse(habits, rng) else { return Ok(None) };
        let turns = render_demonstration(layout, shop, goal, &[], &episode.turns);
        let task = layout_trajectory(self.tokenizer, turns, thought_pieces)?;
        Ok((task.n_sampled() > 0 && task.longest_sequence() <= self.max_context).then_some(task))
    }

    /// An episode with these habits for a drawn goal; `None` if its search has no result.
    fn browse(&self, habits: BrowsingHabits, rng: &mut impl Rng) -> Option<(GoalId, &Shop, Demonstrated)> {
        let (goal, shop) = self.draw_task(rng);
        let expert = BrowsingExpert::new(shop, self.results_shown, habits);
        Some((goal, shop, expert.episode(goal, rng)?))
    }

    fn draw_of_two_habits(&self, rng: &mut impl Rng) -> Result<Option<Trajectory>> {
        let thinking = rng.random::<f64>() < self.config.thinking_share;
        let kind = if thinking { ExpertKind::Thinking } else { ExpertKind::NoThinking };
        let rejecting = thinking && rng.random::<f64>() < self.config.rejection_share;
        // The thinking expert always succeeds; all episodes of the other are left out.
        if self.only_successful && !thinking {
            return Ok(None);
        }
        let mut shown = None;
        for _ in 0..DRAWS {
            let (goal, shop) = self.draw_task(rng);
            let expert = Expert::new(shop, self.results_shown);
            let Some(turns) = expert.episode(goal, kind) else { continue };
            let Some(trajectory) = self.fitting_trajectory(shop, goal, &turns)? else { continue };
            shown = Some(trajectory);
            if !rejecting || turns.iter().any(ExpertTurn::rejects_by_title) {
                break;
            }
        }
        Ok(shown)
    }

    /// A training goal.
    pub(crate) fn draw_goal(&self, rng: &mut impl Rng) -> TaskId {
        let goals = self.task_set.training();
        goals[rng.random_range(0..goals.len() as u64) as usize]
    }

    fn draw_task(&self, rng: &mut impl Rng) -> (GoalId, &Shop) {
        let goal = self.draw_goal(rng);
        (goal.goal, self.task_set.shop_of(goal))
    }

    /// The trajectory of an episode; `None` if the prompt format cannot render it or it exceeds a limit.
    fn fitting_trajectory(
        &self,
        shop: &Shop,
        goal: GoalId,
        turns: &[ExpertTurn],
    ) -> Result<Option<Trajectory>> {
        let whole = self.trajectory(shop, goal, turns)?;
        Ok(whole.filter(|whole| self.fits(whole, turns.len())))
    }

    /// Whether an episode of so many actions is within the limits.
    pub(crate) fn fits(&self, trajectory: &Trajectory, n_actions: usize) -> bool {
        n_actions <= self.max_steps as usize
            && trajectory.longest_sequence() <= self.max_context
            && trajectory.longest_completion() <= self.max_turn_tokens
    }

    /// The trajectory of an episode; `None` if the prompt format cannot render it.
    fn trajectory(&self, shop: &Shop, goal: GoalId, turns: &[ExpertTurn]) -> Result<Option<Trajectory>> {
        let chat = match &self.demonstrator {
            Demonstrator::Chat(chat) => chat,
            Demonstrator::Layout(layout) => {
                let turns = render_demonstration(*layout, shop, goal, &[], turns);
                return Ok(Some(layout_trajectory(self.tokenizer, turns, <[Piece]>::len)?));
            }
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

/// The gradient of the cloning loss of `batch`, and the mean negative log-likelihood of its agent tokens in nats
/// per token.
///
/// The loss is that mean, plus `page_weight` times the negative log-likelihoods of all other tokens over the same
/// number of agent tokens: instructions and pages are then modelled as in pretraining.
pub(crate) fn cloning_gradient(
    network: &Network,
    batch: &[Trajectory],
    page_weight: f64,
    limit_tokens: usize,
) -> Result<(Gradients, f64)> {
    let n_tokens: usize = batch.iter().map(Trajectory::n_sampled).sum();
    let scale = -1.0 / n_tokens.max(1) as f64;
    let predicted: Cow<'_, [Trajectory]> = match page_weight {
        0.0 => batch.into(),
        _ => batch.iter().map(Trajectory::with_pages_sampled).collect(),
    };
    let packed = MicroBatch::pack(&predicted, limit_tokens);
    let (gradients, shares) = accumulate(network, &packed, Sampler::UNTEMPERED, |micro, stats| {
        let members = || micro.members.iter().map(|&member| (&batch[member], &predicted[member]));
        let is_agents: Vec<bool> = members()
            .flat_map(|(own, predicted)| own.sampled.iter().zip(&predicted.sampled))
            .filter_map(|(&own, &predicted)| predicted.then_some(own))
            .collect();
        let weighted = |page_weight: f64| -> Result<Tensor> {
            let weights = is_agents.iter().map(|&own| if own { 1.0 } else { page_weight as f32 });
            let weights = Tensor::from_iter(weights, stats.log_prob.device())?;
            Ok((sum_all(&(&stats.log_prob * weights)?)? * scale)?)
        };
        let value = weighted(0.0)?.to_scalar::<f32>()?;
        Ok((weighted(page_weight)?, f64::from(value)))
    })?;
    Ok((gradients, shares.iter().sum()))
}

#[cfg(test)]
pub(super) mod tests {
    use webshop_lm::{Qwen2, Qwen2Config};

    use super::*;
    use crate::config::{Config, Preset};
    use crate::setup::limits::layout;
    use crate::setup::open_shop::open_shop;
    use crate::setup::tokenizer::train_tokenizer;

    pub(in crate::data) fn demonstrations<'a>(
        task_set: &'a TaskSet,
        tokenizer: &'a BpeTokenizer,
        config: &'a Config,
    ) -> Demonstrations<'a> {
        Demonstrations {
            task_set,
            tokenizer,
            demonstrator: Demonstrator::Layout(layout(config).unwrap()),
            results_shown: config.prompt.results_shown,
            max_context: config.prompt.max_context,
            max_turn_tokens: config.prompt.max_turn_tokens,
            max_steps: config.run.max_steps,
            config: &config.warm_start,
            only_successful: false,
            seed: Seed(0),
        }
    }

    #[test]
    fn the_gradient_of_pages_is_added_with_their_weight() {
        let qwen = Qwen2Config { num_hidden_layers: 1, ..Qwen2Config::small(50) };
        let network = Network::Cpu(Qwen2::random(&qwen, Seed(2)).unwrap().into());
        let batch: Vec<Trajectory> = (0..3)
            .map(|salt| {
                let mut trajectory = Trajectory::new();
                trajectory.push_observation(&[1 + salt, 7, 9]);
                trajectory.push_completion(&[4, 2 + salt], &[0.0; 2]);
                trajectory.push_observation(&[11, 3]);
                trajectory
            })
            .collect();
        let gradient = |page_weight| {
            let (gradients, value) = cloning_gradient(&network, &batch, page_weight, 12).unwrap();
            let Gradients::Cpu(gradients) = gradients else { panic!("the network is on the CPU") };
            (gradients.concat(), value)
        };
        let [(none, value), (half, of_half), (whole, of_whole)] = [0.0, 0.5, 1.0].map(gradient);
        assert!((value - of_half).abs() < 1e-6 && (value - of_whole).abs() < 1e-6, "pages are in no metric");
        let norm = |values: &[f32]| values.iter().map(|value| value * value).sum::<f32>().sqrt();
        let minus = |one: &[f32], other: &[f32]| -> Vec<f32> {
            one.iter().zip(other).map(|(one, other)| one - other).collect()
        };
        let (pages, of_half) = (minus(&whole, &none), minus(&half, &none));
        assert!(norm(&pages) > 0.1 * norm(&none), "pages have a gradient");
        let twice: Vec<f32> = of_half.iter().map(|value| 2.0 * value).collect();
        assert!(norm(&minus(&pages, &twice)) < 1e-4 * norm(&pages), "it is proportional to the weight");
    }

    #[test]
    fn filtered_cloning_keeps_successful_demonstrations() {
        let config = Config::default();
        let task_set = TaskSet::of_shop(open_shop(&config.catalog).unwrap());
        let tokenizer = train_tokenizer(&task_set, &config).unwrap();
        let demonstrations = demonstrations(&task_set, &tokenizer, &config);
        let filtered = Demonstrations { only_successful: true, ..demonstrations.clone() };
        let mut n_failed = 0;
        for place in 0..200 {
            let rng = || Seed(0).rng(purpose::DEMONSTRATION, &[0, place]);
            let (_, _, episode) = demonstrations.browse(config.warm_start.habits, &mut rng()).unwrap();
            let [all, successful] = [&demonstrations, &filtered].map(|of| of.cloned(&mut rng()).unwrap());
            assert_eq!(successful, all.filter(|_| episode.reward == 1.0));
            n_failed += usize::from(episode.reward < 1.0);
        }
        assert!((20..180).contains(&n_failed), "{n_failed} of 200");
    }

    #[test]
    fn reading_tasks_teach_thoughts_and_no_action() {
        let config = Config::load(None, &["warm_start.reading_task_share=1".into()]).unwrap();
        let task_set = TaskSet::of_shop(open_shop(&config.catalog).unwrap());
        let tokenizer = train_tokenizer(&task_set, &config).unwrap();
        let batch = demonstrations(&task_set, &tokenizer, &config).batch(0, 20).unwrap();
        assert_eq!(batch.len(), 20);
        let (mut n_thoughts, mut n_read) = (0, 0);
        for task in &batch {
            let learned: Vec<u32> = task
                .ids
                .iter()
                .zip(&task.sampled)
                .filter_map(|(id, learned)| learned.then_some(*id))
                .collect();
            let learned = tokenizer.decode(&learned);
            let whole = tokenizer.decode(&task.ids);
            assert!(whole.contains("search[") && whole.contains("click["));
            assert!(!learned.contains("search[") && !learned.contains("click["), "{learned}");
            assert!(learned.starts_with("<think>") && learned.ends_with("</think>"), "{learned}");
            assert_eq!(learned.matches("</think>").count(), whole.matches("</think>").count());
            n_thoughts += learned.matches("</think>").count();
            n_read += whole.matches("click[features]").count();
        }
        assert!(n_read >= 10 && n_thoughts > 2 * n_read, "{n_read} pages of features, {n_thoughts} thoughts");
    }

    #[test]
    fn demonstrations_that_reject_a_candidate_are_preferred() {
        let config = Config::preset(Preset::TwoHabits, &[]).unwrap();
        let task_set = TaskSet::of_shop(open_shop(&config.catalog).unwrap());
        let tokenizer = train_tokenizer(&task_set, &config).unwrap();
        let rejecting = |rejection_share, max_context| {
            let warm_start =
                WarmStartConfig { thinking_share: 1.0, rejection_share, ..config.warm_start.clone() };
            let demonstrations = demonstrations(&task_set, &tokenizer, &config);
            let demonstrations = Demonstrations { max_context, config: &warm_start, ..demonstrations };
            let batch = demonstrations.batch(0, 40).unwrap();
            assert!(batch.iter().all(|trajectory| trajectory.ids.len() <= max_context));
            let rejects =
                |trajectory: &&Trajectory| tokenizer.decode(&trajectory.ids).contains(" no</think>");
            (batch.iter().filter(rejects).count(), batch.len())
        };
        // Titles rarely speak against a product: most attributes stand in the features alone. Up to eight goals are
        // drawn for each episode that is to reject, which finds more.
        let (few, all) = rejecting(0.0, 512);
        assert!(few > 0 && all == 40, "{few} of {all}");
        let (most, all) = rejecting(1.0, 512);
        assert!(most >= 3 * few && all == 40, "{most} of {all}, {few} unsought");
        // In a small context, demonstrations without a rejection are used if no other fits.
        let (few, all) = rejecting(1.0, 350);
        assert!(few < most && all == 40, "{few} of {all}, {most} with more room");
    }
}
