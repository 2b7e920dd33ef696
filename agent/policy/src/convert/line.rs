//! Lines of each format.
//!
//! A written line has the fields of the format's origin, in its order. Reading accepts lines of other
//! programs: unknown fields are ignored, and all fields but the goal may be missing.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use webshop_env::ENVIRONMENT_ID;
use webshop_lm::chat::{Message, Role, ToolCall};
use webshop_products::{GoalId, line_problem};

use crate::convert::chat::{Chat, ChatFileFormat, ChatMeta, Outcome};
use crate::prompt_format::PromptFormat;

/// The prefix of the names of episodes.
const NAME: &str = "webshop_";

/// The line of a chat.
pub(super) fn write(format: ChatFileFormat, chat: &Chat) -> Value {
    match format {
        ChatFileFormat::Messages => messages(chat),
        ChatFileFormat::Sharegpt => sharegpt(chat),
        ChatFileFormat::Agenttraj => agenttraj(chat),
    }
}

fn messages(chat: &Chat) -> Value {
    let messages: Vec<Value> = chat.messages.iter().map(Message::to_server).collect();
    let mut line = json!({ "custom_id": name(&chat.meta), "messages": messages });
    if let Some(tools) = chat.meta.prompt_format.and_then(PromptFormat::tools) {
        line["tools"] = json!(tools);
    }
    let mut metadata = Map::new();
    metadata.insert("env_id".into(), ENVIRONMENT_ID.into());
    metadata.insert("group_id".into(), json!(chat.meta.goal));
    if let Some(Outcome { reward, is_success, n_turns, .. }) = chat.meta.outcome {
        metadata.insert("success".into(), is_success.into());
        metadata.insert("total_reward".into(), reward.into());
        metadata.insert("num_turns".into(), n_turns.into());
    }
    metadata.extend(fields(&chat.meta));
    line["metadata"] = Value::Object(metadata);
    line
}

fn sharegpt(chat: &Chat) -> Value {
    let turn = |message: &Message| {
        let from = match message.role {
            Role::System => "system",
            Role::User => "human",
            Role::Assistant => "gpt",
            Role::Tool => "tool",
        };
        json!({ "from": from, "value": text(chat, message) })
    };
    let conversations: Vec<Value> = chat.messages.iter().map(turn).collect();
    let mut meta = Map::new();
    if let Some(Outcome { reward, is_success, terminated, n_turns }) = chat.meta.outcome {
        meta.insert("steps".into(), n_turns.into());
        meta.insert("reward".into(), reward.into());
        meta.insert("finished".into(), true.into());
        meta.insert("success".into(), is_success.into());
        let reason = if terminated { "bought" } else { "cut" };
        meta.insert("terminate_reason".into(), reason.into());
        meta.insert("error".into(), Value::Null);
    }
    meta.extend(fields(&chat.meta));
    json!({ "id": name(&chat.meta), "conversations": conversations, "meta": meta })
}

/// The format has no system messages, so the system message is put before the first user message.
fn agenttraj(chat: &Chat) -> Value {
    let n_assistant = chat.messages.iter().filter(|message| message.role == Role::Assistant).count();
    let (mut conversations, mut system, mut n_seen) = (Vec::<Value>::new(), String::new(), 0);
    for message in &chat.messages {
        let value = text(chat, message);
        conversations.push(match message.role {
            Role::System => {
                system = format!("{value}\n\n");
                continue;
            }
            Role::Assistant => {
                n_seen += 1;
                json!({ "from": "gpt", "loss": n_seen + chat.n_completions > n_assistant, "value": value })
            }
            Role::User | Role::Tool => {
                let value = std::mem::take(&mut system) + &value;
                json!({ "from": "human", "loss": null, "value": value })
            }
        });
    }
    let goal = chat.meta.goal.map_or(0, |goal| goal.0);
    json!({ "item_id": format!("{NAME}{goal}"), "conversations": conversations })
}

/// A message as one text.
fn text(chat: &Chat, message: &Message) -> String {
    match chat.meta.prompt_format {
        Some(prompt_format) => prompt_format.completion_text(message),
        None => message.content.clone(),
    }
}

