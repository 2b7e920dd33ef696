//! A generation as its client sees it: pieces of text with their tokens, and an end.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;
use webshop_lm::StopReason;

use super::Model;
use super::batch::{Event, Scored};
use super::continuation::Continuation;
use super::place::Place;
use super::stop::StopFilter;

/// A completion while it is generated. Dropping it ends the generation.
pub(crate) struct Generation {
    /// Its number, from 0.
    pub(crate) ordinal: u64,
    /// The tokens of the prompt.
    pub(crate) prompt_ids: Vec<u32>,
    model: Arc<Model>,
    events: UnboundedReceiver<Event>,
    /// Frees the place in the queue if the client goes before there is a lane.
    _place: Place,
    text: Continuation,
    filter: StopFilter,
    finish: Option<Finish>,
}

/// The next part of a completion.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Piece {
    /// The tokens of the prompt, if they are scored; in the first piece only.
    pub(crate) prompt: Vec<Scored>,
    /// Text that no later token changes.
    pub(crate) text: String,
    /// Tokens that were drawn since the last piece, the stop token included. Their text may come later.
    pub(crate) tokens: Vec<Scored>,
}

/// How a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// With a stop token or a stop text.
    Stop,
    /// With the largest number of tokens, or a full context.
    Length,
}

impl Finish {
    /// OpenAI's name for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Finish::Stop => "stop",
            Finish::Length => "length",
        }
    }
}

/// The model failed.
#[derive(Debug, thiserror::Error)]
#[error("the model failed: {0}")]
pub(crate) struct GenerationError(String);

impl Generation {
    /// The generation that `events` report, which ends at one of the texts `stop`. Its text continues that of the prompt,
    /// or is one of its own.
    pub(super) fn new(
        model: Arc<Model>,
        ordinal: u64,
        prompt_ids: Vec<u32>,
        stop: Vec<String>,
        continues_prompt: bool,
        events: UnboundedReceiver<Event>,
        place: Place,
    ) -> Generation {
        let before: &[u32] = if continues_prompt { &prompt_ids } else { &[] };
        let text = Continuation::new(Arc::clone(&model.tokenizer), before);
        let filter = StopFilter::new(stop);
        Generation { ordinal, prompt_ids, model, events, _place: place, text, filter, finish: None }
    }

    /// The model.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// How the completion ended; `None` before its last piece.
    pub(crate) fn finish(&self) -> Option<Finish> {
        self.finish
    }

    /// The next piece, with a token or as the last; `None` after the end.
    ///
    /// # Errors
    /// If the model fails.
    pub(crate) async fn next(&mut self) -> Result<Option<Piece>, GenerationError> {
        let mut piece = Piece::default();
        if self.finish.is_some() {
            return Ok(None);
        }
        loop {
            match self.events.recv().await {
                Some(Event::Prompt(scored)) => piece.prompt.push(scored),
                Some(Event::Token(scored)) => {
                    if !self.model.is_stop(scored.id) {
                        piece.text = self.filter.push(&self.text.push(scored.id));
                    }
                    piece.tokens.push(scored);
                    self.finish = self.filter.is_stopped().then_some(Finish::Stop);
                    return Ok(Some(piece));
                }
                Some(Event::End(reason)) => {
                    piece.text = self.filter.push(&self.text.finish()) + &self.filter.finish();
                    let is_stop = self.filter.is_stopped() || reason == StopReason::EndOfTurn;
                    self.finish = Some(if is_stop { Finish::Stop } else { Finish::Length });
                    return Ok(Some(piece));
                }
                Some(Event::GenerationError(reason)) => return Err(GenerationError(reason)),
                None => return Err(GenerationError("its thread has ended; see the server's log".to_owned())),
            }
        }
    }

    /// The rest of the completion as one piece, and how it ended.
    ///
    /// # Errors
    /// If the model fails.
    pub(crate) async fn rest(&mut self) -> Result<(Piece, Finish), GenerationError> {
        let mut whole = Piece::default();
        while let Some(piece) = self.next().await? {
            whole.prompt.extend(piece.prompt);
            whole.text.push_str(&piece.text);
            whole.tokens.extend(piece.tokens);
        }
        Ok((whole, self.finish.expect("the last piece has been taken")))
    }
}
