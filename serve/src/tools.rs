//! The actions of the shop as tools that an agent calls: to search, to click, and to read the page again.
//!
//! A tool call is an action: one that the page does not offer is a no-op, as it does anywhere else, and the result
//! says why. The argument is not read as the text of an action: it may have brackets, and a line break is a space.
//! [`ToolNames`] are the names that other environments gave these tools. Resets, states and closing are never
//! tools, because they are not the agent's to use.

use std::str::FromStr;

use serde_json::{Map, Value, json};
use webshop_env::Action;

use crate::error::SessionError;
use crate::sessions::session::{OpenSession, SessionView};

/// The names of an agent's tools and of their arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolNames {
    /// `search(query)`, `click(target)`, `view_page()`.
    #[default]
    WebShop,
    /// As AgentGym's function calls: `search(keywords)`, `click(item)`, `view_page()`.
    AgentGym,
    /// As AgentBench's function calls: `search_action(keywords)`, `click_action(value)`, `view_page()`.
    AgentBench,
}

impl FromStr for ToolNames {
    type Err = ();

    fn from_str(name: &str) -> Result<ToolNames, ()> {
        match name {
            "webshop" => Ok(ToolNames::WebShop),
            "agentgym" => Ok(ToolNames::AgentGym),
            "agentbench" => Ok(ToolNames::AgentBench),
            _ => Err(()),
        }
    }
}

/// A tool. Lists of names are in the order of [`ToolNames`].
struct Tool {
    names: [&'static str; 3],
    description: &'static str,
    /// The action that it takes; `None` if it only reads the page.
    action: Option<ActionTool>,
}

/// What a tool that takes an action needs.
struct ActionTool {
    /// Makes the action of the argument: lower case, at least one character, one line.
    to_action: fn(String) -> Action,
    /// The names of its text argument.
    arguments: [&'static str; 3],
    /// Its name in the prompt format `tool-call`, which is always understood, as the others are.
    also: &'static str,
    /// What the argument is.
    what: &'static str,
}

const TOOLS: [Tool; 3] = [
    Tool {
        names: ["search", "search", "search_action"],
        description: "Search the shop for products. Returns the first page of results.",
        action: Some(ActionTool {
            to_action: Action::Search,
            arguments: ["query", "keywords", "keywords"],
            also: "query",
            what: "Words to search for",
        }),
    },
    Tool {
        names: ["click", "click", "click_action"],
        description: "Click a button, a product or an option value on the current page. `buy now` ends the episode.",
        action: Some(ActionTool {
            to_action: Action::Click,
            arguments: ["target", "item", "value"],
            also: "label",
            what: "Label of the element, as the page shows it",
        }),
    },
    Tool {
        names: ["view_page"; 3],
        description: "Read the current page again. Changes nothing.",
        action: None,
    },
];

impl Tool {
    fn name(&self, names: ToolNames) -> &'static str {
        self.names[names as usize]
    }
}

/// Why a tool was not called.
#[derive(Debug)]
pub(crate) enum ToolError {
    /// There is no such tool.
    NoSuchTool {
        /// The name asked for.
        name: String,
        /// The names in use.
        names: ToolNames,
    },
    /// The arguments are wrong; the text names the one at fault.
    Arguments(String),
    /// The session has no episode and cannot begin one.
    Session(SessionError),
}

impl ToolError {
    /// The error as a text.
    pub(crate) fn message(&self) -> String {
        match self {
            ToolError::NoSuchTool { name, names } => {
                let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name(*names)).collect();
                format!("there is no tool `{name}`; the tools are `{}`", names.join("`, `"))
            }
            ToolError::Arguments(message) => message.clone(),
            ToolError::Session(error) => error.to_string(),
        }
    }
}

/// How the tools are used, in two sentences with their names.
pub(crate) fn usage(names: ToolNames) -> String {
    let [search, click, view] = TOOLS.each_ref().map(|tool| tool.name(names));
    format!(
        "`{search}` finds products, `{click}` presses what the current page shows, and `{view}` reads that page \
         again. Open a product, choose its options and click `buy now`."
    )
}

