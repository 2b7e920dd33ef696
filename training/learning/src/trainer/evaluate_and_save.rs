//! Measuring, recording and saving: what the loop does beside learning.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use serde::Serialize;
use webshop_agent::{Episode, Task, rollout};
use webshop_lm::Sampler;

use crate::trainer::reference::Guide;
use crate::trainer::single_steps::Examined;
use crate::trainer::{Best, CONFIG, EVALUATION_STEP, MODEL, OPTIMIZER, SHOWN_TRIPS, Stage, Trainer};
use crate::run::folder::{RunFolder, step_name};
use crate::model::kl::kl_to;
use crate::run::atomic::{read_json, write_atomically, write_json};
use crate::error::{Result, TrainingError};
use webshop_evaluation::summarize;
use crate::data::task_set::GroundGoal;
use crate::metrics::{Metric, Phase, Record, Timing};
use crate::model::network::Network;
use crate::metrics::record::{mean_entropy, record_evaluation, record_next_action};
use crate::setup::{Fingerprint, lm_config};
use webshop_evaluation::next_action::Verdict;
use crate::data::trajectory::Trajectory;

/// Saves what the run is about, or refuses to continue a run that was about something else.
pub(super) fn keep_fingerprint(run: &RunFolder, found: &Fingerprint) -> Result<()> {
    let path = run.fingerprint();
    let begun: Option<Fingerprint> = path.is_file().then(|| read_json(&path)).transpose()?;
    if let Some(begun) = begun.filter(|begun| begun != found) {
        if begun.compute != found.compute {
            let [begun, found] = [&begun.compute, &found.compute]
                .map(|compute| if compute.is_empty() { "CPU, F32, its own engine" } else { compute });
            let problem = format!(
                "the run is computed on `{begun}`, not on `{found}`; continue it with the `--device`, `--dtype` and \
                 `--plain-kernels` that it was begun with"
            );
            return Err(TrainingError::bad_file(&path, problem));
        }
        let problem = "the shop, its goals, its rewards, the prompt or the tokenizer changed since the run began; start a new run";
        return Err(TrainingError::bad_file(&path, problem));
    }
    write_json(&path, found)
}