fn fields(meta: &ChatMeta) -> Map<String, Value> {
    match serde_json::to_value(meta) {
        Ok(Value::Object(mut fields)) => {
            fields.retain(|_, value| !value.is_null());
            fields
        }
        other => unreachable!("numbers and texts by their names are an object, not {other:?}"),
    }
}

/// The name of a chat, unique in a file without duplicate episodes.
fn name(meta: &ChatMeta) -> String {
    let number = |mark: &str, number: Option<u64>| number.map(|n| format!("{mark}{n}")).unwrap_or_default();
    let goal = meta.goal.map_or(0, |goal| goal.0);
    let sample = meta.sample.filter(|&sample| sample > 0);
    format!(
        "{NAME}{goal}{}{}",
        number("_sample_", sample),
        number("_turn_", meta.turn.map(|turn| turn as u64))
    )
}

/// A parsed line.
#[derive(Debug)]
pub(super) struct Line {
    /// The last message before each completion, and the completion.
    pub turns: Vec<(String, Message)>,
    pub meta: ChatMeta,
    /// The reward of the episode.
    pub reward: Option<f64>,
}

#[derive(Deserialize)]
struct Document {
    #[serde(alias = "id", alias = "item_id")]
    custom_id: Option<String>,
    #[serde(alias = "conversations")]
    messages: Vec<RawMessage>,
    #[serde(alias = "meta", default)]
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(flatten)]
    meta: ChatMeta,
    #[serde(alias = "total_reward")]
    reward: Option<f64>,
}

#[derive(Deserialize)]
struct RawMessage {
    #[serde(alias = "from")]
    role: String,
    #[serde(alias = "value")]
    content: Option<Content>,
    tool_calls: Option<Vec<RawCall>>,
}

/// The content of a message: a text, or OpenAI's list of parts.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text, or a list of parts of the type `text`")]
enum Content {
    Text(String),
    Parts(Vec<TextPart>),
}

/// A part of the type `text`; no other has this field.
#[derive(Deserialize)]
struct TextPart {
    text: String,
}

#[derive(Deserialize)]
struct RawCall {
    #[serde(default)]
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: Value,
}

/// Reads a line of any of the formats.
pub(super) fn read(text: &str) -> Result<Line, String> {
    let Document { custom_id, messages, metadata } =
        serde_json::from_str(text).map_err(|error| line_problem(&error))?;
    let Metadata { mut meta, reward } = metadata;
    meta.goal = meta.goal.or_else(|| goal_in(custom_id.as_deref()?));
    let mut shown = None;
    let mut turns = Vec::new();
    for message in messages {
        match message.role.as_str() {
            "user" | "human" | "tool" | "observation" => shown = Some(message.text()),
            "assistant" | "gpt" => {
                let shown = shown.take().ok_or("a completion without a message before it")?;
                turns.push((shown, message.into_completion()?));
            }
            "system" => (),
            other => return Err(format!("`{other}` is not a role")),
        }
    }
    Ok(Line { turns, meta, reward })
}

impl RawMessage {
    /// Its text; empty without one.
    fn text(&self) -> String {
        match &self.content {
            None => String::new(),
            Some(Content::Text(text)) => text.clone(),
            Some(Content::Parts(parts)) => parts.iter().map(|part| part.text.as_str()).collect(),
        }
    }

    fn into_completion(self) -> Result<Message, String> {
        let call = |RawCall { id, function }: RawCall| {
            let arguments = match function.arguments {
                Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::Null),
                arguments => arguments,
            };
            let Value::Object(arguments) = arguments else {
                return Err(format!("the arguments of a call of `{}` are not an object", function.name));
            };
            Ok(ToolCall { id, name: function.name, arguments })
        };
        let text = self.text();
        let tool_calls = self.tool_calls.into_iter().flatten().map(call).collect::<Result<_, _>>()?;
        Ok(Message { tool_calls, ..Message::text(Role::Assistant, text) })
    }
}

/// The last message before each completion of a line, and the completion.
pub(crate) fn turns(line: &str) -> Result<Vec<(String, Message)>, String> {
    read(line).map(|line| line.turns)
}

/// The goal in a name such as `webshop_6`.
fn goal_in(name: &str) -> Option<GoalId> {
    name.strip_prefix(NAME)?.split('_').next()?.parse().ok().map(GoalId)
}
