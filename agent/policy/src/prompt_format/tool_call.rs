//! `tool-call`: function calls, as servers with the interface of OpenAI's take them and Qwen2.5 writes them.
//!
//! ```text
//! system     who the model is                     tools: search(query), click(label)
//! user       the instruction and the first page
//! assistant  <tool_call>\n{"name": "click", "arguments": {"label": "buy now"}}\n</tool_call>
//! tool       the page that it led to
//! ```
//!
//! A server hands calls out apart from the text; a model of our own writes them into it, and both are read. Of
//! several calls the first is made. Text before a call is its thought.

use serde_json::{Map, Value, json};
use webshop_env::{Action, Compat, NoopReason};

use crate::prompt_format::{AnswerForm, Utterance, tags};
use webshop_lm::{Message, Role, ToolCall};
use crate::prompt_format::conversation::{Dialogue, Seen};

pub const VERSION: &str = "tool-call-v1";

const OPENING: &str = "<tool_call>";
const CLOSING: &str = "</tool_call>";

pub const FORM: AnswerForm = AnswerForm {
    thought: None,
    search: ("<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"", "\"}}\n</tool_call>"),
    forbidden: &['"', '\\'],
};

const SYSTEM: &str = "You shop online for somebody. Use the tools until what is wanted is bought: search for it, open \
     products, choose their options, and finish by clicking `buy now`.";

/// The two tools.
pub fn tools() -> Vec<Value> {
    let tool = |name: &str, does: &str, argument: &str, holds: &str| {
        let properties = json!({ argument: { "type": "string", "description": holds } });
        let parameters = json!({ "type": "object", "properties": properties, "required": [argument] });
        let function = json!({ "name": name, "description": does, "parameters": parameters });
        json!({ "type": "function", "function": function })
    };
    vec![
        tool("search", "Search the shop.", "query", "The words to search for."),
        tool("click", "Press what is written on the page.", "label", "A button, a product or an option."),
    ]
}

pub fn messages(trip: &Dialogue) -> Vec<Message> {
    let mut messages = vec![Message::text(Role::System, SYSTEM)];
    let mut asked: Option<String> = None;
    let past = trip.past().iter().map(|turn| (&turn.seen, Some(&turn.answer)));
    for (seen, answer) in past.chain([(trip.now(), None)]) {
        let told = told(seen);
        messages.push(match &asked {
            // What was no call is answered as text is.
            None if messages.len() > 1 => Message::text(Role::User, told),
            None => Message::text(Role::User, format!("Wanted: {}\n\n{told}", trip.instruction())),
            Some(id) => Message::answer(id.clone(), told),
        });
        let Some(answer) = answer else { break };
        messages.push(answer.clone());
        asked = match answer.tool_calls.first() {
            Some(call) => Some(call.id.clone()),
            // A call within the text has no name of its own; templates do not ask for one.
            None => call_in(&answer.content).map(|_| "call".to_owned()),
        };
    }
    messages
}

fn told(seen: &Seen) -> String {
    let noop = seen.noop.map(|reason| format!("Nothing happened: {reason}.\n")).unwrap_or_default();
    let bar = if seen.available.has_search_bar { "There is a search bar.\n" } else { "" };
    let labels: Vec<&str> = seen.available.labels().collect();
    let labels = if labels.is_empty() { String::new() } else { format!("Labels: {}\n", labels.join(", ")) };
    format!("{noop}{}\n{bar}{labels}", seen.observation)
}

pub fn say(action: &Action) -> String {
    let (name, argument, text) = match action {
        Action::Search(words) => ("search", "query", words.as_str()),
        Action::Click(label) => ("click", "label", label.as_str()),
        Action::Noop(_) => return String::new(),
    };
    let text = Value::from(text);
    format!("{OPENING}\n{{\"name\": \"{name}\", \"arguments\": {{\"{argument}\": {text}}}}}\n{CLOSING}")
}

pub fn written(answer: &Message) -> String {
    let Some(ToolCall { name, arguments, .. }) = answer.tool_calls.first() else {
        return answer.content.clone();
    };
    let name = Value::from(name.as_str());
    let arguments = arguments.iter().map(|(name, value)| format!("{}: {value}", Value::from(name.as_str())));
    let arguments = arguments.collect::<Vec<_>>().join(", ");
    let call = format!("{OPENING}\n{{\"name\": {name}, \"arguments\": {{{arguments}}}}}\n{CLOSING}");
    match answer.content.trim() {
        "" => call,
        text => format!("{text}\n{call}"),
    }
}

pub fn answered(written: &str, id: &str) -> Message {
    let Some((name, arguments)) = call_in(written) else {
        return Message::text(Role::Assistant, written);
    };
    let text = written.split(OPENING).next().unwrap_or_default().trim();
    let call = ToolCall { id: id.to_owned(), name, arguments };
    Message { tool_calls: vec![call], ..Message::text(Role::Assistant, text) }
}

pub fn parse(answer: &Message) -> Utterance {
    let text = &answer.content;
    let thought = text.split(OPENING).next().map(str::trim).filter(|thought| !thought.is_empty());
    let call = match answer.tool_calls.first() {
        Some(call) => Some((call.name.clone(), call.arguments.clone())),
        None => call_in(text),
    };
    let action = call.and_then(|(name, arguments)| action_of(&name, &arguments));
    let is_well_formed = action.is_some();
    let action = action.unwrap_or(Action::Noop(NoopReason::Malformed));
    Utterance::of(thought.map(str::to_owned), action, is_well_formed)
}

/// The name and arguments of the first call written into a text.
fn call_in(text: &str) -> Option<(String, Map<String, Value>)> {
    let call: Value = serde_json::from_str(tags::between(text, OPENING, CLOSING)?.trim()).ok()?;
    Some((call["name"].as_str()?.to_owned(), call["arguments"].as_object()?.clone()))
}

fn action_of(name: &str, arguments: &Map<String, Value>) -> Option<Action> {
    let argument = match name {
        "search" => arguments.get("query")?,
        "click" => arguments.get("label")?,
        _ => return None,
    };
    // On one line, as the action language has it.
    let words = argument.as_str()?.replace('\n', " ");
    Some(Action::parse(&format!("{name}[{words}]"), Compat::Repaired))
}
