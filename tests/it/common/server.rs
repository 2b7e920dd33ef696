//! A small web server on this machine.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use webshop_env::{Action, Session, Shop};
use webshop_products::GoalId;

/// A request.
pub(crate) struct Request {
    /// The path as it was sent.
    pub(crate) path: String,
    /// Names, in lower case, and values of the headers.
    pub(crate) headers: BTreeMap<String, String>,
    /// Names and values of the query, then of the form.
    pub(crate) fields: Vec<(String, String)>,
    /// The body that is no form.
    pub(crate) body: String,
}

/// A response.
pub(crate) enum Response {
    /// A document.
    Page(String),
    /// Another address.
    Redirect(String),
    /// An error, by its number.
    Error(u16),
    /// A status, further headers, and a body of the type JSON.
    Json(u16, &'static str, String),
    /// Nothing: the connection is closed.
    Nothing,
}

/// Serves `answer` until the tests end, and returns the address.
pub(crate) fn serve(answer: impl Fn(&Request) -> Response + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("a bound address");
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let answer = answer.clone();
            // The client may have closed the connection.
            thread::spawn(move || attend(connection, &*answer).ok());
        }
    });
    format!("http://{address}/")
}

/// The documents of our own shop, whose forms name the action; the server keeps each session.
pub(crate) fn our_site(shop: Arc<Shop>) -> String {
    let sessions: Mutex<BTreeMap<String, Session>> = Mutex::default();
    serve(move |asked| {
        let mut sessions = sessions.lock().expect("no thread panics");
        let Some(goal) = goal_of(&shop, asked.path.trim_start_matches('/')) else {
            return Response::Error(500);
        };
        let session = sessions.entry(asked.path.clone()).or_insert_with(|| Session::start(goal));
        if asked.fields.is_empty() {
            *session = Session::start(goal);
        }
        if let Some(action) = action_of(session, &asked.fields) {
            session.act(&shop, &action);
        }
        Response::Page(session.page(&shop).html())
    })
}

/// The goal of a session, as the original finds it.
pub(crate) fn goal_of(shop: &Shop, session: &str) -> Option<GoalId> {
    let number: u32 = session.strip_prefix("fixed_")?.parse().ok()?;
    ((number as usize) < shop.goals().goals().len()).then_some(GoalId(number))
}

/// The action on the page of `session`, by the fields of its form: a button, a search, or a new option.
fn action_of(session: &Session, fields: &[(String, String)]) -> Option<Action> {
    let named = |wanted: &str| fields.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
    let chosen = fields.iter().find(|(name, value)| session.selection().get(name) != Some(value));
    let click = named("click").map(|label| Action::Click(label.to_lowercase()));
    let click = click.or(named("search").map(Action::Search));
    click.or(chosen.map(|(_, value)| Action::Click(value.clone())))
}

fn attend(connection: TcpStream, answer: &dyn Fn(&Request) -> Response) -> io::Result<()> {
    let mut reader = BufReader::new(&connection);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = BTreeMap::new();
    while line.trim() != "" {
        line.clear();
        reader.read_line(&mut line)?;
        let (name, value) = line.split_once(':').unwrap_or_default();
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let n_bytes = headers.get("content-length").map_or(0, |n| n.parse().expect("a number"));
    let mut body = vec![0; n_bytes];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body).into_owned();
    let is_form = headers.get("content-type").is_some_and(|kind| kind.starts_with("application/x-www-form"));
    let (form, body) = if is_form { (body, String::new()) } else { (String::new(), body) };
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let fields =
        [query, &form].into_iter().flat_map(|fields| fields.split('&')).filter(|field| !field.is_empty());
    let fields = fields.map(|field| field.split_once('=').unwrap_or((field, "")));
    let fields = fields.map(|(name, value)| (decoded(name, true), decoded(value, true))).collect();
    let (head, body) = match answer(&Request { path: path.to_owned(), headers, fields, body }) {
        Response::Page(document) => ("200 OK\r\nContent-Type: text/html; charset=utf-8".into(), document),
        Response::Redirect(to) => (format!("302 Found\r\nLocation: {to}"), String::new()),
        Response::Error(status) => (format!("{status} As It Is"), "<h1>Something is wrong</h1>".into()),
        Response::Json(status, headers, json) => {
            (format!("{status} As It Is\r\nContent-Type: application/json{headers}"), json)
        }
        Response::Nothing => return Ok(()),
    };
    let n_bytes = body.len();
    write!(&connection, "HTTP/1.1 {head}\r\nContent-Length: {n_bytes}\r\nConnection: close\r\n\r\n{body}")
}

/// A text out of an address, where bytes are written as `%20`, and in fields a space as `+`.
pub(crate) fn decoded(text: &str, is_field: bool) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next(), rest.next()].map(|digit| char::from(digit.expect("two digits")));
                u8::from_str_radix(&String::from_iter(digits), 16).expect("two digits")
            }
            b'+' if is_field => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).expect("text")
}
