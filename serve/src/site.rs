//! The original's web site: its pages at its addresses.
//!
//! As in the original, an address alone makes a page, so that going back, reloading and bookmarks work; the
//! server keeps nothing. [`path`] reads and writes addresses. A form leads to the address of the next page with
//! status 303, whether it was sent by POST, as those of the pages, or by GET, as the links to products.
//! [`view`] writes the pages, [`entrance`] the one from which a person begins.
//!
//! A [`recorder`] may follow what visitors do.
//!
//! The session `fixed_N` has goal N. Any other name has the goal that the name draws, always the same one.
//! There is no step limit.

pub(crate) mod assets;
mod entrance;
mod goal;
mod literal;
mod path;
pub(crate) mod record_file;
pub(crate) mod recorder;
pub(crate) mod view;

use std::sync::Arc;

use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, header};
use axum::response::{IntoResponse, Redirect, Response};
use webshop_env::{Action, Address, Session, Shop};

use crate::app::App;
use crate::document;
use crate::http::{FormPairs, Routes};

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

/// A page by GET and by POST.
fn at(path: &'static str, read: Reader) -> Routes {
    let handler = async move |State(app), method, Path(segments), headers, fields| {
        page(app, method, segments, headers, fields, read).await
    };
    Routes::default().get(path, handler).post(path, handler)
}

async fn page(
    app: Arc<App>,
    method: Method,
    segments: Vec<String>,
    headers: HeaderMap,
    fields: Result<Form<FormPairs>, FormRejection>,
    read: Reader,
) -> Response {
    let fields = match fields {
        Ok(Form(fields)) => fields,
        Err(rejection) => return rejection.into_response(),
    };
    app.run(move |app| {
        let shop = app.sessions.shop();
        let (name, rest) = segments.split_first().expect("every route of the site has a session");
        let goal = match goal::of_name(&app.sessions, name) {
            Ok(goal) => goal,
            Err(error) => return document::missing(&error.to_string()),
        };
        let Some(address) = read(shop, rest) else {
            return document::missing("the shop has no page at this address");
        };
        let session = Session::at(name, goal, address);
        match read_form(shop, &session, &fields) {
            Some(taken) => {
                let mut response = redirect_to(shop, &taken.next);
                record(app, &headers, &session, &taken, &mut response);
                response
            }
            None if method == Method::POST => redirect_to(shop, &session),
            None => view::page(shop, name, goal, &session.page(shop)),
        }
    })
    .await
}

/// What a form does.
struct FormActions {
    /// Its chosen values that were not selected, then its search or its click.
    actions: Vec<Action>,
    /// The session afterwards.
    next: Session,
}

/// What a form does; `None` if it has no search, no click and no other values than are selected.
fn read_form(shop: &Shop, session: &Session, fields: &FormPairs) -> Option<FormActions> {
    let named =
        |wanted: &str| fields.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let words = named("search_query").or_else(|| named("search"));
    let action = match (words, named("click")) {
        (Some(words), _) => Some(Action::parse(&format!("search[{words}]"), Default::default())),
        (None, Some(label)) => Some(Action::Click(label.to_lowercase())),
        (None, None) => None,
    };
    let mut taken = select_options(shop, session, fields);
    if let Some(action) = action {
        taken.next.act(shop, &action);
        taken.actions.push(action);
    }
    (!taken.actions.is_empty()).then_some(taken)
}

/// The choice of a form's option values on an item page; nothing elsewhere.
fn select_options(shop: &Shop, session: &Session, fields: &FormPairs) -> FormActions {
    let mut actions = Vec::new();
    let Address::Item(listing, mut choice) = session.address() else {
        return FormActions { actions, next: session.clone() };
    };
    let product = shop.catalog().get(choice.product);
    for (name, value) in fields.iter().filter(|(name, value)| path::is_offered(product, name, value)) {
        if choice.selection.get(name) != Some(value.as_str()) {
            choice.selection.choose(name, value);
            actions.push(Action::Click(value.clone()));
        }
    }
    let next = Session::at(&session.name(), session.goal(), Address::Item(listing, choice));
    FormActions { actions, next }
}

/// A redirection to a page.
fn redirect_to(shop: &Shop, session: &Session) -> Response {
    Redirect::to(&path::write(shop, &session.name(), &session.address())).into_response()
}

/// Records what a visitor did on the page of `before`, if visitors are recorded; the visitor's cookie is set.
fn record(app: &App, headers: &HeaderMap, before: &Session, taken: &FormActions, response: &mut Response) {
    let Some(recorder) = &app.recorder else { return };
    let (visitor, cookie) = recorder.visitor(headers);
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    let written = recorder.follow(app.sessions.shop(), visitor, before, &taken.actions, &taken.next);
    if let Err(error) = written {
        // The visitor's purchase stands.
        tracing::error!("an episode is lost: {error}");
    }
}
