//! One step of a recorded episode: the page, what the agent read and did there, and at the end the reward.

use std::sync::Arc;

use askama::Template;
use webshop_agent::{Episode, Turn};
use webshop_env::ShopEnv;

use super::recordings::Recording;

/// The number of shades of a token, by its probability.
const SHADES: u8 = 10;

#[derive(Template)]
#[template(path = "replay.html")]
pub(super) struct EpisodeView<'a> {
    number: usize,
    n_recorded: usize,
    episode: &'a Episode,
    /// The number of turns before the page that is shown.
    step: usize,
    /// What the agent reads on that page.
    observation: String,
    /// What it does there; `None` on the last page.
    turn: Option<&'a Turn>,
    tokens: Vec<Token>,
    end: &'static str,
}

/// A sampled token.
struct Token {
    id: u32,
    log_prob: f32,
    /// From 0, improbable, to [`SHADES`] − 1.
    shade: u8,
}

impl Token {
    fn new(id: u32, log_prob: f32) -> Token {
        // A conversion to an integer saturates, so that no probability is beyond the shades.
        let shade = (log_prob.exp() * f32::from(SHADES)) as u8;
        Token { id, log_prob, shade: shade.min(SHADES - 1) }
    }

    fn probability(&self) -> f32 {
        self.log_prob.exp()
    }
}

impl EpisodeView<'_> {
    /// The sum of the tokens' log-probabilities.
    fn log_prob(&self) -> f32 {
        self.tokens.iter().map(|token| token.log_prob).sum()
    }

    fn step_before(&self) -> Option<usize> {
        self.step.checked_sub(1)
    }

    fn step_after(&self) -> Option<usize> {
        (self.step < self.episode.turns.len()).then_some(self.step + 1)
    }
}

/// The page of an episode after `step` turns, at most all of them.
pub(super) fn view(recording: &Recording, number: usize, n_recorded: usize, step: usize) -> EpisodeView<'_> {
    let episode = &recording.episode;
    let turn = episode.turns.get(step);
    let tokens = turn.and_then(|turn| turn.agent.tokens.as_ref()).map(|tokens| &tokens.completion);
    let tokens = tokens.map(|completion| {
        let pairs = completion.ids.iter().zip(&completion.log_probs);
        pairs.map(|(id, log_prob)| Token::new(*id, *log_prob)).collect()
    });
    EpisodeView {
        number,
        n_recorded,
        episode,
        step,
        observation: after(recording, step).observation().content(),
        turn,
        tokens: tokens.unwrap_or_default(),
        end: super::end_of(episode),
    }
}

/// The environment after the first turns of an episode.
pub(super) fn after(recording: &Recording, n_turns: usize) -> ShopEnv {
    let mut env = ShopEnv::new(Arc::clone(&recording.shop), recording.episode.config);
    env.reset(recording.episode.goal);
    for turn in recording.episode.turns.iter().take(n_turns) {
        env.step(&turn.action);
    }
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_shaded_by_its_probability() {
        let shade = |log_prob| Token::new(1, log_prob).shade;
        assert_eq!((shade(0.0), shade(f32::NEG_INFINITY)), (9, 0));
        // e^-0.7 = 0.497
        assert_eq!(shade(-0.7), 4);
    }
}
