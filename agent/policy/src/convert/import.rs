//! Chats made into trips.
//!
//! A [`Listener`] takes lines of a [`Format`] and makes the trips that they tell of, answer by answer, as the dialect
//! understands them. Each page that an answer was given on must be the page that the trip leads to here, and the trip
//! must earn what the line says; so trips of other catalogs, prices or rules are found out by themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use webshop_env::Shop;
use webshop_products::GoalId;

use crate::convert::format;
use crate::convert::format::Line;
use crate::convert::{About, Format};
use webshop_lm::Message;
use crate::prompt_format::{Dialect, History};
use crate::prompt_format::conversation::Dialogue;
use crate::episode::{Episode, EpisodeCoordinates, PromptStamp};
use crate::error::AgentError;
use crate::rollout::lane::OpenTrip;
use crate::policies::Move;
use crate::rollout::Task;

/// Who shopped, where a line does not say it, and in what version of a prompt.
const IMPORTED: &str = "imported";

/// Actions after which a trip is cut, where nothing says otherwise.
const MAX_STEPS: u32 = 15;

/// Rewards that differ by less are equal: other programs write fewer digits.
const TOLERANCE: f64 = 1e-6;

/// The most characters told of a page.
const MAX_TOLD: usize = 160;

/// Who makes trips of chats.
#[derive(Debug)]
pub struct Listener {
    shop: Arc<Shop>,
    format: Format,
    dialect: Option<Dialect>,
    max_steps: Option<u32>,
    /// The trip that a later line may go on with.
    open: Option<Told>,
    /// Trips so far by goal, for lines that do not number them.
    n_heard: BTreeMap<GoalId, u64>,
}

/// A trip, as far as it has been told.
#[derive(Debug)]
struct Told {
    trip: OpenTrip,
    dialogue: Dialogue,
    coordinates: EpisodeCoordinates,
    n_turns: usize,
    reward: Option<f64>,
    /// Where it was told last.
    line: usize,
}

impl Listener {
    /// Makes trips in `shop`. What `dialect` and `max_steps` leave open is what a line says, or else `agentgym-react` in
    /// `agenttraj`, and 15.
    pub fn new(shop: Arc<Shop>, format: Format, dialect: Option<Dialect>, max_steps: Option<u32>) -> Self {
        Self { shop, format, dialect, max_steps, open: None, n_heard: BTreeMap::new() }
    }

    /// Hears the `line`-th line and returns the trip that is complete with it, if there is one: that of the line, or,
    /// where every turn is a line, the one before it.
    ///
    /// # Errors
    /// [`AgentError::Line`], if the line is no such chat, or tells what does not happen here.
    pub fn hear(&mut self, text: &str, line: usize) -> Result<Option<Episode>, AgentError> {
        let refuse = |reason: String| AgentError::Line { line, reason };
        let Line { mut turns, about, reward } =
            format::read(text).map_err(|reason| refuse(format!("no chat: {reason}")))?;
        let default = (self.format == Format::Agenttraj).then_some(Dialect::AgentgymReact);
        let Some(dialect) = self.dialect.or(about.dialect).or(default) else {
            return Err(refuse("it does not say its dialect; choose one".into()));
        };
        if let Some(reason) = self.format.lacks(dialect) {
            return Err(refuse(reason));
        }
        if dialect == Dialect::AgentgymReact && !turns.is_empty() {
            // It begins with rules and the word that they are agreed to.
            turns.remove(0);
        }
        if dialect.history() == History::Kept {
            let mut told = self.begin(about, dialect, reward).map_err(refuse)?;
            told.go_on(turns, line)?;
            return told.end().map(Some);
        }
        self.hear_turn(turns, about, dialect, reward, line)
    }

    /// The last trip, where every turn is a line.
    ///
    /// # Errors
    /// As [`Listener::hear`].
    pub fn end(&mut self) -> Result<Option<Episode>, AgentError> {
        self.open.take().map(Told::end).transpose()
    }

