//! The original's web site: its pages at its addresses.
//!
//! As in the original, an address alone makes a page, so that going back, reloading and bookmarks work; the
//! server keeps nothing. [`path`] reads and writes addresses. A form leads to the address of the next page with
//! status 303, whether it was sent by POST, as those of the pages, or by GET, as the links to products.
//! [`view`] writes the pages, [`entrance`] the one from which a person begins.
//!
//! The session `fixed_N` has goal N. Any other name has the goal that the name draws, always the same one.
//! There is no step limit.

mod assets;
mod document;
mod entrance;
mod literal;
mod path;
mod view;

use std::sync::Arc;

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::http::Method;
use axum::response::{IntoResponse, Redirect, Response};
use webshop_env::{Action, Address, Session, Shop};
use webshop_products::{Digest, GoalId, Purpose};

use crate::app::App;
use crate::error::SessionError;
use crate::http::Routes;
use crate::sessions::Sessions;

/// The goal that a session's name draws.
const SITE: Purpose = Purpose::new("site-goals");

/// The routes of the site.
pub(crate) fn routes() -> Routes {
    entrance::routes()
        .and(assets::routes())
        .and(at("/{session}", path::search))
        .and(at("/search_results/{session}/{keywords}/{page}", path::results))
        .and(at("/item_page/{session}/{asin}/{keywords}/{page}/{options}", path::item))
        .and(at("/item_sub_page/{session}/{asin}/{keywords}/{page}/{sub_page}/{options}", path::detail))
        .and(at("/done/{session}/{asin}/{options}", path::done))
}

/// Reads the segments behind the session's name.
type Reader = fn(&Shop, &[String]) -> Option<Address>;

/// Names and values of a form.
type Fields = Vec<(String, String)>;

/// A page by GET and by POST.
fn at(path: &'static str, read: Reader) -> Routes {
    let handler = async move |State(app), method, Path(segments), fields| {
        page(app, method, segments, fields, read).await
    };
    Routes::default().get(path, handler).post(path, handler)
}

async fn page(
    app: Arc<App>,
    method: Method,
    segments: Vec<String>,
    fields: Result<Form<Fields>, FormRejection>,
    read: Reader,
) -> Response {
    let fields = match fields {
        Ok(Form(fields)) => fields,
        Err(rejection) => return rejection.into_response(),
    };
    app.run(move |app| {
        let shop = app.sessions.shop();
        let (name, rest) = segments.split_first().expect("every route of the site has a session");
        let goal = match goal_of(&app.sessions, name) {
            Ok(goal) => goal,
            Err(error) => return document::missing(&error.to_string()),
        };
        let Some(address) = read(shop, rest) else {
            return document::missing("the shop has no page at this address");
        };
        let session = Session::at(name, goal, address);
        let next = next(shop, &session, &fields);
        if next.is_none() && method != Method::POST {
            return view::page(shop, &session);
        }
        Redirect::to(&path::write(shop, name, &next.unwrap_or(session).address())).into_response()
    })
    .await
}

/// The goal of a session's name.
fn goal_of(sessions: &Sessions, name: &str) -> Result<GoalId, SessionError> {
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(number) = name.strip_prefix("fixed_").filter(is_number) {
        return numbered(sessions, number);
    }
    let goals = sessions.shop().goals();
    let defaults = sessions.defaults();
    let seed = defaults.seed.child(SITE, &[Digest::of(name.as_bytes()).number()]);
    goals.goal_for_seed(defaults.split, seed).ok_or(SessionError::EmptySplit(defaults.split))
}

/// The goal with a number. One that is no number, or beyond 64 bits, is beyond all goals as well.
fn numbered(sessions: &Sessions, number: &str) -> Result<GoalId, SessionError> {
    let goal = number.parse().unwrap_or(u64::MAX);
    let n_goals = sessions.shop().goals().goals().len();
    let id = u32::try_from(goal).ok().filter(|&id| (id as usize) < n_goals);
    id.map(GoalId).ok_or(SessionError::NoSuchGoal { goal, n_goals })
}

/// The session after a form: its chosen values, then its search or its click. `None` if it has none of these.
fn next(shop: &Shop, session: &Session, fields: &Fields) -> Option<Session> {
    let named =
        |wanted: &str| fields.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let words = named("search_query").or_else(|| named("search"));
    let action = match (words, named("click")) {
        (Some(words), _) => Some(Action::parse(&format!("search[{words}]"), Default::default())),
        (None, Some(label)) => Some(Action::Click(label.to_lowercase())),
        (None, None) => None,
    };
    let chosen = with_choices(shop, session, fields);
    let Some(action) = action else { return chosen };
    let mut next = chosen.unwrap_or_else(|| session.clone());
    next.act(shop, &action);
    Some(next)
}

/// The session on an item page with the option values of the form; `None` if it has no other than are selected.
fn with_choices(shop: &Shop, session: &Session, fields: &Fields) -> Option<Session> {
    let Address::Item(listing, mut choice) = session.address() else { return None };
    let product = shop.catalog().get(choice.product);
    let offered = fields.iter().filter(|(name, value)| path::is_offered(product, name, value));
    for (name, value) in offered {
        choice.selection.choose(name, value);
    }
    let is_other = choice.selection != *session.selection();
    is_other.then(|| Session::at(&session.name(), session.goal(), Address::Item(listing, choice)))
}
