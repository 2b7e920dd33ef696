//! `POST /v1/completions`: a prompt as a text or as token ids.
//!
//! The text of a completion continues the prompt's: both together are what the tokens of both spell.
//!
//! With `echo` the reply begins with the prompt, and `logprobs` are those of its tokens too: an episode's recorded ids
//! are scored by `echo`, `logprobs` and `max_tokens: 0`.

use std::sync::Arc;

use axum::response::Response;
use serde_json::{Value, json};
use webshop_lm::BpeTokenizer;

use super::error::ApiError;
use super::logprobs::TextLogprobs;
use super::options::{MAX_TOP, Options, max_tokens, refuse};
use super::reply::{Chunks, Head, ids, stream, usage};
use crate::fields::Fields;
use crate::http;
use crate::model::{Finish, Generation, Model, Piece};

/// The largest number of tokens if a request does not say, as at OpenAI.
const DEFAULT_MAX_TOKENS: usize = 16;

/// What a prompt may be.
const PROMPT: &str = "Input should be a string or a list of token ids: send a request for each prompt";

/// A request for a text completion.
#[derive(Debug)]
pub(super) struct TextRequest {
    prompt: Prompt,
    echoes: bool,
    options: Options,
}

#[derive(Debug)]
enum Prompt {
    Text(String),
    Ids(Vec<u32>),
}

impl TextRequest {
    /// Reads the fields of a request.
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<TextRequest> {
        let prompt = fields.required("prompt", |fields, name| {
            let prompt = Prompt::of(fields.value(name)?);
            if prompt.is_none() {
                refuse(fields, name, PROMPT);
            }
            prompt
        });
        let echoes = fields.boolean("echo").unwrap_or(false);
        let options = Options::read(fields);
        let max_tokens = max_tokens(fields, "max_tokens", usize::from(!echoes));
        let n_top = fields.unsigned("logprobs", MAX_TOP).map(|n_top| n_top as usize);
        let (prompt, mut options) = (prompt?, options?);
        options.settings.max_tokens = Some(max_tokens.unwrap_or(DEFAULT_MAX_TOKENS));
        options.settings.n_top = n_top;
        options.settings.scores_prompt = echoes && n_top.is_some();
        options.settings.continues_prompt = true;
        Some(TextRequest { prompt, echoes, options })
    }

    /// Begins the completion.
    pub(super) fn begin(&self, model: &Arc<Model>) -> Result<Generation, ApiError> {
        let prompt_ids = match &self.prompt {
            Prompt::Text(text) => model.encode(text),
            Prompt::Ids(ids) => Ok(ids.clone()),
        };
        let begun = prompt_ids.and_then(|ids| model.generate(ids, self.options.settings.clone()));
        begun.map_err(|rejection| ApiError::rejected(&rejection, "prompt"))
    }

    /// Answers with the completion.
    pub(super) async fn respond(self, mut generation: Generation) -> Result<Response, ApiError> {
        let head = Head::new("cmpl", &generation);
        let Options { includes_usage, streams, .. } = self.options;
        let mut parts = TextChunks::new(self, &generation);
        if streams {
            return Ok(stream(head, generation, parts, includes_usage));
        }
        let (piece, finish) = generation.rest().await?;
        let n_completion = piece.tokens.len();
        let mut choice = parts.choice(piece);
        choice["finish_reason"] = finish.name().into();
        let mut document = head.document(TextChunks::OBJECT, &[choice]);
        document["usage"] = usage(generation.prompt_ids.len(), n_completion);
        Ok(http::ok(&document))
    }
}

impl Prompt {
    /// The prompt in JSON; a list with one prompt is that prompt.
    fn of(value: &Value) -> Option<Prompt> {
        match value {
            Value::String(text) => Some(Prompt::Text(text.clone())),
            Value::Array(list) => match &list[..] {
                [one @ (Value::String(_) | Value::Array(_))] => Prompt::of(one),
                ids => {
                    let id = |id: &Value| u32::try_from(id.as_u64()?).ok();
                    ids.iter().map(id).collect::<Option<_>>().map(Prompt::Ids)
                }
            },
            _ => None,
        }
    }
}

/// Builds the chunks of a text completion from its parts.
struct TextChunks {
    tokenizer: Arc<BpeTokenizer>,
    logprobs: Option<TextLogprobs>,
    returns_ids: bool,
    /// The prompt's text, until the first choice has it.
    echo: Option<String>,
    /// The prompt's tokens, until the first choice has them.
    prompt_ids: Option<Vec<u32>>,
}

impl TextChunks {
    fn new(request: TextRequest, generation: &Generation) -> TextChunks {
        let tokenizer = Arc::clone(&generation.model().tokenizer);
        let returns_ids = request.options.returns_ids;
        let echo = request.echoes.then(|| match request.prompt {
            Prompt::Text(text) => text,
            Prompt::Ids(ids) => tokenizer.decode(&ids),
        });
        let n_top = request.options.settings.n_top;
        TextChunks {
            tokenizer,
            logprobs: n_top.map(|_| TextLogprobs::new(&generation.prompt_ids, echo.as_deref())),
            returns_ids,
            echo,
            prompt_ids: returns_ids.then(|| generation.prompt_ids.clone()),
        }
    }

    /// The choice that says what a piece says.
    fn choice(&mut self, piece: Piece) -> Value {
        let Piece { prompt, text, tokens } = piece;
        let text = self.echo.take().unwrap_or_default() + &text;
        let logprobs =
            self.logprobs.as_mut().map(|logprobs| logprobs.next(&self.tokenizer, &prompt, &tokens));
        let mut choice = json!({"index": 0, "text": text, "logprobs": logprobs, "finish_reason": null});
        if self.returns_ids {
            choice["token_ids"] = ids(&tokens);
        }
        if let Some(prompt_ids) = self.prompt_ids.take() {
            choice["prompt_token_ids"] = json!(prompt_ids);
        }
        choice
    }
}

impl Chunks for TextChunks {
    const OBJECT: &'static str = "text_completion";

    fn needs_whole(&self) -> bool {
        false
    }

    fn of_piece(&mut self, piece: Piece) -> Vec<Value> {
        let reports_tokens = self.logprobs.is_some() || self.returns_ids;
        let has_no_text = piece.text.is_empty() && self.echo.is_none();
        let has_tokens = reports_tokens && !(piece.tokens.is_empty() && piece.prompt.is_empty());
        if has_no_text && !has_tokens { Vec::new() } else { vec![self.choice(piece)] }
    }

    fn of_finish(&mut self, finish: Finish) -> Value {
        json!({"index": 0, "text": "", "logprobs": null, "finish_reason": finish.name()})
    }
}
