//! One shopping trip as it happened.
//!
//! An [`Episode`] keeps, per turn, what was read and said as token ids ([`TurnTokens`], language models
//! only) and what the shop made of it. Text is derived from ids, never the other way round. It does not
//! judge: rewards are the shop's, advantages the trainer's.

pub mod file;
pub mod prefix;
pub mod replay;
pub mod site;

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use webshop_env::{
    Action, ENVIRONMENT_ID, EnvConfig, Footprint, NoopReason, RewardBreakdown, Shop, ShopFingerprint,
    TRIP_FORMAT, Trip, TripTurn,
};
use webshop_products::GoalId;

use crate::prompt_format::Dialect;
use webshop_lm::{Completion, Context, StopReason};

/// The address of an episode among all that a seed can produce: same seed, same address, same trip.
///
/// Whoever forks a session to continue it in several ways seeds each fork by giving it a `sample` of its
/// own, see [`EpisodeCoordinates::sampled`]; forks of one [`crate::episode::prefix::Beginning`] with equal coordinates make equal trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EpisodeCoordinates {
    /// What the episode is for: training step, or a constant of the evaluation.
    pub step: u64,
    /// Which shop, by its position in the trainer's list; 0 outside training.
    pub shop: u64,
    /// The goal within the shop.
    pub goal: GoalId,
    /// Which of several samples for the goal.
    pub sample: u64,
}

impl EpisodeCoordinates {
    /// The same goal at the same step, drawn for the `sample`-th time.
    pub fn sampled(self, sample: u64) -> Self {
        Self { sample, ..self }
    }
}

/// Which model was spoken to, in what words, and how it was asked to draw its own.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptStamp {
    /// The format.
    pub dialect: Dialect,
    /// Its version, and what else decides about the tokens of a prompt.
    pub version: Arc<str>,
    /// The model's name or the fingerprint of its weights.
    pub model: Option<Arc<str>>,
    /// How its answers are drawn.
    pub sampling: Option<Sampling>,
}

impl PromptStamp {
    /// Words in which some model is spoken to.
    pub fn of_words(dialect: Dialect, version: impl Into<Arc<str>>) -> Self {
        Self { dialect, version: version.into(), model: None, sampling: None }
    }
}

/// How answers are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Divides the logits; 0 takes the most probable token.
    pub temperature: f64,
    /// Share of the probability that is drawn from.
    pub top_p: f64,
    /// Tokens after which an answer is cut.
    pub max_tokens: u32,
    /// From which all draws follow, or the seeds of all requests.
    pub seed: u64,
}

/// The tokens of one turn of a language model.
#[derive(Clone, Debug)]
pub struct TurnTokens {
    /// Whether the model read the prompt behind all that was read and said before, or by itself.
    pub context: Context,
    /// What the model read before it spoke: mask 0. What it said has mask 1.
    pub prompt_ids: Vec<u32>,
    /// What the model said.
    pub completion: Completion,
}

/// One turn of a trip.
#[derive(Clone, Debug)]
pub struct EpisodeTurn {
    /// What was done.
    pub action: Action,
    /// The written thought, if there was one.
    pub thought: Option<String>,
    /// The whole answer as it was written; `None` for policies that do not write.
    pub answer: Option<String>,
    /// Whether the answer had the form that its dialect asks for; so have all actions of those who do not write.
    pub is_well_formed: bool,
    /// The customer left the shop with it. The action is then none, and the shop let it pass.
    pub leaves: bool,
    /// Why the answer ended, as far as that is known.
    pub stop: Option<StopReason>,
    /// Why it changed nothing, if it did.
    pub noop: Option<NoopReason>,
    /// What the shop paid for it, 0 to 1.
    pub reward: f64,
    /// What it led to.
    pub after: Footprint,
    /// The model's tokens; `None` for policies without any.
    pub tokens: Option<TurnTokens>,
}

/// A whole trip.
#[derive(Clone, Debug)]
pub struct Episode {
    /// The name of who shopped.
    pub policy: Arc<str>,
    /// Its address.
    pub coordinates: EpisodeCoordinates,
    /// How pages were shown and when the trip was to be cut.
    pub config: EnvConfig,
    /// What was there before the first turn.
    pub start: Footprint,
    /// Its turns in order.
    pub turns: Vec<EpisodeTurn>,
    /// The shop's reward, 0 to 1; 0 if nothing was bought.
    pub reward: f64,
    /// How the reward came about; `None` if nothing was bought.
    pub breakdown: Option<RewardBreakdown>,
    /// The trip ended by a purchase.
    pub terminated: bool,
    /// The trip was cut: step limit, no room left in the model's context, or the customer left.
    pub truncated: bool,
    /// How the customer was spoken to; `None` for policies that do not read.
    pub prompt: Option<PromptStamp>,
}

/// A trip as one line of a rollout file: what the shop can make again, and what only the agent knows.
///
/// Written, it borrows from an [`Episode`]; read, it owns everything, and [`crate::episode::replay()`] makes an episode of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EpisodeRecord<'a> {
    /// What happened; `webshop replay` makes it again.
    #[serde(flatten)]
    pub trip: Trip<TurnRecord<'a>>,
    /// Its address.
    pub coordinates: EpisodeCoordinates,
    /// The instruction.
    pub instruction: Cow<'a, str>,
    /// All that the trip depends on beside the customer, part by part.
    pub fingerprint: Cow<'a, ShopFingerprint>,
    /// The name of who shopped.
    pub policy: Arc<str>,
    /// The model's name or the fingerprint of its weights, for those who have one that is known.
    pub model: Option<Arc<str>>,
    /// Format of prompts and answers, for those who read and write.
    pub dialect: Option<Dialect>,
    /// Its version.
    pub prompt_version: Option<Arc<str>>,
    /// How a server was asked to draw, for those who asked one.
    pub sampling: Option<Sampling>,
}

