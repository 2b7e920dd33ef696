//! Rollouts that are single completions at steps of demonstrations: Shop-R1.
//!
//! The RL loop is unchanged: a single-step example replaces the goal, one completion replaces the episode,
//! and the Shop-R1 reward replaces the shop's reward. Losses that need V*, and runs that choose goals by the spread of
//! their rewards, always train on the first drawn step of a goal, because V* and spread are of that step only. Others draw a new step
//! of the goal in each RL step that draws the goal. The self-certainty of a rationale is computed from the sampler's own logits.
//!
//! Paper: Shop-R1 (arXiv 2507.17842, section 3), which is GRPO on these completions after cloning of the same
//! steps. Deviations:
//!
//! - Steps are an expert's, and terminate examples are made from the shop. The paper has recorded users of a
//!   site. The rationales are templates.
//! - In a layout, a completion is a thought and an action of the shop, [parsed](StepFormat::parse) to the JSON of the paper, which has
//!   no action to terminate and always names the field of a search. The prompt has the thoughts before. Steps are those of the
//!   run's demonstrator; of the browsing expert, of purchases with a reward of 1, for which it tries a goal up to eight times. Whole
//!   episodes are cloned.
//! - The paper clones the steps that it then trains on. Here a share of the cloned steps is the no-thinking
//!   expert's; RL uses the thinking expert's only.
//! - The group size, which the paper does not state, is 8 by default. A group without spread gives no
//!   gradient.
//! - The KL is a term of the loss, with the estimator of `rl.loss.kl`, against the policy after cloning.
//! - Self-certainty is computed from logits before temperature. Completions are drawn at `rl.temperature`.
//! - The small preset shows the current page and the actions so far; the paper's prompt shows all pages.
//!
//! Choices within the reward are fields of [`RewardConfig`](webshop_evaluation::next_action::RewardConfig).

use webshop_agent::next_action::{FormatMode, NextActionCompletion, WrittenAction};
use webshop_agent::{SampleOptions, SingleStepPrompt};
use webshop_evaluation::mean;
use webshop_evaluation::next_action::{Attempt, DarsKind, Exactness, ShopR1Reward, is_exact};
use webshop_lm::{Completion, SamplingCoordinates};

use crate::config::{Config, Mix, StepScore};
use crate::data::single_steps::{SampledSteps, Step, StepSampler};
use crate::data::step_format::{ParsedStep, StepFormat};
use crate::data::task_set::{TaskId, TaskSet, sampled};
use crate::data::trajectory::Trajectory;
use crate::error::Result;
use crate::loss::Scored;
use crate::metrics::record::mean_entropy;
use crate::metrics::{Metric, Record};
use crate::model::network::Network;
use crate::setup::limits::lm_config;
use crate::trainer::VALUE_STEP;
use crate::trainer::experiment::Experiment;
use crate::trainer::progress::Progress;
use crate::trainer::task_source::{RolloutRequest, Rollouts, TaskSource, first_samples};
use crate::value::ReferenceRollout;

/// Completions at steps of demonstrations for the goals of a curriculum stage.
pub(super) struct SingleStep<'a> {
    pub(super) ex: &'a Experiment<'a>,
    pub(super) tasks: TaskSet,
}