/// The list of tools; `schema_key` is the protocol's name for the schema of the arguments.
pub(crate) fn list(names: ToolNames, schema_key: &str) -> Vec<Value> {
    let shown = TOOLS.iter().map(|tool| {
        let argument = tool.action.as_ref().map(|action| (action.arguments[names as usize], action.what));
        let properties: Map<String, Value> = argument
            .iter()
            .map(|(name, what)| ((*name).to_owned(), json!({"type": "string", "description": what})))
            .collect();
        let required: Vec<&str> = argument.iter().map(|(name, _)| *name).collect();
        let schema = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        });
        let mut shown = json!({"name": tool.name(names), "description": tool.description});
        shown[schema_key] = schema;
        shown
    });
    shown.collect()
}

/// The list of tools as MCP has it, with the annotation that says which of them change nothing.
pub(crate) fn annotated_list(names: ToolNames) -> Vec<Value> {
    let mut tools = list(names, "inputSchema");
    for (shown, tool) in tools.iter_mut().zip(&TOOLS) {
        shown["annotations"] = json!({"readOnlyHint": tool.action.is_none()});
    }
    tools
}

/// The page that a tool leads to as structured content. `noop` says why the action did nothing; it is null otherwise.
pub(crate) fn structured(view: &SessionView) -> Value {
    json!({
        "text": view.observation,
        "available_actions": view.available_actions,
        "reward": view.reward(),
        "done": view.is_done(),
        "noop": view.last.and_then(|last| last.noop),
    })
}

/// The page that a tool leads to as text, after a line that says why the action did nothing, if it did nothing.
pub(crate) fn text(view: &SessionView) -> String {
    match view.last.and_then(|last| last.noop) {
        Some(reason) => format!("Nothing happened: {reason}.\n{}", view.observation),
        None => view.observation.clone(),
    }
}

/// Calls a tool in a session. A tool that only reads the page has no last action, and so neither reward nor reason.
///
/// # Errors
/// If there is no such tool, or its arguments are wrong. The session is unchanged then.
pub(crate) fn call(
    names: ToolNames,
    session: &OpenSession,
    name: &str,
    arguments: &Map<String, Value>,
) -> Result<SessionView, ToolError> {
    Call::read(names, name, arguments)?.in_session(session)
}

/// A call that is not wrong.
#[derive(Debug)]
pub(crate) struct Call {
    /// What the tool does; `None` if it only reads the page.
    action: Option<Action>,
}

impl Call {
    /// Reads a call.
    ///
    /// # Errors
    /// If there is no such tool, or its arguments are wrong.
    pub(crate) fn read(
        names: ToolNames,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Call, ToolError> {
        let tool = TOOLS.iter().find(|tool| tool.name(names) == name);
        let tool = tool.ok_or_else(|| ToolError::NoSuchTool { name: name.to_owned(), names })?;
        let action = read_action(tool, names, arguments).map_err(ToolError::Arguments)?;
        Ok(Call { action })
    }

    /// Makes the call in a session.
    ///
    /// # Errors
    /// [`ToolError::Session`].
    pub(crate) fn in_session(&self, session: &OpenSession) -> Result<SessionView, ToolError> {
        let view = match &self.action {
            Some(action) => session.act(action),
            None => session.view().map(|view| SessionView { last: None, ..view }),
        };
        view.map_err(ToolError::Session)
    }
}

/// The action of a call, whose argument may have any of its names; `None` for a tool that takes none.
fn read_action(
    tool: &Tool,
    names: ToolNames,
    arguments: &Map<String, Value>,
) -> Result<Option<Action>, String> {
    let name = tool.name(names);
    let knows = |argument: &str| {
        tool.action.as_ref().is_some_and(|it| it.also == argument || it.arguments.contains(&argument))
    };
    if let Some(other) = arguments.keys().find(|argument| !knows(argument)) {
        return Err(format!("the tool `{name}` has no argument `{other}`"));
    }
    let Some(action) = &tool.action else { return Ok(None) };
    let named = action.arguments[names as usize];
    match arguments.values().next() {
        None => Err(format!("the tool `{name}` needs the argument `{named}`")),
        Some(Value::String(text)) if arguments.len() == 1 && text.is_empty() => {
            Err(format!("the argument `{named}` must have at least one character"))
        }
        Some(Value::String(text)) if arguments.len() == 1 => {
            Ok(Some((action.to_action)(text.to_lowercase().replace('\n', " "))))
        }
        Some(_) if arguments.len() > 1 => Err(format!("the argument `{named}` is given twice")),
        Some(_) => Err(format!("the argument `{named}` must be a string")),
    }
}
