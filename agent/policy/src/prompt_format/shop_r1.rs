//! `shop-r1`: pages as simplified HTML, answers as one JSON object ("Shop-R1", arXiv 2507.17842, section 3).
//!
//! ```text
//! system     the form of answers
//! user       Page 1: <html> · Action 1: {"type":…} · Page 2: <html> · …       no past rationales
//! assistant  {"rationale": "…", "action": {"type":"click","name":"buy now"}}
//! ```
//!
//! Whatever can be used on a page has a `name`: the label itself in lower case, `search_input` for the search bar. Pages
//! long past make room for the present one, oldest first; what was done on them stays. `shop-r1-latest` shows the present
//! page alone, and `shop-r1-minimal` leaves the form of answers to training besides.
//!
//! `type_and_submit` searches, `click` clicks, `terminate` leaves without buying. Answers are read by
//! [`crate::next_action`], in its mode `schema`, and mean on a page what is said there. A click on what the page does not
//! have stays the click it is, so that the shop can refuse it and the record says what was tried.

use std::fmt::Write;

use serde_json::{Value, json};
use webshop_env::{Action, Node, NodeKind, NoopReason, Page};

use crate::prompt_format::{AnswerForm, Utterance};
use webshop_lm::{Message, Role};
use crate::prompt_format::conversation::Dialogue;
use crate::next_action::{Answer, BuyNowAs, FormatMode, NextAction, SEARCH_INPUT, Sample, ShopMove, Unfit};

pub const VERSION: &str = "shop-r1-v3";
pub const LATEST_VERSION: &str = "shop-r1-latest-v1";
pub const MINIMAL_VERSION: &str = "shop-r1-minimal-v1";

/// What a prompt says beside the present page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// The form of answers, and all pages.
    Paper,
    /// The form of answers.
    Latest,
    /// Hardly anything.
    Minimal,
}

pub const FORM: AnswerForm = AnswerForm {
    thought: Some(("{\"rationale\": \"", "\", \"action\": ")),
    search: ("{\"type\":\"type_and_submit\",\"name\":\"search_input\",\"text\":\"", "\"}}"),
    forbidden: &['"', '\\'],
};

const SYSTEM: &str = "You are a customer of an online shop. You are shown its pages and what you did on them, and say what you \
     do next. Answer with exactly one JSON object and nothing else:\n\
     {\"rationale\": \"<one short sentence in the first person>\", \"action\": <action>}\n\
     where <action> is one of\n\
     {\"type\":\"click\",\"name\":\"<name of a link, button or choice>\"}\n\
     {\"type\":\"type_and_submit\",\"name\":\"search_input\",\"text\":\"<words>\"}\n\
     {\"type\":\"terminate\"}\n\
     To buy, click `buy now`; to leave without buying, terminate.";
/// Something there must be, or templates say what they like.
const MINIMAL_SYSTEM: &str = "Next action as JSON.";

pub fn observe(page: &Page) -> String {
    html(&page.nodes(), matches!(page, Page::Search(_)))
}

/// The nodes of a page in simplified HTML. Of the page with the search bar, the button is the field that it sends.
pub(crate) fn html(nodes: &[Node<'_>], has_search_bar: bool) -> String {
    let mut html = String::new();
    for node in nodes {
        let text = node.text.trim();
        let name = text.to_lowercase().replace('"', "&quot;");
        let is_search = has_search_bar && node.kind == NodeKind::Button;
        let chosen = if node.clicked { " clicked" } else { "" };
        // A name is the label but for its capitals, so that the label need not stand there again.
        let _ = match node.kind {
            _ if is_search => writeln!(html, "<input name=\"{SEARCH_INPUT}\">"),
            NodeKind::Plain => writeln!(html, "<p>{text}</p>"),
            NodeKind::Button => writeln!(html, "<button name=\"{name}\">"),
            NodeKind::Link => writeln!(html, "<a name=\"{name}\"{chosen}>"),
            NodeKind::Label => writeln!(html, "<option name=\"{name}\"{chosen}>"),
        };
    }
    html
}

/// What the model is asked with, without the pages of the first `n_forgotten` turns.
pub fn messages(trip: &Dialogue, prompt: Prompt, n_forgotten: usize) -> Vec<Message> {
    let past =
        trip.past().iter().map(|turn| (turn.seen.observation.as_str(), deed(&turn.action).to_string()));
    ask(past.collect(), &trip.now().observation, prompt, n_forgotten)
}

/// The same for a recorded step; `recalling` past rationales, which a rollout never does.
pub fn question(sample: &Sample, prompt: Prompt, n_forgotten: usize, recalling: bool) -> Vec<Message> {
    let past = sample.context.iter().map(|step| {
        let deed = match &step.action {
            None => json!({}).to_string(),
            Some(action) if recalling => say_step(&step.rationale, action),
            Some(action) => action.to_string(),
        };
        (step.page.as_str(), deed)
    });
    ask(past.collect(), &sample.page, prompt, n_forgotten)
}

fn ask(past: Vec<(&str, String)>, now: &str, prompt: Prompt, n_forgotten: usize) -> Vec<Message> {
    let n_forgotten = if prompt == Prompt::Paper { n_forgotten } else { past.len() };
    let mut text = String::new();
    for (at, (page, deed)) in past.iter().enumerate() {
        let step = at + 1;
        let _ = match at < n_forgotten {
            true => writeln!(text, "Action {step}: {deed}"),
            false => write!(text, "Page {step}:\n{page}Action {step}: {deed}\n\n"),
        };
    }
    let _ = write!(text, "Page {}:\n{now}", past.len() + 1);
    let system = if prompt == Prompt::Minimal { MINIMAL_SYSTEM } else { SYSTEM };
    vec![Message::text(Role::System, system), Message::text(Role::User, text)]
}

/// An action as JSON. What was no action is told as an empty object.
fn deed(action: &Action) -> Value {
    NextAction::of(action, BuyNowAs::Click).map_or_else(|| json!({}), |action| json!(action))
}

pub fn say(action: &Action) -> String {
    format!("{}}}", deed(action))
}

/// The whole answer that takes a recorded step.
pub fn say_step(rationale: &str, action: &NextAction) -> String {
    let (opening, closing) = FORM.thought.unwrap_or_default();
    format!("{opening}{}{closing}{action}}}", in_string(rationale))
}

/// Text as it stands between the quotes of a JSON string.
pub fn in_string(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

pub fn parse(text: &str, page: &Page) -> Utterance {
    let nothing = Action::Noop(NoopReason::Malformed);
    let Ok(Answer { rationale, action: mut written }) = Answer::read(text, FormatMode::Schema) else {
        return Utterance::of(None, nothing, false);
    };
    let thought = Some(rationale.trim().to_owned());
    // Names are shown with the quotes that HTML asks for.
    written.name = written.name.replace("&quot;", "\"");
    let action = match written.in_shop(&page.available_actions(), BuyNowAs::Click) {
        Ok(ShopMove::Act(action)) => action,
        Ok(ShopMove::Leave) => return Utterance { leaves: true, ..Utterance::of(thought, nothing, true) },
        Err(Unfit::NotOnPage(name)) => click(&name),
        Err(Unfit::UnknownField(_) | Unfit::NoSearchBar) => Action::Noop(NoopReason::NotOnPage),
        Err(Unfit::EmptyQuery | Unfit::UnknownType(_)) => nothing,
    };
    Utterance::of(thought, action, true)
}

fn click(name: &str) -> Action {
    match name.trim().to_lowercase() {
        name if name.is_empty() || name.contains('\n') => Action::Noop(NoopReason::Malformed),
        name => Action::Click(name),
    }
}
