//! How a chat stands in a line of each format.
//!
//! Writing, a line is an object with its fields in the order of the format's origin; what a [`Format`] has no place for
//! is left out. Reading takes what others write too: other fields are passed over, and all but the goal may be missing.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use webshop_env::ENVIRONMENT_ID;
use webshop_products::GoalId;

use crate::convert::{About, Chat, Format, Outcome};
use webshop_lm::{Message, Role, ToolCall};
use crate::prompt_format::Dialect;

/// What the names of trips begin with.
const NAME: &str = "webshop_";

/// The line of a chat.
pub(super) fn write(format: Format, chat: &Chat) -> Value {
    match format {
        Format::Messages => messages(chat),
        Format::Sharegpt => sharegpt(chat),
        Format::Agenttraj => agenttraj(chat),
    }
}

fn messages(chat: &Chat) -> Value {
    let messages: Vec<Value> = chat.messages.iter().map(Message::to_server).collect();
    let mut line = json!({ "custom_id": name(&chat.about), "messages": messages });
    if let Some(tools) = chat.about.dialect.and_then(Dialect::tools) {
        line["tools"] = json!(tools);
    }
    let mut metadata = Map::new();
    metadata.insert("env_id".into(), ENVIRONMENT_ID.into());
    metadata.insert("group_id".into(), json!(chat.about.goal));
    if let Some(Outcome { reward, is_success, n_turns, .. }) = chat.about.outcome {
        metadata.insert("success".into(), is_success.into());
        metadata.insert("total_reward".into(), reward.into());
        metadata.insert("num_turns".into(), n_turns.into());
    }
    metadata.extend(fields(&chat.about));
    line["metadata"] = Value::Object(metadata);
    line
}

fn sharegpt(chat: &Chat) -> Value {
    let said = |message: &Message| {
        let from = match message.role {
            Role::System => "system",
            Role::User => "human",
            Role::Assistant => "gpt",
            Role::Tool => "tool",
        };
        json!({ "from": from, "value": text(chat, message) })
    };
    let conversations: Vec<Value> = chat.messages.iter().map(said).collect();
    let mut meta = Map::new();
    if let Some(Outcome { reward, is_success, terminated, n_turns }) = chat.about.outcome {
        meta.insert("steps".into(), n_turns.into());
        meta.insert("reward".into(), reward.into());
        meta.insert("finished".into(), true.into());
        meta.insert("success".into(), is_success.into());
        let reason = if terminated { "bought" } else { "cut" };
        meta.insert("terminate_reason".into(), reason.into());
        meta.insert("error".into(), Value::Null);
    }
    meta.extend(fields(&chat.about));
    json!({ "id": name(&chat.about), "conversations": conversations, "meta": meta })
}

/// There is no place for a system's message, so it stands before the first of the user's.
fn agenttraj(chat: &Chat) -> Value {
    let n_said = chat.messages.iter().filter(|message| message.role == Role::Assistant).count();
    let (mut conversations, mut system, mut said) = (Vec::<Value>::new(), String::new(), 0);
    for message in &chat.messages {
        let value = text(chat, message);
        conversations.push(match message.role {
            Role::System => {
                system = format!("{value}\n\n");
                continue;
            }
            Role::Assistant => {
                said += 1;
                json!({ "from": "gpt", "loss": said + chat.n_answers > n_said, "value": value })
            }
            Role::User | Role::Tool => {
                let value = std::mem::take(&mut system) + &value;
                json!({ "from": "human", "loss": null, "value": value })
            }
        });
    }
    let goal = chat.about.goal.map_or(0, |goal| goal.0);
    json!({ "item_id": format!("{NAME}{goal}"), "conversations": conversations })
}

/// A message as one text.
fn text(chat: &Chat, message: &Message) -> String {
    match chat.about.dialect {
        Some(dialect) => dialect.written(message),
        None => message.content.clone(),
    }
}

fn fields(about: &About) -> Map<String, Value> {
    match serde_json::to_value(about) {
        Ok(Value::Object(mut fields)) => {
            fields.retain(|_, value| !value.is_null());
            fields
        }
        other => unreachable!("numbers and texts by their names are an object, not {other:?}"),
    }
}

/// Unique in a file in which no trip stands twice.
fn name(about: &About) -> String {
    let number = |mark: &str, number: Option<u64>| number.map(|n| format!("{mark}{n}")).unwrap_or_default();
    let goal = about.goal.map_or(0, |goal| goal.0);
    let sample = about.sample.filter(|&sample| sample > 0);
    format!(
        "{NAME}{goal}{}{}",
        number("_sample_", sample),
        number("_turn_", about.turn.map(|turn| turn as u64))
    )
}

/// What a line tells.
#[derive(Debug)]
pub(super) struct Line {
    /// What was shown before each answer, and the answer.
    pub turns: Vec<(String, Message)>,
    pub about: About,
    /// What the line says the trip was worth.
    pub reward: Option<f64>,
}

#[derive(Deserialize)]
struct Document {
    #[serde(alias = "id", alias = "item_id")]
    custom_id: Option<String>,
    #[serde(alias = "conversations")]
    messages: Vec<Said>,
    #[serde(alias = "meta", default)]
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(flatten)]
    about: About,
    #[serde(alias = "total_reward")]
    reward: Option<f64>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(alias = "from")]
    role: String,
    #[serde(alias = "value")]
    content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<SaidCall>,
}

#[derive(Deserialize)]
struct SaidCall {
    #[serde(default)]
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: Value,
}

/// Reads a line of any of the formats, which name the same things differently.
pub(super) fn read(text: &str) -> Result<Line, String> {
    let Document { custom_id, messages, metadata } = serde_json::from_str(text)
        .map_err(|error| error.to_string().replace(" at line 1 column ", " at column "))?;
    let Metadata { mut about, reward } = metadata;
    about.goal = about.goal.or_else(|| goal_in(custom_id.as_deref()?));
    let mut shown = None;
    let mut turns = Vec::new();
    for said in messages {
        match said.role.as_str() {
            "user" | "human" | "tool" | "observation" => shown = Some(said.content.unwrap_or_default()),
            "assistant" | "gpt" => {
                let shown = shown.take().ok_or("an answer to nothing")?;
                turns.push((shown, said.answer()?));
            }
            "system" => (),
            other => return Err(format!("nobody is called `{other}` in a chat")),
        }
    }
    Ok(Line { turns, about, reward })
}

impl Said {
    fn answer(self) -> Result<Message, String> {
        let call = |SaidCall { id, function }: SaidCall| {
            let arguments = match function.arguments {
                Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::Null),
                arguments => arguments,
            };
            let Value::Object(arguments) = arguments else {
                return Err(format!("the arguments of a call of `{}` are no object", function.name));
            };
            Ok(ToolCall { id, name: function.name, arguments })
        };
        let tool_calls = self.tool_calls.into_iter().map(call).collect::<Result<_, _>>()?;
        Ok(Message { tool_calls, ..Message::text(Role::Assistant, self.content.unwrap_or_default()) })
    }
}

/// The goal in the name of a trip, such as `webshop_6`.
fn goal_in(name: &str) -> Option<GoalId> {
    name.strip_prefix(NAME)?.split('_').next()?.parse().ok().map(GoalId)
}