/// One turn of an [`EpisodeRecord`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TurnRecord<'a> {
    /// What was done, and what came of it.
    #[serde(flatten)]
    pub turn: TripTurn,
    /// The written thought.
    pub thought: Option<Cow<'a, str>>,
    /// The whole answer as it was written.
    pub answer: Option<Cow<'a, str>>,
    /// Whether it had the form that its dialect asks for.
    pub well_formed: bool,
    /// Whether the customer left the shop with it.
    pub leaves: bool,
    /// Why the answer ended, as far as that is known.
    pub stop: Option<StopReason>,
    /// Whether the tokens follow on those of the turn before or stand alone; none where there are no tokens.
    pub context: Option<Context>,
    /// Tokens read before the turn, mask 0; empty for policies without any.
    pub prompt_ids: Cow<'a, [u32]>,
    /// What was said, with log-probabilities: mask 1.
    pub completion: Option<Cow<'a, Completion>>,
}

impl EpisodeTurn {
    /// Tokens the model said in it, end mark included; 0 for policies without any.
    pub fn n_sampled_tokens(&self) -> usize {
        self.tokens.as_ref().map_or(0, |tokens| tokens.completion.ids.len())
    }

    fn record(&self) -> TurnRecord<'_> {
        let tokens = self.tokens.as_ref();
        TurnRecord {
            turn: TripTurn {
                action: self.action.to_string(),
                noop: self.noop,
                reward: self.reward,
                after: self.after,
            },
            thought: self.thought.as_deref().map(Cow::Borrowed),
            answer: self.answer.as_deref().map(Cow::Borrowed),
            well_formed: self.is_well_formed,
            leaves: self.leaves,
            stop: self.stop,
            context: tokens.map(|tokens| tokens.context),
            prompt_ids: Cow::Borrowed(tokens.map_or(&[], |tokens| &tokens.prompt_ids)),
            completion: tokens.map(|tokens| Cow::Borrowed(&tokens.completion)),
        }
    }
}

impl Episode {
    /// The trip as a line of a rollout file, with the text of its goal.
    pub fn record<'a>(&'a self, shop: &'a Shop) -> EpisodeRecord<'a> {
        let goal = self.coordinates.goal;
        let prompt = self.prompt.as_ref();
        EpisodeRecord {
            trip: Trip {
                format: TRIP_FORMAT.into(),
                environment: ENVIRONMENT_ID.into(),
                goal_fingerprint: shop.goals().fingerprint().into(),
                rules: shop.config().compat,
                config: self.config,
                goal,
                start: self.start,
                turns: self.turns.iter().map(EpisodeTurn::record).collect(),
                reward: self.reward,
                breakdown: self.breakdown,
                terminated: self.terminated,
                truncated: self.truncated,
            },
            coordinates: self.coordinates,
            instruction: Cow::Borrowed(&shop.goals().get(goal).instruction),
            fingerprint: Cow::Borrowed(shop.fingerprint()),
            policy: self.policy.clone(),
            model: prompt.and_then(|prompt| prompt.model.clone()),
            dialect: prompt.map(|prompt| prompt.dialect),
            prompt_version: prompt.map(|prompt| prompt.version.clone()),
            sampling: prompt.and_then(|prompt| prompt.sampling),
        }
    }

    /// Reward exactly 1.
    pub fn is_success(&self) -> bool {
        self.breakdown.as_ref().is_some_and(RewardBreakdown::is_success)
    }

    /// The model wrote down a thought somewhere on the way.
    pub fn has_thought(&self) -> bool {
        self.turns.iter().any(|turn| turn.thought.is_some())
    }

    /// Tokens the model said, end marks included.
    pub fn n_sampled_tokens(&self) -> usize {
        self.turns.iter().map(EpisodeTurn::n_sampled_tokens).sum()
    }

    /// The trip as text: the instruction, then what was thought and done, then what it earned and why.
    pub fn tell(&self, shop: &Shop) -> String {
        let goal = shop.goals().get(self.coordinates.goal);
        let mut lines = vec![format!("\u{201c}{}\u{201d}", goal.instruction)];
        for turn in &self.turns {
            lines.extend(turn.thought.iter().map(|thought| format!("  ({thought})")));
            let noop = turn.noop.map(|reason| format!("   nothing happens: {reason}")).unwrap_or_default();
            lines.push(match turn.leaves {
                true => "> leaves".to_owned(),
                false => format!("> {}{noop}", turn.action),
            });
        }
        lines.push(match &self.breakdown {
            Some(breakdown) => breakdown.to_string(),
            None => "nothing was bought: reward 0".to_string(),
        });
        lines.join("\n")
    }

    /// Turns whose action the shop could not carry out; to leave is no such.
    pub fn n_inadmissible(&self) -> usize {
        self.turns.iter().filter(|turn| turn.noop.is_some() && !turn.leaves).count()
    }
}
