//! Episodes with what the agent adds to them.
//!
//! An [`Episode`] is a [`webshop_env::Episode`] with a [`ModelTurn`] for each turn (thought, completion and
//! token ids) and an [`EpisodeMeta`] (coordinates of the random draws, shop and prompt). It is at once the
//! result of a rollout and one line of a rollout file; [`read_episode`](crate::read_episode) reads a line and
//! replays it. Text is decoded from token ids, never encoded again. Advantages are the trainer's.

pub(crate) mod failure;
pub(crate) mod file;
pub(crate) mod prefix;
pub(crate) mod read;
pub(crate) mod site;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use webshop_env::{RewardBreakdown, Shop, ShopFingerprint};
use webshop_lm::{Completion, Context, StopReason};
use webshop_products::GoalId;

use crate::prompt_format::PromptFormat;

/// An episode of an agent, and one line of a rollout file.
pub type Episode = webshop_env::Episode<ModelTurn, EpisodeMeta>;

/// One turn of an [`Episode`].
pub type Turn = webshop_env::Turn<ModelTurn>;

/// The address of an episode among all episodes of a seed: same seed, coordinates and policy, same episode.
///
/// Forks of one [`EpisodePrefix`](crate::EpisodePrefix) differ by `sample`; forks with equal coordinates are
/// equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EpisodeCoordinates {
    /// The training step, or a constant of the evaluation.
    pub step: u64,
    /// The shop: in training its position in the trainer's list; in an evaluation on a generated shop the generator's
    /// seed; 0 for any other shop.
    pub shop: u64,
    /// The goal within the shop.
    pub goal: GoalId,
    /// The number of the sample for the goal, from 0.
    pub sample: u64,
}

impl EpisodeCoordinates {
    /// The first sample for `goal`, at step 0 in the shop 0.
    pub fn of_goal(goal: GoalId) -> Self {
        Self { step: 0, shop: 0, goal, sample: 0 }
    }

    /// The same coordinates with another `sample`.
    pub fn with_sample(self, sample: u64) -> Self {
        Self { sample, ..self }
    }
}

/// How prompts are rendered and completions sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptProvenance {
    /// The prompt format.
    pub prompt_format: PromptFormat,
    /// The version of the format, and a digest of the chat template if there is one.
    pub version: Arc<str>,
    /// The model's name on a server, or the fingerprint of its weights.
    pub model: Option<Arc<str>>,
    /// How completions are sampled.
    pub sampling: Option<Sampling>,
}

impl PromptProvenance {
    /// The provenance without a model.
    pub fn new(prompt_format: PromptFormat, version: impl Into<Arc<str>>) -> Self {
        Self { prompt_format, version: version.into(), model: None, sampling: None }
    }
}

/// How completions are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Divides the logits; 0 takes the most probable token.
    pub temperature: f64,
    /// The probability mass that is sampled from.
    pub top_p: f64,
    /// The maximum tokens of a completion.
    pub max_tokens: u32,
    /// The seed of all draws, or of the seeds of all requests.
    pub seed: u64,
}

/// The tokens of one turn of a language model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnTokens {
    /// Whether the prompt continues the context of the previous turn.
    pub context: Context,
    /// The tokens of the prompt that are new in this turn; mask 0.
    pub prompt_ids: Vec<u32>,
    /// The sampled tokens; mask 1.
    pub completion: Completion,
}

/// What a policy adds to a [`Turn`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelTurn {
    /// The written thought; `None` without one.
    pub thought: Option<String>,
    /// The completion as text; `None` for policies without completions.
    pub completion: Option<String>,
    /// Whether the completion has the form of its prompt format; true for policies without completions.
    #[serde(rename = "well_formed")]
    pub is_well_formed: bool,
    /// Whether the completion ends the episode without a purchase. The action is then a no-op.
    pub terminates: bool,
    /// Why the completion ended, if known.
    pub stop: Option<StopReason>,
    /// The tokens; `None` for policies without local tokens.
    pub tokens: Option<TurnTokens>,
}

