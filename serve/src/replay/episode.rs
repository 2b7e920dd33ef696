//! One step of a recorded episode: the page, what the agent read and did there, and at the end the reward.

use std::sync::Arc;

use askama::Template;
use webshop_agent::{Episode, FailureKind, Turn};
use webshop_env::ShopEnv;
use webshop_lm::BpeTokenizer;

use super::recordings::Recording;
use super::tokens::{Token, formatted, prompt, tokens};

/// Where an episode is shown.
pub(crate) struct Place {
    /// What it is called there.
    pub(crate) title: String,
    /// Its address without the step.
    pub(crate) path: String,
    /// The address of the list that it is part of.
    pub(crate) list: String,
    /// Names and addresses of the episodes before and after it, as far as there are any.
    pub(crate) beside: [(&'static str, Option<String>); 2],
}

/// A document that shows a step.
#[derive(Template)]
#[template(path = "replay.html")]
pub(crate) struct EpisodeDocument<'a> {
    view: EpisodeView<'a>,
}

/// A step as a part of a document.
#[derive(Template)]
#[template(path = "episode.html")]
pub(super) struct EpisodeView<'a> {
    place: Place,
    episode: &'a Episode,
    /// The number of turns before the page that is shown.
    step: usize,
    /// The page as an observation in the mode of the recording.
    observation: String,
    /// What a model reads there, if its tokens are recorded and their tokenizer is known.
    prompt: Option<String>,
    /// What it does there; `None` on the last page.
    turn: Option<&'a Turn>,
    tokens: Vec<Token>,
    end: &'static str,
    /// The shop's page, if it is a part of the document; else it has an address.
    document: Option<String>,
}

impl EpisodeView<'_> {
    /// The sum of the tokens' log-probabilities.
    fn log_prob(&self) -> String {
        formatted(self.tokens.iter().map(|token| token.log_prob).sum())
    }

    /// Whether the texts of the tokens are known.
    fn has_texts(&self) -> bool {
        self.tokens.iter().all(|token| token.text.is_some())
    }

    fn failure(&self) -> Option<&'static str> {
        FailureKind::of(self.episode).map(FailureKind::title)
    }

    fn step_before(&self) -> Option<usize> {
        self.step.checked_sub(1)
    }

    fn step_after(&self) -> Option<usize> {
        (self.step < self.episode.turns.len()).then_some(self.step + 1)
    }
}

/// An episode after `step` turns, at most all of them. `tokenizer` may be the one of its model.
pub(crate) fn document<'a>(
    recording: &'a Recording,
    place: Place,
    step: usize,
    tokenizer: Option<&BpeTokenizer>,
) -> EpisodeDocument<'a> {
    EpisodeDocument { view: view(recording, place, step, tokenizer, None) }
}

/// As [`document`], a part of one; `page` is the shop's page, unless that has an address.
pub(super) fn view<'a>(
    recording: &'a Recording,
    place: Place,
    step: usize,
    tokenizer: Option<&BpeTokenizer>,
    page: Option<String>,
) -> EpisodeView<'a> {
    let episode = &recording.episode;
    let turn = episode.turns.get(step);
    EpisodeView {
        place,
        episode,
        step,
        observation: env_after(recording, step).observation().content(),
        prompt: turn.and_then(|turn| prompt(&turn.agent, tokenizer)),
        turn,
        tokens: turn.map(|turn| tokens(&turn.agent, tokenizer)).unwrap_or_default(),
        end: super::end_of(episode),
        document: page,
    }
}

/// The environment after the first turns of an episode.
pub(super) fn env_after(recording: &Recording, n_turns: usize) -> ShopEnv {
    let mut env = ShopEnv::new(Arc::clone(&recording.shop), recording.episode.config);
    env.reset(recording.episode.goal);
    for turn in recording.episode.turns.iter().take(n_turns) {
        env.step(&turn.action);
    }
    env
}
