//! `tool-call`: function calls, as servers with OpenAI's interface take them and Qwen2.5 writes them.
//!
//! ```text
//! system     the model's role                     tools: search(query), click(label)
//! user       the instruction and the first page
//! assistant  <tool_call>\n{"name": "click", "arguments": {"label": "buy now"}}\n</tool_call>
//! tool       the next page
//! ```
//!
//! A server returns calls beside the text; a local model writes them into it. Both are parsed. Of several
//! calls the first counts. Text before a call is its thought.

use serde_json::{Map, Value, json};
use webshop_env::{Action, Compat, NoopReason, Page};
use webshop_lm::chat::{Message, Role, ToolCall};

use crate::prompt_format::completion::{CompletionForm, ParsedCompletion};
use crate::prompt_format::conversation::{Conversation, Observed};
use crate::prompt_format::format::Format;
use crate::prompt_format::tags;

const OPENING: &str = "<tool_call>";
const CLOSING: &str = "</tool_call>";

const SYSTEM: &str = "You shop online for somebody. Use the tools until what is wanted is bought: search for it, open \
     products, choose their options, and finish by clicking `buy now`.";

pub(super) struct ToolCalls;

impl Format for ToolCalls {
    fn name(&self) -> &'static str {
        "tool-call"
    }

    fn version(&self) -> &'static str {
        "tool-call-v1"
    }

    fn form(&self) -> CompletionForm {
        CompletionForm {
            thought: None,
            search: (
                "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"",
                "\"}}\n</tool_call>",
            ),
            forbidden: &['"', '\\'],
        }
    }

    fn messages(&self, conversation: &Conversation, _n_dropped: usize) -> Vec<Message> {
        let mut messages = vec![Message::text(Role::System, SYSTEM)];
        let mut open_call: Option<String> = None;
        let past = conversation.past().iter().map(|turn| (&turn.observed, Some(&turn.completion)));
        for (observed, completion) in past.chain([(conversation.current(), None)]) {
            let page = page_text(observed);
            messages.push(match &open_call {
                // The reply to a completion without a call is a user message.
                None if messages.len() > 1 => Message::text(Role::User, page),
                None => {
                    Message::text(Role::User, format!("Wanted: {}\n\n{page}", conversation.instruction()))
                }
                Some(id) => Message::tool_result(id.clone(), page),
            });
            let Some(completion) = completion else { break };
            messages.push(completion.clone());
            open_call = match completion.tool_calls.first() {
                Some(call) => Some(call.id.clone()),
                // A call within the text has no id; templates do not need one.
                None => call_in(&completion.content).map(|_| "call".to_owned()),
            };
        }
        messages
    }

    fn tools(&self) -> Option<Vec<Value>> {
        Some(tools())
    }

    fn parse(&self, completion: &Message, _page: &Page, rules: Compat) -> ParsedCompletion {
        let text = &completion.content;
        let thought = text.split(OPENING).next().map(str::trim).filter(|thought| !thought.is_empty());
        let call = match completion.tool_calls.first() {
            Some(call) => Some((call.name.clone(), call.arguments.clone())),
            None => call_in(text),
        };
        let action = call.and_then(|(name, arguments)| action_of(&name, &arguments, rules));
        let is_well_formed = action.is_some();
        let action = action.unwrap_or(Action::Noop(NoopReason::Malformed));
        ParsedCompletion::new(thought.map(str::to_owned), action, is_well_formed)
    }

    fn render_action(&self, action: &Action) -> String {
        let (name, argument, text) = match action {
            Action::Search(words) => ("search", "query", words.as_str()),
            Action::Click(label) => ("click", "label", label.as_str()),
            Action::Noop(_) => return String::new(),
        };
        let text = Value::from(text);
        format!("{OPENING}\n{{\"name\": \"{name}\", \"arguments\": {{\"{argument}\": {text}}}}}\n{CLOSING}")
    }

    fn completion_text(&self, completion: &Message) -> String {
        let Some(ToolCall { name, arguments, .. }) = completion.tool_calls.first() else {
            return completion.content.clone();
        };
        let name = Value::from(name.as_str());
        let arguments =
            arguments.iter().map(|(name, value)| format!("{}: {value}", Value::from(name.as_str())));
        let arguments = arguments.collect::<Vec<_>>().join(", ");
        let call = format!("{OPENING}\n{{\"name\": {name}, \"arguments\": {{{arguments}}}}}\n{CLOSING}");
        match completion.content.trim() {
            "" => call,
            text => format!("{text}\n{call}"),
        }
    }

    fn completion_message(&self, text: &str, call_id: &str) -> Message {
        let Some((name, arguments)) = call_in(text) else {
            return Message::text(Role::Assistant, text);
        };
        let before = text.split(OPENING).next().unwrap_or_default().trim();
        let call = ToolCall { id: call_id.to_owned(), name, arguments };
        Message { tool_calls: vec![call], ..Message::text(Role::Assistant, before) }
    }
}

fn tools() -> Vec<Value> {
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

fn page_text(observed: &Observed) -> String {
    let bar = if observed.available.has_search_bar { "There is a search bar.\n" } else { "" };
    let labels: Vec<&str> = observed.available.labels().collect();
    let labels = if labels.is_empty() { String::new() } else { format!("Labels: {}\n", labels.join(", ")) };
    format!("{}{}\n{bar}{labels}", observed.noop_line(), observed.observation)
}

/// The name and arguments of the first call in a text.
fn call_in(text: &str) -> Option<(String, Map<String, Value>)> {
    let call: Value = serde_json::from_str(tags::between(text, OPENING, CLOSING)?.trim()).ok()?;
    Some((call["name"].as_str()?.to_owned(), call["arguments"].as_object()?.clone()))
}

fn action_of(name: &str, arguments: &Map<String, Value>, rules: Compat) -> Option<Action> {
    let argument = match name {
        "search" => arguments.get("query")?,
        "click" => arguments.get("label")?,
        _ => return None,
    };
    // The action language is one line.
    let words = argument.as_str()?.replace('\n', " ");
    Some(Action::parse(&format!("{name}[{words}]"), rules))
}
