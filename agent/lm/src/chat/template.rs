//! A checkpoint's own chat template, rendered as Hugging Face's `apply_chat_template` renders it.
//!
//! A [`ChatTemplate`] is the Jinja source that a model folder brings along, in `chat_template.jinja` or in
//! `tokenizer_config.json`; a [`TemplateInput`] is what it is shown. minijinja runs it, with what transformers
//! gives to Jinja2: blocks trimmed, loop controls, `{% generation %}`, `tojson` without HTML in mind,
//! `raise_exception`, `strftime_now`, and Python's way of printing. Messages lose the fields that are null,
//! and reasoning is found under each of its three names, as there.
//!
//! No clock is read: a template that asks for the date gets the one it is given, or fails. What differs from
//! Jinja2: a float beyond 1e16 or below 1e-4 and a container with invisible characters are spelled otherwise
//! when joined by `~` or `join` instead of printed, and printing an iterator shows its items.

pub mod environment;
pub mod methods;
pub mod python;
pub mod source;
#[cfg(test)]
mod tests;


use std::path::Path;

use chrono::NaiveDateTime;
use minijinja::{Environment, Error};
use serde_json::{Map, Value};

use crate::error::LmError;

/// The template that is meant if there is no reason for another.
const DEFAULT: &str = "default";

/// The template for conversations with tools, where there is one of its own.
const TOOL_USE: &str = "tool_use";

/// Names that callers give to what a model thought, the one that templates read first.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// What a template turns into text. Everything that is not a choice of the template is here, so that equal
/// conversations give equal bytes.
#[derive(Clone, Debug, Default)]
pub struct TemplateInput {
    /// The messages, at least one, each with a `role` and most with a `content`.
    pub messages: Vec<Value>,
    /// JSON schemas of the functions that may be called. `None` and none at all are different to templates.
    pub tools: Option<Vec<Value>>,
    /// Documents to answer from.
    pub documents: Option<Vec<Value>>,
    /// Whether the text ends with the beginning of the model's answer.
    pub add_generation_prompt: bool,
    /// What `strftime_now` tells.
    pub now: Option<NaiveDateTime>,
    /// Further variables, as `enable_thinking`; they hide special tokens of the same name.
    pub extra: Map<String, Value>,
}

/// One or several compiled templates of a model folder.
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    /// Names and sources.
    sources: Vec<(String, String)>,
    /// `bos_token`, `eos_token` and their like.
    special_tokens: Map<String, Value>,
}

impl ChatTemplate {
    /// Compiles a single template. `special_tokens` are variables that it can use, as `eos_token`.
    ///
    /// ```
    /// use serde_json::{Map, json};
    /// use crate::chat::{ChatTemplate, TemplateInput};
    ///
    /// let source = "{% for m in messages %}{{ m.role }}: {{ m.content | tojson }}{{ eos_token }}{% endfor %}";
    /// let tokens = Map::from_iter([("eos_token".to_owned(), json!("<|end|>"))]);
    /// let messages = vec![json!({"role": "user", "content": "a <b> \"lamp\""})];
    /// let text = ChatTemplate::new(source, tokens)?.render(&TemplateInput { messages, ..Default::default() })?;
    /// assert_eq!(text, r#"user: "a <b> \"lamp\""<|end|>"#);
    /// # Ok::<(), crate::error::LmError>(())
    /// ```
    pub fn new(source: &str, special_tokens: Map<String, Value>) -> Result<Self, LmError> {
        Self::named(vec![(DEFAULT.to_owned(), source.to_owned())], special_tokens)
    }

    /// Reads the templates and the special tokens of a model folder. Files of their own go before
    /// `tokenizer_config.json`; a folder without a template is an error that says so.
    pub fn load(folder: &Path) -> Result<Self, LmError> {
        let (sources, special_tokens) = source::read(folder)?;
        Self::named(sources, special_tokens)
    }

    fn named(sources: Vec<(String, String)>, special_tokens: Map<String, Value>) -> Result<Self, LmError> {
        let mut environment = environment::like_transformers();
        for (name, source) in &sources {
            let source = source::without_generation_blocks(source);
            environment.add_template_owned(name.clone(), source).map_err(|error| told(name, &error))?;
        }
        Ok(Self { environment, sources, special_tokens })
    }

    /// The source as it stands in the folder: the template for conversations with or without tools.
    pub fn source(&self, with_tools: bool) -> Result<&str, LmError> {
        let name = self.choose(with_tools)?;
        let source = self.sources.iter().find(|(other, _)| other == name).map(|(_, source)| source.as_str());
        Ok(source.expect("the name was chosen among them"))
    }

    /// The text of a input, as the model was taught to read it. A failing template, one that raises
    /// an exception among them, is an error with its message.
    pub fn render(&self, input: &TemplateInput) -> Result<String, LmError> {
        let refuse = |reason: &str| Err(LmError::ChatTemplate(reason.to_owned()));
        if input.messages.is_empty() {
            return refuse("a input needs at least one message");
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
        let template = self.environment.get_template(name).map_err(|error| told(name, &error))?;
        let context = environment::context(variables, input.now);
        template.render(context).map_err(|error| told(name, &error))
    }

    /// The name of the template that transformers would take.
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

fn told(name: &str, error: &Error) -> LmError {
    let place = error.line().map_or_else(String::new, |line| format!(" in line {line} of `{name}`"));
    let what = error.detail().map_or_else(|| error.kind().to_string(), ToOwned::to_owned);
    LmError::ChatTemplate(format!("{what}{place}"))
}
