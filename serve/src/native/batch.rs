//! Many sessions in one request: a whole vector environment.
//!
//! The reply has the fields of a single session's, each with a list in the order of the request.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use serde_json::{Map, Value};

use super::{ApiError, ApiResult, Shown, read};
use crate::app::App;
use crate::fields::Fields;
use crate::http;
use crate::reset::{GoalRequest, ResetRequest};
use crate::sessions::session::OpenSession;
use crate::sessions::{Interface, Lifetime};

/// The fields of a reset of many sessions.
const RESET_FIELDS: [&str; 6] = ["goals", "seeds", "ids", "split", "max_steps", "observation"];

/// Begins an episode for each goal or seed, in the sessions `ids` or in new ones.
pub(super) async fn reset(State(app): State<Arc<App>>, body: Bytes) -> ApiResult {
    app.run(move |app| {
        let (request, goals, seeds, ids) = read(&body, &RESET_FIELDS, |fields| {
            let request = ResetRequest::read(fields);
            let (goals, seeds) = (numbers(fields, "goals"), numbers(fields, "seeds"));
            (request, goals, seeds, texts(fields, "ids"))
        })?;
        let split = match request.goal {
            GoalRequest::Stream { split } => split,
            _ => unreachable!("fields that name one goal are refused"),
        };
        let goals: Vec<GoalRequest> = match (goals, seeds) {
            (Some(goals), None) if split.is_none() => goals.into_iter().map(GoalRequest::Goal).collect(),
            (None, Some(seeds)) => seeds.into_iter().map(|seed| GoalRequest::Seed { split, seed }).collect(),
            _ => return Err(ApiError::invalid("give either `goals`, or `seeds` with or without `split`")),
        };
        let requests: Vec<ResetRequest> =
            goals.into_iter().map(|goal| ResetRequest { goal, ..request.clone() }).collect();
        // All goals first: a wrong request changes nothing.
        requests.iter().try_for_each(|request| app.sessions.check(request))?;
        let sessions = match ids {
            Some(ids) if ids.len() == requests.len() => found(app, &ids)?,
            Some(ids) => return Err(not_as_many("ids", ids.len(), "goals or seeds", requests.len())),
            None => app.sessions.open_many(Interface::Native, Lifetime::Idle, requests.len())?,
        };
        let pairs = sessions.iter().zip(&requests);
        let shown = pairs.map(|(session, request)| Ok(Shown::new(session, session.reset(request)?)));
        Ok(http::ok(&by_field(shown.collect::<Result<_, ApiError>>()?)))
    })
    .await
}

/// Takes one action in each of the sessions `ids`, in their order.
pub(super) async fn step(State(app): State<Arc<App>>, body: Bytes) -> ApiResult {
    app.run(move |app| {
        let (ids, actions) = read(&body, &["ids", "actions"], |fields| {
            let ids = fields.required("ids", texts);
            (ids, fields.required("actions", texts))
        })?;
        let (ids, actions) = (ids.unwrap_or_default(), actions.unwrap_or_default());
        if ids.len() != actions.len() {
            return Err(not_as_many("ids", ids.len(), "actions", actions.len()));
        }
        let sessions = found(app, &ids)?;
        let pairs = sessions.iter().zip(&actions);
        let shown = pairs.map(|(session, action)| Ok(Shown::new(session, session.step(action)?)));
        Ok(http::ok(&by_field(shown.collect::<Result<_, ApiError>>()?)))
    })
    .await
}

fn numbers(fields: &mut Fields<'_>, name: &str) -> Option<Vec<u64>> {
    fields.list(name, "integers from 0", |value| value.as_u64())
}

fn texts(fields: &mut Fields<'_>, name: &str) -> Option<Vec<String>> {
    fields.list(name, "strings", |value| value.as_str().map(str::to_owned))
}

fn not_as_many(one: &str, n_one: usize, other: &str, n_other: usize) -> ApiError {
    ApiError::invalid(format!("there are {n_one} {one}, but {n_other} {other}"))
}

/// All sessions of these names, each given once, or none.
fn found(app: &App, ids: &[String]) -> Result<Vec<OpenSession>, ApiError> {
    let mut given = BTreeSet::new();
    if let Some(id) = ids.iter().find(|id| !given.insert(*id)) {
        return Err(ApiError::invalid(format!("`ids`: the session `{id}` is given twice")));
    }
    ids.iter().map(|id| Ok(app.sessions.find_named(Interface::Native, id)?)).collect()
}

/// One object of lists from a list of objects.
fn by_field(shown: Vec<Shown>) -> Map<String, Value> {
    let mut lists: Map<String, Value> = Map::new();
    lists.insert("ids".into(), Value::Array(Vec::new()));
    for one in shown {
        let Ok(Value::Object(one)) = serde_json::to_value(one) else {
            unreachable!("a session is an object")
        };
        for (name, value) in one {
            let name = if name == "id" { "ids".to_owned() } else { name };
            let list = lists.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            list.as_array_mut().expect("every field is a list").push(value);
        }
    }
    lists
}
