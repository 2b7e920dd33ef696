//! Collects single-step examples from expert episodes, oracle episodes, recorded episodes and human sessions.
//!
//! An [`ExampleCollector`] takes one source after the other, keeps the examples of successful episodes for
//! goals of one split, and counts what it leaves out, by reason. [`ExampleCollector::add_terminate_examples`]
//! adds result pages on which `terminate` is right. It reads no files: callers pass it text.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use webshop_env::{Action, RESULTS_PER_PAGE, Shop};
use webshop_products::{GoalId, Seed, Split};

use crate::episode::read::read_episode;
use crate::episode::{Episode, EpisodeCoordinates, EpisodeExt};
use crate::error::AgentError;
use crate::expert::two_habits::{Expert, ExpertKind};
use crate::next_action::example::{Example, ExampleSource};
use crate::next_action::from_episodes::{ExampleOptions, examples_of, session_of};
use crate::next_action::human::SessionReader;
use crate::next_action::mapping::BuyNowAs;
use crate::next_action::mix::{n_terminate_examples, n_terminate_examples_of_paper, terminate_examples};
use crate::policies::oracle::OraclePolicy;
use crate::rollout::task::Task;
use crate::rollout::{RolloutConfig, rollout};

/// Step limit and concurrent episodes of the oracle.
const ORACLE_ROLLOUT: RolloutConfig = RolloutConfig { max_steps: 15, lanes: 128 };

/// Reason for leaving out an episode.
const OTHER_SPLIT: &str = "the goal is in another split";

/// A selection of episodes, and the mapping of purchases.
#[derive(Clone, Copy, Debug)]
pub struct CollectionOptions {
    /// Only episodes for goals of this split are kept.
    pub split: Split,
    /// Maximum number of episodes; `None` for all.
    pub max_episodes: Option<usize>,
    /// Shop-R1's action for a purchase.
    pub buy_now_as: BuyNowAs,
}

/// How many `terminate` examples are added.
#[derive(Clone, Copy, Debug)]
pub enum TerminateShare {
    /// This share of all examples, at least 0 and below 1.
    Of(f64),
    /// As many as [`paper_mix`](super::paper_mix) needs.
    PaperMix,
}

/// Collects single-step examples of successful episodes for goals of one split, and counts what it leaves
/// out, by reason.
#[derive(Debug)]
pub struct ExampleCollector<'a> {
    shop: &'a Arc<Shop>,
    options: CollectionOptions,
    /// In the order of the episodes; ids are unique.
    examples: Vec<Example>,
    n_episodes: usize,
    /// In the order of first occurrence.
    skipped: Vec<SkipCount>,
    /// `terminate` examples that were not found.
    n_missing: usize,
    /// Episodes by name.
    names: BTreeMap<String, usize>,
}

/// Episodes left out for one reason.
#[derive(Debug)]
struct SkipCount {
    reason: String,
    n: usize,
    /// Place of the first in its source.
    first: String,
}

impl<'a> ExampleCollector<'a> {
    /// An empty collection.
    pub fn new(shop: &'a Arc<Shop>, options: CollectionOptions) -> Self {
        Self {
            shop,
            options,
            examples: Vec::new(),
            n_episodes: 0,
            skipped: Vec::new(),
            n_missing: 0,
            names: BTreeMap::new(),
        }
    }

    /// Whether the maximum number of episodes is reached.
    pub fn is_full(&self) -> bool {
        self.options.max_episodes == Some(self.n_episodes)
    }

    /// Adds an episode of the expert for each goal; its written thoughts become rationales.
    pub fn add_expert_episodes(&mut self, goals: &[GoalId]) {
        let expert = Expert::new(self.shop, RESULTS_PER_PAGE);
        for &goal in goals {
            let Some(turns) = expert.episode(goal, ExpertKind::Thinking) else {
                self.skip("the expert has no demonstration", format!("goal {}", goal.0));
                continue;
            };
            let steps: Vec<(String, Action)> =
                turns.into_iter().map(|turn| (turn.thought, turn.action)).collect();
            let split = self.shop.goals().split_of(goal).to_string();
            let options = self.example_options(ExampleSource::Demonstration, &split);
            self.add(examples_of(self.shop, goal, &steps, options));
        }
    }

    /// Runs the policy `oracle` for each goal and adds its successful episodes.
    ///
    /// # Errors
    /// Those of the rollout.
    pub fn add_oracle_episodes(&mut self, goals: &[GoalId]) -> Result<(), AgentError> {
        let coordinates = EpisodeCoordinates::of_goal;
        let tasks: Vec<Task> =
            goals.iter().map(|&goal| Task::new(self.shop.clone(), coordinates(goal))).collect();
        for episode in rollout(&mut OraclePolicy, &tasks, ORACLE_ROLLOUT, &mut |_, _| ())? {
            let place = format!("goal {}", episode.goal.0);
            self.add_episode(&episode, ExampleSource::Oracle, place);
        }
        Ok(())
    }

