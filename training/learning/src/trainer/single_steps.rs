//! Single answers at steps of demonstrations, in the place of trips: Shop-R1.
//!
//! The learner's loop stays what it is: a step stands where a goal's door stood, an answer where a trip, and what the answer
//! is worth beside what was really done where the shop's reward was. Losses that ask for V* have one of each goal's first
//! step, which is then the step that is practised; others meet another step of a goal each time they come to it. How sure
//! the model was of its rationale is measured where tokens are drawn, on the sampler's own logits.
//!
//! Shop-R1 (arXiv 2507.17842, section 3) is GRPO on these answers, behind cloning of the same steps. What is otherwise here:
//!
//! - Steps are a demonstrator's and dead ends of a shop, not customers' of a site, and their rationales are templates.
//! - The paper clones the steps that it then learns from. Here a share of what is cloned is a hasty customer's; what is
//!   learned from is the careful one's alone.
//! - The group size, which the paper does not state, is 8 where nothing is said. A group without spread teaches nothing.
//! - The KL is in the loss, by the estimator of `learner.kl`, against the policy at the end of the cloning.
//! - How sure a model was is read from logits before temperature, and answers are drawn at the temperature learned at.
//! - The small preset shows the present page and the actions so far; the paper's prompt shows all pages.
//!
//! What the reward leaves open is decided in [`RewardConfig`].

use webshop_agent::next_action::{Answer, FormatMode, WrittenAction, rationale_tokens};
use webshop_lm::{Completion, SamplingCoordinates};
use webshop_agent::{Interviewer, Question};
use webshop_products::Seed;

use crate::trainer::reference::Guide;
use crate::trainer::{EVALUATION_STEP, Trainer};
use crate::config::{Config, Judge, Practice};
use crate::error::Result;
use crate::data::task_set::{Ground, GroundGoal, sampled};
use crate::loss::{Learner, Scored, ScoredTurn};
use crate::metrics::{Metric, Record};
use crate::model::network::Network;
use crate::metrics::record::mean_entropy;
use crate::setup::lm_config;
use webshop_evaluation::next_action::{Attempt, DarsKind, Exactness, NextActionScores, RewardConfig, ShopR1Reward, Verdict, is_exact, judge, scores_of};
use crate::data::single_steps::{Step, Steps};
use webshop_evaluation::mean;
use crate::data::trajectory::Trajectory;
use crate::value::ReferenceTrip;

/// An answer and what it is worth.
struct Judged {
    trajectory: Trajectory,
    text: String,
    /// What is learned from.
    reward: f64,
    /// What the hierarchical reward says, before the scale.
    worth: f64,
    is_readable: bool,
    is_type_right: bool,
    is_exact: bool,
}

/// Answers at held-out steps.
pub(super) struct Examined {
    pub verdicts: Vec<Verdict>,
    pub scores: NextActionScores,
    /// Mean of the hierarchical reward.
    pub reward: f64,
}

