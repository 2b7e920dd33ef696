//! The fields that both kinds of completions have.

use webshop_lm::Sampler;

use crate::fields::{FieldError, Fields};
use crate::model::Settings;

/// The most stop texts of a request, as at OpenAI.
const MAX_STOPS: usize = 4;

/// The most log-probabilities at each place.
pub(super) const MAX_TOP: u64 = 20;

/// The highest temperature, as at OpenAI.
const MAX_TEMPERATURE: f64 = 2.0;

/// How a completion is generated and sent.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// Without the log-probability fields, which differ between the two interfaces.
    pub(super) settings: Settings,
    /// Whether the reply is sent as events.
    pub(super) streams: bool,
    /// Whether the last chunk reports the usage.
    pub(super) includes_usage: bool,
    /// Whether the reply holds the ids of tokens.
    pub(super) returns_ids: bool,
}

impl Options {
    /// Reads the fields; the largest number of tokens is the caller's to read.
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<Options> {
        let temperature = fields.float("temperature", MAX_TEMPERATURE).unwrap_or(1.0);
        let top_p = fields.float("top_p", 1.0).unwrap_or(1.0);
        let sampler = Sampler::new(temperature as f32, top_p as f32);
        let sampler = sampler.map_err(|error| refuse(fields, "top_p", error.to_string())).ok();
        // A negative seed is another name of a positive one.
        let seed = fields.integer("seed").map(|seed| seed as u64);
        if fields.unsigned("n", u64::from(u32::MAX)).is_some_and(|n| n != 1) {
            refuse(fields, "n", "Input should be 1: send a request for each completion".to_owned());
        }
        let stop = stops(fields);
        let streams = fields.boolean("stream").unwrap_or(false);
        let includes_usage = fields.object("stream_options").is_some_and(|options| {
            let mut below = fields.below("stream_options", options);
            let includes_usage = below.boolean("include_usage").unwrap_or(false);
            fields.add(below.into_errors());
            includes_usage
        });
        let returns_ids = fields.boolean("return_token_ids").unwrap_or(false);
        let settings = Settings {
            sampler: sampler?,
            seed,
            max_tokens: None,
            stop,
            n_top: None,
            scores_prompt: false,
            continues_prompt: false,
        };
        Some(Options { settings, streams, includes_usage, returns_ids })
    }
}

/// A largest number of tokens, at least `least`.
pub(super) fn max_tokens(fields: &mut Fields<'_>, name: &str, least: usize) -> Option<usize> {
    let n = fields.unsigned(name, u64::from(u32::MAX))? as usize;
    if n < least {
        refuse(fields, name, format!("Input should be at least {least}"));
    }
    Some(n)
}

/// Refuses a field.
pub(super) fn refuse(fields: &mut Fields<'_>, name: &str, message: impl Into<String>) {
    fields.refuse(name, FieldError::new("value_error", message));
}

/// The field `stop`: a text or several.
fn stops(fields: &mut Fields<'_>) -> Vec<String> {
    let stops = match fields.value("stop") {
        None => Vec::new(),
        Some(value) if value.is_string() => vec![value.as_str().unwrap_or_default().to_owned()],
        Some(_) => {
            let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
            fields.list("stop", "strings", text).unwrap_or_default()
        }
    };
    if stops.len() > MAX_STOPS || stops.iter().any(String::is_empty) {
        refuse(fields, "stop", format!("Input should be at most {MAX_STOPS} texts, none of them empty"));
    }
    stops
}