impl TaskSource for SingleStep<'_> {
    /// As many goals as `value.goals`, without those that have no first step.
    fn goals(&self, optimizer_step: u64) -> Result<Vec<TaskId>> {
        let format = step_format(self.ex, 1.0, 1.0)?;
        let examples = steps_of(self.ex, &self.tasks);
        let mut goals = sampled(examples.addresses().to_vec(), self.ex.seed(), self.ex.config.value.goals);
        goals.sort();
        let drawn = examples.of(&format, &goals, 0, optimizer_step)?;
        Ok(drawn.steps.into_iter().map(|step| step.goal).collect())
    }

    fn collect(
        &self,
        request: &RolloutRequest<'_>,
        progress: &mut Progress,
        record: &mut Record,
    ) -> Result<Rollouts> {
        let RolloutRequest { step, goals, network, reference } = *request;
        let completer = self.completer()?;
        let examples = steps_of(self.ex, &self.tasks);
        // V* and spread are known of the first drawn step only.
        let is_first = self.ex.needs_values() || self.ex.chooses_by_spread();
        let mut drawn = match is_first {
            true => examples.of(&completer.format, goals, 0, step)?,
            false => examples.of_step(&completer.format, goals, step)?,
        };
        let began = progress.clock.seconds();
        let group_size = self.ex.config.rl.group_size;
        let firsts = first_samples(drawn.steps.iter().map(|step| step.goal), group_size);
        drawn.steps.iter_mut().zip(firsts).for_each(|(step, first)| step.first_sample = first);
        let completions = completer.complete(network, &drawn.steps, step, group_size, &|_| ())?;
        record_completions(record, &completions, &drawn);
        let mut rollouts = Rollouts::default();
        for (place, completion) in completions.into_iter().enumerate() {
            let group = place / group_size;
            let v_star = reference.v_star(drawn.steps[group].goal);
            let ScoredCompletion { trajectory, reward, .. } = completion;
            let scored = Scored::single_turn(group, reward, v_star, trajectory.n_sampled());
            rollouts.push(trajectory, scored);
        }
        let n_tokens = rollouts.n_sampled();
        progress.throughput.completed(n_tokens, progress.clock.seconds() - began);
        rollouts.count_tokens(progress, record);
        record
            .set(Metric::RolloutTokens, n_tokens as f64 / rollouts.batch.len() as f64)
            .set(Metric::TrainEntropy, mean_entropy(&rollouts.batch));
        Ok(rollouts)
    }

    fn reference_rollouts(
        &self,
        reference: &Network,
        goals: &[TaskId],
        at: u64,
        n_samples: usize,
    ) -> Result<Vec<Vec<ReferenceRollout>>> {
        let completer = self.completer()?;
        let drawn = steps_of(self.ex, &self.tasks).of(&completer.format, goals, 0, at - VALUE_STEP)?;
        let advance = |n| self.ex.observer.advance(n, "");
        let completions = completer.complete(reference, &drawn.steps, at, n_samples, &advance)?;
        let mut of_goals = vec![Vec::new(); goals.len()];
        for (place, completions) in drawn.places.iter().zip(completions.chunks(n_samples)) {
            let rollout = |completion: &ScoredCompletion| ReferenceRollout {
                reward: completion.reward,
                is_success: completion.is_exact,
                n_tokens: completion.trajectory.n_sampled(),
                states: Vec::new(),
            };
            of_goals[*place] = completions.iter().map(rollout).collect();
        }
        Ok(of_goals)
    }
}

impl<'a> SingleStep<'a> {
    /// Completions at the temperature and under the reward of training.
    fn completer(&self) -> Result<Completer<'a>> {
        let rl = &self.ex.config.rl;
        let rule = ShopR1Reward::Hierarchical(self.ex.config.shop_r1.reward.clone());
        Completer::new(self.ex, (rl.temperature, rl.top_p), rule)
    }
}

fn record_completions(record: &mut Record, completions: &[ScoredCompletion], drawn: &SampledSteps) {
    let share = |holds: fn(&ScoredCompletion) -> bool| {
        completions.iter().filter(|completion| holds(completion)).count() as f64 / completions.len() as f64
    };
    let rewards: Vec<f64> = completions.iter().map(|completion| completion.hierarchical).collect();
    record
        .set(Metric::RolloutReward, mean(&rewards))
        .set(Metric::RolloutExactAction, share(|completion| completion.is_exact))
        .set(Metric::RolloutTypeAccuracy, share(|completion| completion.is_type_right))
        .set(Metric::RolloutMalformedRate, share(|completion| !completion.is_parsed))
        .set(Metric::RolloutDroppedSteps, drawn.n_dropped() as f64);
}

/// The steps of the goals of `tasks`. A layout has no action to terminate, so that all its steps are of episodes.
pub(super) fn steps_of<'t>(ex: &'t Experiment<'_>, tasks: &'t TaskSet) -> StepSampler<'t> {
    let Config { prompt, shop_r1, run, .. } = ex.config;
    let is_chat = prompt.format.is_chat();
    StepSampler {
        task_set: tasks,
        results_shown: prompt.results_shown,
        mix: if is_chat { shop_r1.mix } else { Mix::Natural },
        terminate_share: if is_chat { shop_r1.terminate_share } else { 0.0 },
        browsing: ex.config.browsing_demonstrator(),
        max_steps: run.max_steps,
        recorded: ex.recorded.as_ref(),
        seed: ex.seed(),
    }
}

/// Single steps in the run's prompt format, which must have them, with completions at this temperature and nucleus.
pub(super) fn step_format<'e>(
    ex: &'e Experiment<'_>,
    temperature: f64,
    top_p: f64,
) -> Result<StepFormat<'e>> {
    ex.policy.step_format(&lm_config(ex.config, temperature, top_p)?)
}

