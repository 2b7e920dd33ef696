//! The actions of the shop as tools that an agent calls: `search`, `click` and `view_page`.
//!
//! A tool call is an action: one that the page does not offer passes the turn, as it does anywhere else.
//! Resets, states and closing are never tools, because they are not the agent's to use.

use serde_json::{Map, Value, json};

use crate::error::SessionError;
use crate::sessions::session::{OpenSession, SessionView};

/// A tool.
struct Tool {
    name: &'static str,
    description: &'static str,
    /// The name of its text argument and what that is; `None` without an argument.
    argument: Option<(&'static str, &'static str)>,
    /// Further names of the argument that are understood.
    aliases: &'static [&'static str],
}

const TOOLS: [Tool; 3] = [
    Tool {
        name: "search",
        description: "Search the shop for products. Returns the first page of results.",
        argument: Some(("query", "Words to search for")),
        aliases: &["keywords"],
    },
    Tool {
        name: "click",
        description: "Click a button, a product or an option value on the current page. `buy now` ends the episode.",
        argument: Some(("target", "Label of the element, as the page shows it")),
        aliases: &["item", "value"],
    },
    Tool {
        name: "view_page",
        description: "Read the current page again. Changes nothing.",
        argument: None,
        aliases: &[],
    },
];

/// Why a tool was not called.
#[derive(Debug)]
pub(crate) enum ToolError {
    /// There is no such tool.
    NoSuchTool(String),
    /// The arguments are wrong; the text names the one at fault.
    Arguments(String),
    /// The session has no episode and cannot begin one.
    Session(SessionError),
}

impl ToolError {
    /// The error as a text.
    pub(crate) fn message(&self) -> String {
        match self {
            ToolError::NoSuchTool(name) => {
                let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
                format!("there is no tool `{name}`; the tools are `{}`", names.join("`, `"))
            }
            ToolError::Arguments(message) => message.clone(),
            ToolError::Session(error) => error.to_string(),
        }
    }
}

/// The list of tools; `schema_key` is the protocol's name for the schema of the arguments.
pub(crate) fn list(schema_key: &str) -> Value {
    let shown = TOOLS.iter().map(|tool| {
        let properties: Map<String, Value> = tool
            .argument
            .iter()
            .map(|(name, what)| ((*name).to_owned(), json!({"type": "string", "description": what})))
            .collect();
        let required: Vec<&str> = tool.argument.iter().map(|(name, _)| *name).collect();
        let schema = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        });
        let mut shown = json!({"name": tool.name, "description": tool.description});
        shown[schema_key] = schema;
        shown
    });
    shown.collect()
}

/// Calls a tool in a session.
///
/// # Errors
/// If there is no such tool, or its arguments are wrong. The session is unchanged then.
pub(crate) fn call(
    session: &OpenSession,
    name: &str,
    arguments: &Map<String, Value>,
) -> Result<SessionView, ToolError> {
    let tool = TOOLS.iter().find(|tool| tool.name == name);
    let tool = tool.ok_or_else(|| ToolError::NoSuchTool(name.to_owned()))?;
    let argument = read_argument(tool, arguments).map_err(ToolError::Arguments)?;
    let view = match argument {
        Some(argument) => session.step(&format!("{name}[{argument}]")),
        None => session.view(),
    };
    view.map_err(ToolError::Session)
}

/// The text argument of a tool, by any of its names.
fn read_argument<'a>(tool: &Tool, arguments: &'a Map<String, Value>) -> Result<Option<&'a str>, String> {
    let named = tool.argument.map(|(name, _)| name);
    let is_known = |name: &&String| named == Some(name.as_str()) || tool.aliases.contains(&name.as_str());
    if let Some(other) = arguments.keys().find(|name| !is_known(name)) {
        return Err(format!("the tool `{}` has no argument `{other}`", tool.name));
    }
    let Some(named) = named else { return Ok(None) };
    match arguments.values().next() {
        None => Err(format!("the tool `{}` needs the argument `{named}`", tool.name)),
        Some(Value::String(text)) if arguments.len() == 1 => Ok(Some(text)),
        Some(_) if arguments.len() > 1 => Err(format!("the argument `{named}` is given twice")),
        Some(_) => Err(format!("the argument `{named}` must be a string")),
    }
}
