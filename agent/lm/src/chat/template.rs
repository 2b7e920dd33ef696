//! Chat templates of checkpoints, rendered as Hugging Face's `apply_chat_template` renders them.
//!
//! A [`ChatTemplate`] is the Jinja source of a model folder, from `chat_template.jinja` or
//! `tokenizer_config.json`. It renders a [`TemplateInput`] with minijinja, configured as transformers
//! configures Jinja2: trimmed blocks, loop controls, `{% generation %}`, `tojson` without HTML escapes,
//! `raise_exception`, `strftime_now`, and values printed as in Python. As in transformers, null fields of
//! messages are dropped, and reasoning is available under three names.
//!
//! No clock is read: `strftime_now` formats the given date, or fails without one.
//!
//! Deviations from Jinja2: floats of 1e16 or more or below 1e-4, and containers with unprintable characters,
//! are spelled differently when joined by `~` or `join`; printing an iterator prints its items.

mod environment;
mod methods;
mod python;
mod source;
#[cfg(test)]
mod tests;

use std::path::Path;

use chrono::NaiveDateTime;
use minijinja::{Environment, Error};
use serde_json::{Map, Value};

use crate::error::LmError;

/// The template used by default.
const DEFAULT: &str = "default";

/// The template used with tools, if the folder has it.
const TOOL_USE: &str = "tool_use";

/// Fields for a model's reasoning, in order of precedence.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// The input of a template; equal inputs give equal text.
#[derive(Clone, Debug, Default)]
pub struct TemplateInput {
    /// The messages, at least one, each with a `role` and most with a `content`.
    pub messages: Vec<Value>,
    /// JSON schemas of the functions that may be called. Templates distinguish `None` from an empty list.
    pub tools: Option<Vec<Value>>,
    /// Documents for retrieval-augmented generation.
    pub documents: Option<Vec<Value>>,
    /// Whether the text ends with the start of the assistant's message.
    pub add_generation_prompt: bool,
    /// The date of `strftime_now`.
    pub now: Option<NaiveDateTime>,
    /// Further variables, such as `enable_thinking`; they override special tokens of the same name.
    pub extra: Map<String, Value>,
}

/// One or several compiled templates of a model folder.
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    /// (name, source) of each template.
    sources: Vec<(String, String)>,
    /// The variables `bos_token`, `eos_token` and so on.
    special_tokens: Map<String, Value>,
}

impl ChatTemplate {
    /// Compiles a single template. `special_tokens` are variables such as `eos_token`.
    ///
    /// ```
    /// use serde_json::{Map, json};
    /// use webshop_lm::chat::{ChatTemplate, TemplateInput};
    ///
    /// let source = "{% for m in messages %}{{ m.role }}: {{ m.content | tojson }}{{ eos_token }}{% endfor %}";
    /// let tokens = Map::from_iter([("eos_token".to_owned(), json!("<|end|>"))]);
    /// let messages = vec![json!({"role": "user", "content": "a <b> \"lamp\""})];
    /// let text = ChatTemplate::new(source, tokens)?.render(&TemplateInput { messages, ..Default::default() })?;
    /// assert_eq!(text, r#"user: "a <b> \"lamp\""<|end|>"#);
    /// # Ok::<(), webshop_lm::LmError>(())
    /// ```
    pub fn new(source: &str, special_tokens: Map<String, Value>) -> Result<Self, LmError> {
        Self::named(vec![(DEFAULT.to_owned(), source.to_owned())], special_tokens)
    }

    /// Reads the templates and the special tokens of a model folder. Template files take precedence over
    /// `tokenizer_config.json`. Fails if the folder has no template.
    pub fn load(folder: &Path) -> Result<Self, LmError> {
        let (sources, special_tokens) = source::read(folder)?;
        Self::named(sources, special_tokens)
    }

    fn named(sources: Vec<(String, String)>, special_tokens: Map<String, Value>) -> Result<Self, LmError> {
        let mut environment = environment::like_transformers();
        for (name, source) in &sources {
            let source = source::without_generation_blocks(source);
            environment
                .add_template_owned(name.clone(), source)
                .map_err(|error| template_error(name, &error))?;
        }
        Ok(Self { environment, sources, special_tokens })
    }

    /// The source of the template used with or without tools. Fails if the folder has only templates of other
    /// names.
    pub fn source(&self, with_tools: bool) -> Result<&str, LmError> {
        let name = self.choose(with_tools)?;
        let source = self.sources.iter().find(|(other, _)| other == name).map(|(_, source)| source.as_str());
        Ok(source.expect("the name was chosen among them"))
    }

    /// Renders the text of a prompt. Fails with the template's message if the template fails or raises an
    /// exception.
    pub fn render(&self, input: &TemplateInput) -> Result<String, LmError> {
        let refuse = |reason: &str| Err(LmError::ChatTemplate(reason.to_owned()));
        if input.messages.is_empty() {
            return refuse("the input needs at least one message");
        }
        let messages = input.messages.iter().map(message).collect::<Option<Vec<Value>>>();
        let Some(messages) = messages else {
            return refuse("every message must be an object");
        };
        let list = |values: &Option<Vec<Value>>| values.clone().map_or(Value::Null, Value::Array);
        let mut variables = self.special_tokens.clone();
        variables.extend(input.extra.clone());
        variables.insert("messages".to_owned(), messages.into());
        variables.insert("tools".to_owned(), list(&input.tools));
        variables.insert("documents".to_owned(), list(&input.documents));
        variables.insert("add_generation_prompt".to_owned(), input.add_generation_prompt.into());
        let name = self.choose(input.tools.is_some())?;
        let template = self.environment.get_template(name).map_err(|error| template_error(name, &error))?;
        let context = environment::context(variables, input.now);
        template.render(context).map_err(|error| template_error(name, &error))
    }

    /// The name of the template that transformers selects.
    fn choose(&self, with_tools: bool) -> Result<&str, LmError> {
        let has = |name: &str| self.sources.iter().any(|(other, _)| other == name);
        if with_tools && has(TOOL_USE) {
            return Ok(TOOL_USE);
        }
        if has(DEFAULT) {
            return Ok(DEFAULT);
        }
        let names: Vec<&str> = self.sources.iter().map(|(name, _)| name.as_str()).collect();
        Err(LmError::ChatTemplate(format!("none of the templates {names:?} is called `{DEFAULT}`")))
    }
}

/// A message without its null fields, and with its reasoning under the names that templates read.
fn message(message: &Value) -> Option<Value> {
    let given = message.as_object()?;
    let mut fields: Map<String, Value> =
        given.iter().filter(|(_, value)| !value.is_null()).map(|(n, v)| (n.clone(), v.clone())).collect();
    let reasoning = REASONING.iter().find_map(|name| fields.get(*name)).cloned();
    if let Some(reasoning) = reasoning {
        let mut aliased = Map::from_iter([("thinking".to_owned(), reasoning.clone())]);
        aliased.extend(fields);
        aliased.insert("reasoning_content".to_owned(), reasoning);
        fields = aliased;
    }
    Some(fields.into())
}

fn template_error(name: &str, error: &Error) -> LmError {
    let place = error.line().map_or_else(String::new, |line| format!(" in line {line} of `{name}`"));
    let what = error.detail().map_or_else(|| error.kind().to_string(), ToOwned::to_owned);
    LmError::ChatTemplate(format!("{what}{place}"))
}