/// A completion with its score.
pub(super) struct ScoredCompletion {
    trajectory: Trajectory,
    pub(super) text: String,
    /// The reward of training.
    reward: f64,
    /// The hierarchical reward, before `shop_r1.reward_scale`.
    pub(super) hierarchical: f64,
    is_parsed: bool,
    is_type_right: bool,
    is_exact: bool,
}

/// Samples and scores completions.
pub(super) struct Completer<'e> {
    ex: &'e Experiment<'e>,
    pub(super) format: StepFormat<'e>,
    rule: ShopR1Reward,
}

impl<'e> Completer<'e> {
    /// Samples at this (temperature, top-p) and scores by `rule`.
    pub(super) fn new(
        ex: &'e Experiment<'e>,
        (temperature, top_p): (f64, f64),
        rule: ShopR1Reward,
    ) -> Result<Self> {
        Ok(Self { ex, format: step_format(ex, temperature, top_p)?, rule })
    }

    /// `n_samples` completions of `network` at each of `steps`, drawn at step coordinate `at`, step by step.
    /// `ended` is called with the number of completions that have just finished.
    pub(super) fn complete(
        &self,
        network: &Network,
        steps: &[Step],
        at: u64,
        n_samples: usize,
        ended: &dyn Fn(u64),
    ) -> Result<Vec<ScoredCompletion>> {
        let _span = tracing::debug_span!("rollout", completions = steps.len() * n_samples).entered();
        let prompt = |step: &Step| SamplingCoordinates {
            step: at,
            environment: u64::from(step.goal.shop),
            task: u64::from(step.goal.goal.0),
            sample: step.first_sample,
            turn: step.turn as u64,
            ..SamplingCoordinates::default()
        };
        let prompts: Vec<SingleStepPrompt<'_>> = steps
            .iter()
            .map(|step| SingleStepPrompt { prompt_ids: &step.rendered.prompt_ids, coordinates: prompt(step) })
            .collect();
        let lanes = network.lanes(self.ex.config.prompt.max_context);
        let options =
            SampleOptions { n_samples, lanes, seed: self.ex.seed(), certainty: Some(self.rule.certainty()) };
        let sampler = self.format.sampler();
        let completions = sampler.sample(network.engine()?, &prompts, options, ended)?;
        let of_steps = completions.chunks(n_samples).zip(steps);
        of_steps
            .flat_map(|(completions, step)| completions.iter().map(move |completion| (completion, step)))
            .map(|(completion, step)| self.score(step, completion))
            .collect()
    }

    fn score(&self, step: &Step, completion: &Completion) -> Result<ScoredCompletion> {
        let config = &self.ex.config.shop_r1;
        let ParsedStep { text, rationale } = self.format.parse(&step.rendered, &completion.ids)?;
        let certainty = mean(&rationale.iter().map(|&at| completion.certainty[at]).collect::<Vec<_>>());
        let n_prompt_words = match config.reward.dars_kind {
            DarsKind::Constant => 0,
            DarsKind::RepoCompat => {
                self.format.sampler().text_of(&step.rendered.prompt_ids).split_whitespace().count()
            }
        };
        let attempt = Attempt { completion: &text, gold: &step.gold, certainty, n_prompt_words };
        let hierarchical = self.rule.of(&attempt).total();
        let parsed =
            NextActionCompletion::read(&text, FormatMode::Json).ok().map(|completion| completion.action);
        let parsed_type = parsed.as_ref().and_then(WrittenAction::action_type);
        let is_exact = is_exact(parsed.as_ref(), &step.gold, Exactness::Soft);
        let reward = match config.score {
            StepScore::Hierarchical => hierarchical,
            StepScore::Binary => f64::from(u8::from(is_exact)),
        };
        let mut trajectory =
            Trajectory::completion(&step.rendered.prompt_ids, &completion.ids, &completion.log_probs);
        let entropy: Vec<f64> = completion.entropy.iter().map(|&nats| f64::from(nats)).collect();
        trajectory.mean_entropy = mean(&entropy);
        Ok(ScoredCompletion {
            trajectory,
            text,
            reward: config.reward_scale * reward,
            hierarchical,
            is_parsed: parsed.is_some(),
            is_type_right: parsed_type == Some(step.gold.action_type()),
            is_exact,
        })
    }
}