    /// Hears a line that is one turn.
    fn hear_turn(
        &mut self,
        turns: Vec<(String, Message)>,
        about: About,
        dialect: Dialect,
        reward: Option<f64>,
        line: usize,
    ) -> Result<Option<Episode>, AgentError> {
        let refuse = |reason: String| AgentError::Line { line, reason };
        let Some(turn) = about.turn else {
            let reason = format!(
                "in `{dialect}` each turn is a chat of its own, and the line does not say its `turn`"
            );
            return Err(refuse(reason));
        };
        let ended = if turn == 0 { self.end()? } else { None };
        if turn == 0 {
            self.open = Some(self.begin(about.clone(), dialect, reward).map_err(refuse)?);
        }
        let follows = |told: &&mut Told| {
            let EpisodeCoordinates { goal, sample, .. } = told.coordinates;
            told.n_turns == turn && about.goal == Some(goal) && about.sample.unwrap_or(sample) == sample
        };
        let Some(told) = self.open.as_mut().filter(follows) else {
            return Err(refuse(format!("turn {}: it does not follow on the line before", turn + 1)));
        };
        let last = turns.into_iter().next_back();
        let last = last.ok_or_else(|| refuse(format!("turn {}: there is no answer", turn + 1)))?;
        told.go_on([last], line)?;
        Ok(ended)
    }

    /// A trip before its first turn.
    fn begin(&mut self, about: About, dialect: Dialect, reward: Option<f64>) -> Result<Told, String> {
        let goal = about.goal.ok_or("it does not say its goal")?;
        let n_goals = self.shop.goals().goals().len();
        if goal.0 as usize >= n_goals {
            return Err(format!("there is no goal `{}` among {n_goals}", goal.0));
        }
        let here = self.shop.goals().fingerprint();
        if let Some(there) = about.goal_fingerprint.filter(|there| **there != *here) {
            return Err(format!("told of the goals `{there}`; this shop has `{here}`"));
        }
        let n_heard = self.n_heard.entry(goal).or_default();
        let sample = about.sample.unwrap_or(*n_heard);
        *n_heard += 1;
        let coordinates = EpisodeCoordinates { step: 0, shop: 0, goal, sample };
        let max_steps = self.max_steps.or(about.max_steps).unwrap_or(MAX_STEPS);
        let prompt = PromptStamp {
            dialect,
            version: about.prompt_version.unwrap_or_else(|| IMPORTED.into()),
            model: about.model,
            sampling: None,
        };
        let policy = about.policy.unwrap_or_else(|| IMPORTED.into());
        let task = Task::new(self.shop.clone(), coordinates);
        let instruction = self.shop.goals().get(goal).instruction.clone();
        Ok(Told {
            trip: OpenTrip::new(&task, max_steps, &policy, Some(prompt)),
            dialogue: Dialogue::new(dialect, instruction, max_steps),
            coordinates,
            n_turns: 0,
            reward,
            line: 0,
        })
    }
}

impl Told {
    /// Does what the answers say, if they were given on the pages that there are here.
    fn go_on(
        &mut self,
        turns: impl IntoIterator<Item = (String, Message)>,
        line: usize,
    ) -> Result<(), AgentError> {
        self.line = line;
        for (shown, answer) in turns {
            self.n_turns += 1;
            let n = self.n_turns;
            let refuse = |reason: String| AgentError::Line { line, reason: format!("turn {n}: {reason}") };
            if self.trip.has_ended() {
                return Err(refuse("the trip has ended before it".into()));
            }
            let view = self.trip.view(0);
            self.dialogue.see(view.page, view.noop.copied());
            let here = &self.dialogue.now().observation;
            if !shown.contains(here.as_str()) {
                let here: String = here.chars().take(MAX_TOLD).collect();
                return Err(refuse(format!("it was not said on the page that the trip leads to: `{here}`")));
            }
            let written = self.dialogue.dialect().written(&answer);
            let utterance = self.dialogue.say(answer, view.page);
            self.trip.take(Move::said(written, utterance, None));
        }
        Ok(())
    }

    /// The trip, cut where nothing more is told.
    fn end(mut self) -> Result<Episode, AgentError> {
        if !self.trip.has_ended() {
            self.trip.take(Move::none());
        }
        let episode = self.trip.into_episode();
        match self.reward.filter(|reward| (reward - episode.reward).abs() > TOLERANCE) {
            None => Ok(episode),
            Some(there) => Err(AgentError::Line {
                line: self.line,
                reason: format!("turn {}: it earned {there} there, {} here", self.n_turns, episode.reward),
            }),
        }
    }
}