impl Default for ModelTurn {
    /// The turn of a policy without completions.
    fn default() -> Self {
        Self {
            thought: None,
            completion: None,
            is_well_formed: true,
            terminates: false,
            stop: None,
            tokens: None,
        }
    }
}

impl ModelTurn {
    /// The number of sampled tokens, the end token included; 0 for policies without tokens.
    pub fn n_sampled_tokens(&self) -> usize {
        self.tokens.as_ref().map_or(0, |tokens| tokens.completion.ids.len())
    }
}

/// What an agent adds to an [`Episode`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpisodeMeta {
    /// The address of its random draws.
    pub coordinates: EpisodeCoordinates,
    /// The goal's instruction.
    pub instruction: Arc<str>,
    /// Versions and digests of everything the episode depends on except the policy.
    pub fingerprint: ShopFingerprint,
    /// The policy's name.
    pub policy: Arc<str>,
    /// The model's name on a server, or the fingerprint of its weights; `None` if unknown.
    pub model: Option<Arc<str>>,
    /// The prompt format; `None` for policies without prompts.
    pub prompt_format: Option<PromptFormat>,
    /// The version of the prompt format; see [`PromptProvenance::version`].
    pub prompt_version: Option<Arc<str>>,
    /// How completions are sampled.
    pub sampling: Option<Sampling>,
}

impl EpisodeMeta {
    /// The meta data of an episode of `policy` in `shop`.
    ///
    /// # Panics
    /// If the goal is not one of the shop's.
    pub fn new(
        shop: &Shop,
        coordinates: EpisodeCoordinates,
        policy: impl Into<Arc<str>>,
        prompt: Option<PromptProvenance>,
    ) -> Self {
        let (model, sampling) =
            prompt.as_ref().map_or((None, None), |prompt| (prompt.model.clone(), prompt.sampling));
        Self {
            coordinates,
            instruction: shop.goals().get(coordinates.goal).instruction.clone(),
            fingerprint: shop.fingerprint().clone(),
            policy: policy.into(),
            model,
            prompt_format: prompt.as_ref().map(|prompt| prompt.prompt_format),
            prompt_version: prompt.map(|prompt| prompt.version),
            sampling,
        }
    }
}

/// Figures of an [`Episode`].
pub trait EpisodeExt {
    /// Whether the reward is exactly 1.
    fn is_success(&self) -> bool;

    /// Whether the model wrote a thought in some turn.
    fn has_thought(&self) -> bool;

    /// The number of sampled tokens, end tokens included.
    fn n_sampled_tokens(&self) -> usize;

    /// The number of turns whose action was a no-op; `terminate` is not counted.
    fn n_inadmissible(&self) -> usize;

    /// The episode as text: instruction, thoughts, actions and reward.
    fn to_text(&self) -> String;
}

impl EpisodeExt for Episode {
    fn is_success(&self) -> bool {
        self.breakdown.as_ref().is_some_and(RewardBreakdown::is_success)
    }

    fn has_thought(&self) -> bool {
        self.turns.iter().any(|turn| turn.agent.thought.is_some())
    }

    fn n_sampled_tokens(&self) -> usize {
        self.turns.iter().map(|turn| turn.agent.n_sampled_tokens()).sum()
    }

    fn n_inadmissible(&self) -> usize {
        self.turns.iter().filter(|turn| turn.noop.is_some() && !turn.agent.terminates).count()
    }

    fn to_text(&self) -> String {
        let mut lines = vec![format!("\u{201c}{}\u{201d}", self.meta.instruction)];
        for turn in &self.turns {
            lines.extend(turn.agent.thought.iter().map(|thought| format!("  ({thought})")));
            let noop = turn.noop.map(|reason| format!("   nothing happens: {reason}")).unwrap_or_default();
            lines.push(match turn.agent.terminates {
                true => "> terminate".to_owned(),
                false => format!("> {}{noop}", turn.action),
            });
        }
        lines.push(match &self.breakdown {
            Some(breakdown) => breakdown.to_string(),
            None => "nothing was bought: reward 0".to_string(),
        });
        lines.join("\n")
    }
}
