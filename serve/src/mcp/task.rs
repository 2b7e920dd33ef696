//! The task of an MCP client, which the query of its address names.

use axum::extract::Query;
use axum::http::Uri;

use crate::fields::{self, Fields};
use crate::reset::ResetRequest;
use crate::tools::ToolNames;

/// The longest name of a session, in characters.
const MAX_NAME: usize = 255;

/// What an address asks for.
#[derive(Debug, PartialEq)]
pub(super) struct Task {
    /// The name of the session, if it is to have one.
    pub(super) name: Option<String>,
    /// How its episode begins.
    pub(super) reset: ResetRequest,
    /// What its tools are called.
    pub(super) tools: ToolNames,
}

impl Task {
    /// The fields of a query.
    const FIELDS: [&str; 8] =
        ["session", "goal", "split", "index", "seed", "max_steps", "observation", "tools"];

    /// The task of an address.
    ///
    /// # Errors
    /// A text that names every wrong field.
    pub(super) fn of(address: &Uri) -> Result<Task, String> {
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(address);
        let Query(pairs) = pairs.map_err(|error| error.to_string())?;
        // The name is a text, also if it looks like a number.
        let named = pairs.iter().rfind(|(field, _)| field == "session").map(|(_, name)| name.clone());
        let mut object = fields::object_of_query(pairs);
        if let Some(name) = named {
            object.insert("session".into(), name.into());
        }
        let mut fields = Fields::new(&object);
        fields.forbid_others(&Task::FIELDS);
        let task = Task {
            name: fields.text("session", MAX_NAME).filter(|name| !name.is_empty()),
            reset: ResetRequest::read(&mut fields),
            tools: fields
                .parsed("tools", "'webshop', 'agentgym' or 'agentbench'", |name| name.parse().ok())
                .unwrap_or_default(),
        };
        let task = fields.finish(task);
        task.map_err(|errors| format!("the address is wrong: {}", fields::messages(&errors)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reset::GoalRequest;
    use webshop_products::Split;

    fn read(query: &str) -> Result<Task, String> {
        Task::of(&format!("/mcp{query}").parse().expect("an address"))
    }

    #[test]
    fn a_query_names_a_session_a_goal_and_tools() {
        let stream = GoalRequest::Stream { split: None };
        let none = Task { name: None, reset: ResetRequest::new(stream), tools: ToolNames::WebShop };
        assert_eq!(read(""), Ok(none));
        let task = read("?session=a%20b&split=test&index=3&max_steps=7&tools=agentbench").expect("a task");
        let index = GoalRequest::Index { split: Some(Split::Test), index: 3 };
        let expected = ResetRequest { max_steps: Some(7), ..ResetRequest::new(index) };
        assert_eq!((task.name.as_deref(), task.reset), (Some("a b"), expected));
        assert_eq!(task.tools, ToolNames::AgentBench);
        assert_eq!(read("?session=12&goal=5").expect("a task").name.as_deref(), Some("12"));
        assert_eq!(read("?session=&goal=5").expect("a task").name, None);
    }

    #[test]
    fn every_wrong_field_is_named() {
        let expected = "the address is wrong: `gaol`: Extra inputs are not permitted; `goal`: Input should be a valid \
                        integer; `tools`: Input should be 'webshop', 'agentgym' or 'agentbench'";
        assert_eq!(read("?gaol=1&goal=x&tools=all"), Err(expected.to_owned()));
    }
}
