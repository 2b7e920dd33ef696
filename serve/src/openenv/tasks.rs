//! OpenEnv's Task API: the goals of each split as tasks, without what they want bought.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use webshop_env::Shop;
use webshop_products::{GoalId, Split};

use super::NAME;
use crate::app::App;
use crate::detail::{self, ErrorResponse};
use crate::fields::Fields;
use crate::http::{self, Routes};

/// The routes about tasks.
pub(super) fn routes() -> Routes {
    Routes::default()
        .get("/list_environments", environments)
        .get("/{environment}/splits", splits)
        .post("/{environment}/tasks", tasks)
        .post("/{environment}/num_tasks", num_tasks)
        .post("/{environment}/task", task)
        .post("/{environment}/task_range", task_range)
}

type ApiResult = Result<Response, ErrorResponse>;

/// Refuses another environment; names are compared without case.
fn check_name(environment: &str) -> Result<(), ErrorResponse> {
    if environment.eq_ignore_ascii_case(NAME) {
        return Ok(());
    }
    let message = format!("unknown environment '{environment}'; this is '{NAME}'");
    Err(detail::text(StatusCode::NOT_FOUND, &message).into())
}

async fn environments() -> Response {
    http::ok(&[NAME])
}

async fn splits(Path(environment): Path<String>) -> ApiResult {
    check_name(&environment)?;
    let splits = [Split::Train, Split::Validation, Split::Test];
    Ok(http::ok(&splits.map(|split| json!({"name": split, "type": split}))))
}

async fn tasks(State(app): State<Arc<App>>, Path(environment): Path<String>, body: Bytes) -> ApiResult {
    check_name(&environment)?;
    let split = detail::read(&body, split)?.expect("a required field was read");
    app.run(move |app| {
        let all = some_tasks(app.sessions.shop(), split, 0, usize::MAX);
        Ok(http::ok(&json!({"tasks": all, "env_name": NAME})))
    })
    .await
}

async fn num_tasks(State(app): State<Arc<App>>, Path(environment): Path<String>, body: Bytes) -> ApiResult {
    check_name(&environment)?;
    let split = detail::read(&body, split)?.expect("a required field was read");
    Ok(http::ok(&json!({"num_tasks": app.sessions.shop().goals().split(split).len()})))
}

async fn task(State(app): State<Arc<App>>, Path(environment): Path<String>, body: Bytes) -> ApiResult {
    check_name(&environment)?;
    let (split, index) = detail::read(&body, |fields| {
        (split(fields), fields.required("index", |fields, name| fields.unsigned(name, u64::MAX)))
    })?;
    let split = split.expect("a required field was read");
    let index = usize::try_from(index.expect("a required field was read")).unwrap_or(usize::MAX);
    match some_tasks(app.sessions.shop(), split, index, index.saturating_add(1)).pop() {
        Some(task) => Ok(http::ok(&json!({ "task": task }))),
        None => Err(detail::text(StatusCode::BAD_REQUEST, "Invalid task index").into()),
    }
}

async fn task_range(State(app): State<Arc<App>>, Path(environment): Path<String>, body: Bytes) -> ApiResult {
    check_name(&environment)?;
    let (split, start, stop) = detail::read(&body, |fields| {
        let number = |fields: &mut Fields<'_>, name| {
            let n = fields.unsigned(name, u64::MAX);
            n.map(|n| usize::try_from(n).unwrap_or(usize::MAX))
        };
        (split(fields), number(fields, "start"), number(fields, "stop"))
    })?;
    let split = split.expect("a required field was read");
    app.run(move |app| {
        let (start, stop) = (start.unwrap_or(0), stop.unwrap_or(usize::MAX));
        let tasks = some_tasks(app.sessions.shop(), split, start, stop);
        Ok(http::ok(&json!({ "tasks": tasks })))
    })
    .await
}

fn split(fields: &mut Fields<'_>) -> Option<Split> {
    fields.required("split", crate::reset::split)
}

/// The tasks of a split from `start` to before `stop`, as far as there are any.
fn some_tasks(shop: &Shop, split: Split, start: usize, stop: usize) -> Vec<Value> {
    let goals = shop.goals().split(split);
    let stop = stop.min(goals.len());
    let some = goals.get(start..stop).unwrap_or_default();
    let task = |(at, goal): (usize, &GoalId)| {
        let instruction = &shop.goals().get(*goal).instruction;
        json!({"goal": goal, "instruction": instruction, "split": split, "index": start + at})
    };
    some.iter().enumerate().map(task).collect()
}