/// Measuring, recording, saving.
impl Trainer<'_> {
    /// Evaluates when `step` of the `total` steps of a phase is one to do so; the last one has an evaluation anyway.
    pub(super) fn maybe_evaluate(
        &mut self,
        phase: Phase,
        step: u64,
        total: u64,
        guide: Option<&Guide>,
    ) -> Result<()> {
        let every = match phase {
            Phase::WarmStart => self.config.evaluation.warm_start_every,
            Phase::Learn => self.config.evaluation.every,
        };
        if every == 0 || !step.is_multiple_of(every) || step >= total {
            return Ok(());
        }
        match guide.map(Guide::first_reference) {
            None => self.evaluate(phase, None)?,
            Some(Some(reference)) => self.evaluate(phase, Some(reference))?,
            Some(None) => {
                let reference = self.first_reference()?;
                self.evaluate(phase, Some(&reference))?
            }
        };
        Ok(())
    }

    /// Held-out figures of the policy as it is, recorded under the step taken last, with how far it has come from
    /// `reference`.
    pub(super) fn evaluate(&mut self, phase: Phase, reference: Option<&Network>) -> Result<Stage> {
        let began = self.clock.seconds();
        let config = &self.config.evaluation;
        let goals = self.ground.held_out(config.split.into(), config.episodes);
        let at = |goal| GroundGoal { shop: 0, goal };
        let step = EVALUATION_STEP + self.state.step;
        let tasks: Vec<Task> = goals.into_iter().map(|goal| self.task(at(goal), step, 0)).collect();
        let lm = lm_config(self.config, config.temperature, config.top_p)?;
        let sampler = Sampler::new(config.temperature as f32, config.top_p as f32)?;
        let network = self.student.network();
        let mut policy = self.actor.policy(network.engine()?, lm, self.seed())?;
        let episodes = rollout(&mut policy, &tasks, self.rollout_config(network), &mut |_, _| ())?;
        self.pace.rolled_out(&episodes, self.clock.seconds() - began);
        let summary = summarize(&episodes);
        let mut record = Record::new(phase, self.state.step);
        record_evaluation(&mut record, &summary);
        let trips: Vec<Trajectory> = episodes.iter().filter_map(Trajectory::from_episode).collect();
        record.set(Metric::EvalEntropy, mean_entropy(&trips));
        if let Some(reference) = reference.filter(|_| config.temperature > 0.0) {
            let limit_tokens = self.config.learner.micro_batch_tokens;
            record.set(Metric::EvalKl, kl_to(reference, &trips, sampler, limit_tokens)?);
        }
        let examined = match self.knows_steps() && self.config.shop_r1.eval_steps > 0 {
            true => Some(self.examine()?),
            false => None,
        };
        self.observer.say(&format!("step {}: held out {summary}", self.state.step));
        if let Some(Examined { verdicts, scores, reward }) = &examined {
            self.record_answers(verdicts)?;
            record_next_action(&mut record, scores, *reward);
            self.observer.say(&format!("step {}: held out {scores}", self.state.step));
        }
        self.log(&record, began)?;
        if phase == Phase::Learn && self.config.checkpoint.best {
            self.state.best = Some(Best::of(self.state.best, self.state.step, summary.success_rate));
        }
        self.record_episodes(&episodes)?;
        let shown = episodes.iter().zip(&tasks).take(SHOWN_TRIPS);
        let trips = shown.map(|(episode, task)| episode.tell(&task.shop)).collect();
        Ok(Stage {
            step: self.state.step,
            seconds: self.clock.seconds(),
            summary,
            trips,
            next_action: examined.map(|examined| examined.scores),
        })
    }

    /// Keeps the held-out trips whole.
    fn record_episodes(&self, episodes: &[Episode]) -> Result<()> {
        let shop = self.ground.shop();
        self.record_lines(&self.run.episodes(), episodes.iter().map(|episode| episode.record(shop)))
    }

    /// Keeps the answers at held-out steps.
    fn record_answers(&self, verdicts: &[Verdict]) -> Result<()> {
        let folder = self.run.answers();
        fs::create_dir_all(&folder).map_err(|e| TrainingError::io("create", &folder, e))?;
        self.record_lines(&folder, verdicts)
    }

    /// Keeps what was found at this step in `folder`, one JSON object a line.
    fn record_lines<T: Serialize>(&self, folder: &Path, all: impl IntoIterator<Item = T>) -> Result<()> {
        let path = folder.join(format!("{}.jsonl", step_name(self.state.step)));
        let mut lines = Vec::new();
        for each in all {
            serde_json::to_writer(&mut lines, &each)
                .map_err(|error| TrainingError::bad_file(&path, error))?;
            lines.push(b'\n');
        }
        write_atomically(&path, &lines)
    }

    /// Writes a record and, apart from it, how long the step took that was begun then, and how fast its parts were.
    pub(super) fn log(&mut self, record: &Record, began: f64) -> Result<()> {
        let now = self.clock.seconds();
        let mut timing = Timing::new(record.phase, record.step, now);
        std::mem::take(&mut self.pace).tell(&mut timing, now - began);
        self.metrics.write(record, &timing)
    }

    pub(super) fn maybe_save_or_stop(&mut self) -> Result<()> {
        let stopped = self.stop.load(Ordering::Relaxed);
        let every = self.config.checkpoint.every;
        let is_due = every > 0 && self.state.step.is_multiple_of(every);
        if stopped || is_due || self.is_best() {
            self.save()?;
        }
        if stopped {
            self.observer.end();
            return Err(TrainingError::Interrupted { step: self.state.step, run: self.run.root().into() });
        }
        Ok(())
    }

    /// Whether the last evaluation was of these weights and the best so far.
    fn is_best(&self) -> bool {
        self.state.best.is_some_and(|best| best.step == self.state.step)
    }

    /// Writes the policy as it is into a model folder.
    pub(super) fn save_model(&self, folder: &Path) -> Result<()> {
        self.student.bring_home(&self.actor.model)?;
        self.actor.save(folder)
    }

    pub(super) fn save(&mut self) -> Result<()> {
        self.state.metrics = self.metrics.sync()?;
        self.state.seconds = self.clock.seconds();
        self.run.save_checkpoint(self.state.step, &self.state, |folder| {
            self.save_model(&folder.join(MODEL))?;
            write_atomically(&folder.join(CONFIG), self.config.to_toml().as_bytes())?;
            self.student.save_moments(&folder.join(OPTIMIZER))
        })?;
        if self.is_best() {
            self.run.set_best(self.state.step)?;
        }
        self.forget_references()?;
        self.run.keep_newest(self.config.checkpoint.keep)
    }
}
