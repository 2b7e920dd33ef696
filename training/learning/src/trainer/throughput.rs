//! The throughput of a step: work done in it and the seconds it took.

use webshop_agent::{Episode, EpisodeExt};

use crate::metrics::Timing;

/// The work of a step so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Throughput {
    rollout_seconds: f64,
    fork_seconds: f64,
    env_steps: usize,
    generated_tokens: usize,
    train_seconds: f64,
    trained_tokens: usize,
}

impl Throughput {
    /// Counts episodes of a rollout.
    pub(super) fn rolled_out(&mut self, episodes: &[Episode], seconds: f64) {
        self.rollout_seconds += seconds;
        self.env_steps += episodes.iter().map(|episode| episode.turns.len()).sum::<usize>();
        self.generated_tokens += episodes.iter().map(EpisodeExt::n_sampled_tokens).sum::<usize>();
    }

    /// Counts tokens of single-step completions.
    pub(super) fn completed(&mut self, n_tokens: u64, seconds: f64) {
        self.rollout_seconds += seconds;
        self.generated_tokens += n_tokens as usize;
    }

    /// Counts seconds of forked reference rollouts, which are not part of the rollout.
    pub(super) fn forked(&mut self, seconds: f64) {
        self.fork_seconds += seconds;
    }

    /// Counts tokens of prompts and completions of a gradient computation.
    pub(super) fn trained(&mut self, n_tokens: usize, seconds: f64) {
        self.train_seconds += seconds;
        self.trained_tokens += n_tokens;
    }

    /// Adds seconds and speeds to the timing of a step. Parts without work have no speed.
    pub(super) fn write_to(self, timing: &mut Timing, step_seconds: f64) {
        timing.parts.insert("step".into(), step_seconds);
        timing.perf.insert("step_s".into(), step_seconds);
        let parts =
            [("rollout", self.rollout_seconds), ("forks", self.fork_seconds), ("train", self.train_seconds)];
        for (part, seconds) in parts {
            if seconds > 0.0 {
                timing.parts.insert(part.into(), seconds);
            }
        }
        for (name, count, seconds) in [
            ("env_steps_per_s", self.env_steps, self.rollout_seconds),
            ("gen_tok_per_s", self.generated_tokens, self.rollout_seconds),
            ("train_tok_per_s", self.trained_tokens, self.train_seconds),
        ] {
            if count > 0 && seconds > 0.0 {
                timing.perf.insert(name.into(), count as f64 / seconds);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Phase;

    #[test]
    fn speeds_are_counts_divided_by_the_seconds_of_their_part() {
        let mut throughput =
            Throughput { rollout_seconds: 4.0, env_steps: 6, generated_tokens: 100, ..Throughput::default() };
        throughput.forked(2.5);
        throughput.trained(300, 0.5);
        throughput.trained(100, 1.5);
        let mut timing = Timing::new(Phase::Learn, 1, 9.0);
        throughput.write_to(&mut timing, 7.0);
        let listed: Vec<(&str, f64)> =
            timing.perf.iter().map(|(name, speed)| (name.as_str(), *speed)).collect();
        let expected =
            [("env_steps_per_s", 1.5), ("gen_tok_per_s", 25.0), ("step_s", 7.0), ("train_tok_per_s", 200.0)];
        assert_eq!(listed, expected);
        let parts: Vec<(&str, f64)> = timing.parts.iter().map(|(name, s)| (name.as_str(), *s)).collect();
        assert_eq!(parts, [("forks", 2.5), ("rollout", 4.0), ("step", 7.0), ("train", 2.0)]);
        let mut timing = Timing::new(Phase::WarmStart, 1, 9.0);
        Throughput::default().write_to(&mut timing, 1.0);
        assert_eq!(timing.perf.len(), 1, "nothing but the step was timed");
    }
}