impl Trainer<'_> {
    /// Whether single steps are practised.
    pub(super) fn practises_steps(&self) -> bool {
        self.config.learner.practice == Practice::Steps
    }

    /// Whether steps can be asked about in the dialect.
    pub(super) fn knows_steps(&self) -> bool {
        self.config.prompt.dialect.is_shop_r1()
    }

    /// The steps of the goals of `ground`.
    pub(super) fn steps_in<'t>(&'t self, ground: &'t Ground) -> Steps<'t> {
        Steps {
            ground,
            results_shown: self.config.prompt.results_shown,
            config: &self.config.shop_r1,
            recorded: self.recorded.as_ref(),
            seed: self.seed(),
        }
    }

    /// Who asks, drawing answers at this temperature and nucleus.
    pub(super) fn interviewer(&self, temperature: f64, top_p: f64) -> Result<Interviewer<'_>> {
        let lm = lm_config(self.config, temperature, top_p)?;
        Ok(self.actor.interviewer(&lm)?.expect("a dialect of Shop-R1's, which was checked"))
    }

    /// The rule by which answers are judged.
    fn rule(&self) -> ShopR1Reward {
        ShopR1Reward::Hierarchical(self.config.shop_r1.reward.clone())
    }

    /// The visit of a goal at a learner step: always the first where its V* is asked for.
    fn visit(&self, step: u64) -> u64 {
        if self.wants_values() { 0 } else { step }
    }

    /// Answers of `network` at `steps`, `n_samples` each, drawn at step coordinate `at` and judged by `rule`; `ended` is told
    /// how many have come.
    fn answers(
        &self,
        network: &Network,
        (interviewer, rule): (&Interviewer<'_>, &ShopR1Reward),
        steps: &[Step],
        (at, n_samples): (u64, usize),
        ended: &dyn Fn(u64),
    ) -> Result<Vec<Judged>> {
        let questions: Vec<Question<'_>> = steps
            .iter()
            .map(|step| Question {
                prompt_ids: &step.prompt_ids,
                coordinates: SamplingCoordinates {
                    step: at,
                    shop: u64::from(step.goal.shop),
                    goal: u64::from(step.goal.goal.0),
                    turn: step.turn as u64,
                    ..SamplingCoordinates::default()
                },
            })
            .collect();
        let lanes = network.lanes(self.config.prompt.max_context);
        let completions = interviewer.answers(
            network.engine()?,
            &questions,
            (n_samples, lanes),
            (self.seed(), Some(rule.certainty())),
            ended,
        )?;
        let of_steps = completions.chunks(n_samples).zip(steps);
        Ok(of_steps
            .flat_map(|(answers, step)| answers.iter().map(move |answer| (answer, step)))
            .map(|(answer, step)| self.judged(rule, interviewer, step, answer))
            .collect())
    }

    fn judged(
        &self,
        rule: &ShopR1Reward,
        interviewer: &Interviewer<'_>,
        step: &Step,
        answer: &Completion,
    ) -> Judged {
        let text = interviewer.text_of(&answer.ids);
        let of_rationale = rationale_tokens(&text, &interviewer.bytes_of_each(&answer.ids));
        let certainty = mean(&of_rationale.iter().map(|&at| answer.certainty[at]).collect::<Vec<_>>());
        let n_prompt_words = match self.config.shop_r1.reward.dars_kind {
            DarsKind::Constant => 0,
            DarsKind::RepoCompat => interviewer.text_of(&step.prompt_ids).split_whitespace().count(),
        };
        let attempt = Attempt { completion: &text, gold: &step.gold, certainty, n_prompt_words };
        let worth = rule.of(&attempt).total();
        let written = Answer::read(&text, FormatMode::Json).ok().map(|answer| answer.action);
        let written_type = written.as_ref().and_then(WrittenAction::action_type);
        let is_exact = is_exact(written.as_ref(), &step.gold, Exactness::Soft);
        let config = &self.config.shop_r1;
        let reward = match config.judge {
            Judge::Hierarchical => worth,
            Judge::Binary => f64::from(u8::from(is_exact)),
        };
        let mut trajectory = Trajectory::answer(&step.prompt_ids, &answer.ids, &answer.log_probs);
        trajectory.mean_entropy =
            mean(&answer.entropy.iter().map(|&nats| f64::from(nats)).collect::<Vec<_>>());
        Judged {
            trajectory,
            text,
            reward: config.reward_scale * reward,
            worth,
            is_readable: written.is_some(),
            is_type_right: written_type == Some(step.gold.action_type()),
            is_exact,
        }
    }

    /// Answers the step's questions, in the place of [`Trainer::make_trips`].
    pub(super) fn make_answers(
        &mut self,
        learner: &dyn Learner,
        guide: &Guide,
        goals: &[GroundGoal],
        step: u64,
        record: &mut Record,
    ) -> Result<(Vec<Trajectory>, Vec<Scored>)> {
        let (temperature, top_p) = (self.config.learner.temperature, self.config.learner.top_p);
        let interviewer = self.interviewer(temperature, top_p)?;
        let drawn = self.steps_in(&self.stage).of(&interviewer, goals, self.visit(step), step)?;
        let network = self.sampled_network(learner, guide);
        let began = self.clock.seconds();
        let group_size = self.config.learner.group_size;
        let asked = (&interviewer, &self.rule());
        let answers = self.answers(network, asked, &drawn.steps, (step, group_size), &|_| ())?;
        drop(interviewer);
        let share = |holds: fn(&Judged) -> bool| {
            answers.iter().filter(|answer| holds(answer)).count() as f64 / answers.len() as f64
        };
        record
            .set(Metric::RolloutReward, mean(&answers.iter().map(|answer| answer.worth).collect::<Vec<_>>()))
            .set(Metric::RolloutExactAction, share(|answer| answer.is_exact))
            .set(Metric::RolloutTypeAccuracy, share(|answer| answer.is_type_right))
            .set(Metric::RolloutMalformedRate, share(|answer| !answer.is_readable))
            .set(Metric::RolloutDroppedSteps, drawn.n_dropped() as f64);
        let (mut batch, mut scored) = (Vec::new(), Vec::new());
        for (place, answer) in answers.into_iter().enumerate() {
            let group = place / group_size;
            let n_tokens = answer.trajectory.n_sampled();
            scored.push(Scored {
                group,
                reward: answer.reward,
                v_star: guide.value(drawn.steps[group].goal).map_or(0.0, |value| value.v_star),
                turns: vec![ScoredTurn { n_tokens, state: 0, v_next: None }],
            });
            batch.push(answer.trajectory);
        }
        let n_tokens = batch.iter().map(|trip| trip.n_sampled() as u64).sum::<u64>();
        self.pace.answered(n_tokens, self.clock.seconds() - began);
        self.state.tokens += n_tokens;
        record
            .set(Metric::RolloutTokens, n_tokens as f64 / batch.len() as f64)
            .set(Metric::RolloutTokensTotal, self.state.tokens as f64)
            .set(Metric::TrainEntropy, mean_entropy(&batch));
        Ok((batch, scored))
    }

    /// As many goals as `[value] goals` says, of those that have a first step.
    pub(super) fn pool_of_steps(&self) -> Result<Vec<GroundGoal>> {
        let interviewer = self.interviewer(1.0, 1.0)?;
        let steps = self.steps_in(&self.stage);
        let mut goals = sampled(steps.addresses().to_vec(), self.seed(), self.config.value.goals);
        goals.sort();
        let drawn = steps.of(&interviewer, &goals, 0, self.state.step)?;
        Ok(drawn.steps.into_iter().map(|step| step.goal).collect())
    }

    /// What the reference earned at the first steps of `goals`, in the place of its trips; nothing for goals without one.
    pub(super) fn reference_answers(
        &self,
        guide: &Guide,
        goals: &[GroundGoal],
        (at, n_samples): (u64, usize),
    ) -> Result<Vec<Vec<ReferenceTrip>>> {
        let (temperature, top_p) = (self.config.learner.temperature, self.config.learner.top_p);
        let interviewer = self.interviewer(temperature, top_p)?;
        let drawn = self.steps_in(&self.stage).of(&interviewer, goals, 0, self.state.step)?;
        let asked = (&interviewer, &self.rule());
        let told = |n| self.observer.advance(n, "");
        let answers = self.answers(&guide.network, asked, &drawn.steps, (at, n_samples), &told)?;
        let mut of_goals = vec![Vec::new(); goals.len()];
        for (place, answers) in drawn.places.iter().zip(answers.chunks(n_samples)) {
            let trip = |answer: &Judged| ReferenceTrip {
                reward: answer.reward,
                n_tokens: answer.trajectory.n_sampled(),
                states: Vec::new(),
            };
            of_goals[*place] = answers.iter().map(trip).collect();
        }
        Ok(of_goals)
    }

    /// How the policy does at held-out steps, which are the same for every run and seed. Those whose prompts are too long
    /// count as answered by nothing. The reward is the default one, whatever is learned from, so that runs compare.
    pub(super) fn examine(&self) -> Result<Examined> {
        let Config { evaluation, shop_r1, prompt, .. } = self.config;
        let interviewer = self.interviewer(evaluation.temperature, evaluation.top_p)?;
        let split = evaluation.split.into();
        let held_out =
            Steps::held_out(&self.ground, prompt.results_shown, shop_r1, split, shop_r1.eval_steps);
        let (mut samples, mut steps, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (place, (goal, sample)) in held_out.into_iter().enumerate() {
            if let Some(step) = Step::told(&interviewer, goal, &sample)? {
                steps.push(step);
                places.push(place);
            }
            samples.push(sample);
        }
        let at = EVALUATION_STEP + self.state.step;
        let rule = ShopR1Reward::Hierarchical(RewardConfig::default());
        let answers =
            self.answers(self.student.network(), (&interviewer, &rule), &steps, (at, 1), &|_| ())?;
        let reward = answers.iter().map(|answer| answer.worth).sum::<f64>() / samples.len().max(1) as f64;
        let mut completions = vec![None; samples.len()];
        for (place, answer) in places.into_iter().zip(answers) {
            completions[place] = Some(answer.text);
        }
        let verdicts = judge(&samples, &completions);
        let scores = scores_of(&verdicts, Seed(0));
        Ok(Examined { verdicts, scores, reward })
    }
}
