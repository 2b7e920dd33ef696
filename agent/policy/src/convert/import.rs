//! Chats as episodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use webshop_env::Shop;
use webshop_lm::chat::Message;
use webshop_products::GoalId;

use crate::convert::chat::{ChatFileFormat, ChatMeta};
use crate::convert::line::{self, Line};
use crate::episode::{Episode, EpisodeCoordinates, PromptProvenance};
use crate::error::AgentError;
use crate::policies::policy::Decision;
use crate::prompt_format::{Conversation, History, PromptFormat};
use crate::rollout::lane::Lane;
use crate::rollout::task::Task;

/// The policy and prompt version of lines that have none.
const IMPORTED: &str = "imported";

/// The default step limit.
const MAX_STEPS: u32 = 15;

/// The greatest difference of equal rewards: other programs write fewer digits.
const TOLERANCE: f64 = 1e-6;

/// The most characters of a page in an error message.
const MAX_CHARS: usize = 160;

/// Imports chats.
///
/// Each completion must follow the page that the shop shows at that point, and the episode must earn the
/// reward of the line, so lines of other catalogs, prices or rules are errors.
#[derive(Debug)]
pub struct Importer {
    shop: Arc<Shop>,
    format: ChatFileFormat,
    prompt_format: Option<PromptFormat>,
    max_steps: Option<u32>,
    /// The episode that a later line may continue.
    open: Option<ImportedEpisode>,
    /// Episodes so far by goal, to number those of lines without `sample`.
    n_imported: BTreeMap<GoalId, u64>,
}

/// An episode as far as it is imported.
#[derive(Debug)]
struct ImportedEpisode {
    lane: Lane,
    prompt_format: PromptFormat,
    conversation: Conversation,
    coordinates: EpisodeCoordinates,
    n_turns: usize,
    /// The reward in the line.
    reward: Option<f64>,
    /// The number of the last line.
    line: usize,
}

impl Importer {
    /// Imports into `shop`. `None` takes the prompt format from the line, or `agentgym-react` for
    /// `agenttraj`; and the step limit from the line, or 15.
    pub fn new(
        shop: Arc<Shop>,
        format: ChatFileFormat,
        prompt_format: Option<PromptFormat>,
        max_steps: Option<u32>,
    ) -> Self {
        Self { shop, format, prompt_format, max_steps, open: None, n_imported: BTreeMap::new() }
    }

    /// Imports line `line` of a file. Returns the episode that it completes: its own or, if every turn is a
    /// line, the previous one.
    ///
    /// # Errors
    /// [`AgentError::Line`], if the line is not a chat of the format, or a page or the reward is not the
    /// shop's.
    pub fn import(&mut self, text: &str, line: usize) -> Result<Option<Episode>, AgentError> {
        let refuse = |reason: String| AgentError::Line { line, reason };
        let chat = line::read(text).map_err(|reason| refuse(format!("not a chat: {reason}")))?;
        let default = (self.format == ChatFileFormat::Agenttraj).then_some(PromptFormat::AgentgymReact);
        let Some(prompt_format) = self.prompt_format.or(chat.meta.prompt_format).or(default) else {
            return Err(refuse("the line has no `prompt_format`; choose one".into()));
        };
        if let Some(reason) = self.format.unsupported(prompt_format) {
            return Err(refuse(reason));
        }
        let Line { mut turns, meta, reward } = chat;
        if prompt_format == PromptFormat::AgentgymReact && !turns.is_empty() {
            // The first turn is the rules and their acknowledgement.
            turns.remove(0);
        }
        if prompt_format.history() == History::Append {
            let mut episode = self.start(meta, prompt_format, reward).map_err(refuse)?;
            episode.add(turns, line)?;
            return episode.end().map(Some);
        }
        self.import_turn(Line { turns, meta, reward }, prompt_format, line)
    }

    /// Returns the last episode if every turn is a line.
    ///
    /// # Errors
    /// As [`Importer::import`].
    pub fn end(&mut self) -> Result<Option<Episode>, AgentError> {
        self.open.take().map(ImportedEpisode::end).transpose()
    }