    /// Replays a recorded episode, line `line` of its file from 1, and adds it if it succeeded.
    ///
    /// # Errors
    /// As [`read_episode`](crate::read_episode).
    pub fn add_recorded_episode(&mut self, text: &str, line: usize) -> Result<(), AgentError> {
        let episode = read_episode(text, line, self.shop)?;
        self.add_episode(&episode, ExampleSource::Policy, format!("line {line}"));
        Ok(())
    }

    /// Adds the sessions of people in `text`, the content of the file `path` whose name without extension is
    /// `name`. Stops when the collection is full.
    ///
    /// # Errors
    /// As [`SessionReader::read`].
    pub fn add_human_sessions(&mut self, path: &str, name: &str, text: &str) -> Result<(), AgentError> {
        let recordings = SessionReader::new(self.shop, self.options.buy_now_as);
        for session in recordings.read(name, text)? {
            if self.is_full() {
                break;
            }
            match session {
                Ok(session) if self.includes(&session.split) => self.add(session.examples()),
                Ok(session) => self.skip(OTHER_SPLIT, session.name),
                Err(skip) => {
                    let place = format!("{path}, line {}: {}", skip.line, skip.detail);
                    self.skip(&skip.reason.to_string(), place);
                }
            }
        }
        Ok(())
    }

    /// Adds result pages without a product worth buying, where `terminate` is right: for the goals of the
    /// examples so far, or for `goals` if no example has a goal of this shop. `seed` draws the searches.
    pub fn add_terminate_examples(&mut self, share: TerminateShare, goals: &[GoalId], seed: Seed) {
        let n = match share {
            TerminateShare::Of(share) => n_terminate_examples(&self.examples, share),
            TerminateShare::PaperMix => n_terminate_examples_of_paper(&self.examples),
        };
        let mut seen = BTreeSet::new();
        let own = self.examples.iter().filter_map(|example| example.goal.map(GoalId));
        let own: Vec<GoalId> = own.filter(|&goal| seen.insert(goal)).collect();
        let goals = if own.is_empty() { goals } else { &own };
        let found = terminate_examples(self.shop, goals, n, self.options.buy_now_as, seed);
        self.n_missing += n - found.len();
        self.examples.extend(found);
    }

    /// A line for each reason for which something was left out.
    pub fn left_out(&self) -> Vec<String> {
        let line = |SkipCount { reason, n, first }: &SkipCount| {
            let episodes = if *n == 1 { "episode" } else { "episodes" };
            format!("left out: {n} {episodes}, because {reason} (the first: {first})")
        };
        let mut lines: Vec<String> = self.skipped.iter().map(line).collect();
        if self.n_missing > 0 {
            lines.push(format!("left out: {} terminate examples, because no more are found", self.n_missing));
        }
        lines
    }

    /// The examples.
    pub fn into_examples(self) -> Vec<Example> {
        self.examples
    }

    fn add_episode(&mut self, episode: &Episode, source: ExampleSource, place: String) {
        let split = self.shop.goals().split_of(episode.goal).to_string();
        if !episode.is_success() {
            self.skip("the reward is below 1", place);
        } else if !self.includes(&split) {
            self.skip(OTHER_SPLIT, place);
        } else {
            self.add(session_of(self.shop, episode, self.example_options(source, &split)).examples());
        }
    }

    /// Adds the examples of an episode. The second episode of the same name is called `NAME.2`, and so on.
    fn add(&mut self, mut examples: Vec<Example>) {
        let name = |example: &Example| example.id.rsplit_once('-').map(|(name, _)| name.to_owned());
        if let Some(name) = examples.first().and_then(name) {
            let n = self.names.entry(name.clone()).or_default();
            *n += 1;
            for example in examples.iter_mut().filter(|_| *n > 1) {
                example.id = format!("{name}.{n}-{}", example.step);
            }
            self.n_episodes += 1;
        }
        self.examples.append(&mut examples);
    }

    fn skip(&mut self, reason: &str, place: String) {
        match self.skipped.iter_mut().find(|skipped| skipped.reason == reason) {
            Some(skipped) => skipped.n += 1,
            None => self.skipped.push(SkipCount { reason: reason.into(), n: 1, first: place }),
        }
    }

    fn example_options<'s>(&self, source: ExampleSource, split: &'s str) -> ExampleOptions<'s> {
        ExampleOptions { source, split, buy_now_as: self.options.buy_now_as }
    }

    fn includes(&self, split: &str) -> bool {
        self.options.split == Split::All || self.options.split.to_string() == split
    }
}