    /// Imports a line that is one turn.
    fn import_turn(
        &mut self,
        chat: Line,
        prompt_format: PromptFormat,
        line: usize,
    ) -> Result<Option<Episode>, AgentError> {
        let refuse = |reason: String| AgentError::Line { line, reason };
        let Line { turns, meta, reward } = chat;
        let Some(turn) = meta.turn else {
            return Err(refuse(format!(
                "`{prompt_format}` has one chat per turn, and the line has no `turn`"
            )));
        };
        let ended = if turn == 0 { self.end()? } else { None };
        if turn == 0 {
            self.open = Some(self.start(meta.clone(), prompt_format, reward).map_err(refuse)?);
        }
        let is_continued = |episode: &&mut ImportedEpisode| {
            let EpisodeCoordinates { goal, sample, .. } = episode.coordinates;
            episode.n_turns == turn && meta.goal == Some(goal) && meta.sample.unwrap_or(sample) == sample
        };
        let Some(episode) = self.open.as_mut().filter(is_continued) else {
            return Err(refuse(format!("turn {}: it does not continue the line before", turn + 1)));
        };
        let last = turns.into_iter().next_back();
        let last = last.ok_or_else(|| refuse(format!("turn {}: there is no completion", turn + 1)))?;
        episode.add([last], line)?;
        Ok(ended)
    }

    /// An episode before its first turn.
    fn start(
        &mut self,
        meta: ChatMeta,
        prompt_format: PromptFormat,
        reward: Option<f64>,
    ) -> Result<ImportedEpisode, String> {
        let goal = meta.goal.ok_or("the line has no goal")?;
        let n_goals = self.shop.goals().goals().len();
        if goal.0 as usize >= n_goals {
            return Err(format!("goal `{}` does not exist: there are {n_goals}", goal.0));
        }
        let here = self.shop.goals().fingerprint();
        if let Some(there) = meta.goal_fingerprint.filter(|there| **there != *here) {
            return Err(format!("the line has the goals `{there}`; this shop has `{here}`"));
        }
        let n_imported = self.n_imported.entry(goal).or_default();
        let sample = meta.sample.unwrap_or(*n_imported);
        *n_imported += 1;
        let coordinates = EpisodeCoordinates { sample, ..EpisodeCoordinates::of_goal(goal) };
        let max_steps = self.max_steps.or(meta.max_steps).unwrap_or(MAX_STEPS);
        let prompt = PromptProvenance {
            prompt_format,
            version: meta.prompt_version.unwrap_or_else(|| IMPORTED.into()),
            model: meta.model,
            sampling: None,
        };
        let policy = meta.policy.unwrap_or_else(|| IMPORTED.into());
        let task = Task::new(self.shop.clone(), coordinates);
        let instruction = self.shop.goals().get(goal).instruction.clone();
        Ok(ImportedEpisode {
            lane: Lane::new(&task, max_steps, &policy, Some(prompt)),
            prompt_format,
            conversation: Conversation::new(instruction, max_steps),
            coordinates,
            n_turns: 0,
            reward,
            line: 0,
        })
    }
}

impl ImportedEpisode {
    /// Adds turns, each the page as text and the completion.
    fn add(
        &mut self,
        turns: impl IntoIterator<Item = (String, Message)>,
        line: usize,
    ) -> Result<(), AgentError> {
        self.line = line;
        for (shown, completion) in turns {
            self.n_turns += 1;
            let n = self.n_turns;
            let refuse = |reason: String| AgentError::Line { line, reason: format!("turn {n}: {reason}") };
            if self.lane.is_over() {
                return Err(refuse("the episode is over before it".into()));
            }
            let view = self.lane.view(0);
            self.prompt_format.add_page(&mut self.conversation, view.page, view.noop);
            let here = &self.conversation.current().observation;
            if !shown.contains(here.as_str()) {
                let here: String = here.chars().take(MAX_CHARS).collect();
                return Err(refuse(format!("the page before it is another one here: `{here}`")));
            }
            let text = self.prompt_format.completion_text(&completion);
            let rules = view.shop.config().compat;
            let parsed =
                self.prompt_format.add_completion(&mut self.conversation, completion, view.page, rules);
            self.lane.step(Decision::completed(text, parsed, None));
        }
        Ok(())
    }

    /// The episode, truncated if it is not over.
    fn end(mut self) -> Result<Episode, AgentError> {
        if !self.lane.is_over() {
            self.lane.step(Decision::Stop);
        }
        let episode = self.lane.into_episode();
        match self.reward.filter(|reward| (reward - episode.reward).abs() > TOLERANCE) {
            None => Ok(episode),
            Some(there) => Err(AgentError::Line {
                line: self.line,
                reason: format!(
                    "turn {}: the reward is {there} in the line and {} here",
                    self.n_turns, episode.reward
                ),
            }),
        }
    }
}
