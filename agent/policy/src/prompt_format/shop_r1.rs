//! `shop-r1`: pages as simplified HTML, completions as one JSON object (Shop-R1, arXiv 2507.17842, section
//! 3).
//!
//! ```text
//! system     the form of completions
//! user       Page 1: <html> · Action 1: {"type":…} · Page 2: <html> · …       no past rationales
//! assistant  {"rationale": "…", "action": {"type":"click","name":"buy now"}}
//! ```
//!
//! Each usable element has a `name`: its label in lower case, or `search_input` for the search bar. Prompts
//! that are too long drop their oldest pages and keep all actions. `shop-r1-latest` shows the current page
//! only; `shop-r1-minimal` in addition has no instructions on the form of completions.
//!
//! `type_and_submit` searches, `click` clicks, `terminate` ends the episode without a purchase. Completions
//! are parsed by [`crate::next_action`] in its mode `schema`. A click on a name that is not on the page stays
//! that click, so that the shop refuses it and the recording shows it.

use std::fmt::Write;

use serde_json::{Value, json};
use webshop_env::{Action, Compat, Node, NodeKind, NoopReason, Page};
use webshop_lm::chat::{Message, Role};

use crate::next_action::action::NextAction;
use crate::next_action::example::Example;
use crate::next_action::mapping::{BuyNowAs, MappedAction, MappingError, SEARCH_INPUT};
use crate::next_action::parse::{FormatMode, NextActionCompletion};
use crate::prompt_format::completion::{CompletionForm, ParsedCompletion};
use crate::prompt_format::conversation::Conversation;
use crate::prompt_format::format::{Format, History, ShopR1Variant};

const FORM: CompletionForm = CompletionForm {
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
/// Not empty, because templates replace a missing system message by their own.
const MINIMAL_SYSTEM: &str = "Next action as JSON.";

pub(super) struct ShopR1(ShopR1Variant);

pub(super) static ALL_PAGES: ShopR1 = ShopR1(ShopR1Variant::AllPages);
pub(super) static LATEST_PAGE: ShopR1 = ShopR1(ShopR1Variant::LatestPage);
pub(super) static MINIMAL: ShopR1 = ShopR1(ShopR1Variant::Minimal);

impl Format for ShopR1 {
    fn name(&self) -> &'static str {
        match self.0 {
            ShopR1Variant::AllPages => "shop-r1",
            ShopR1Variant::LatestPage => "shop-r1-latest",
            ShopR1Variant::Minimal => "shop-r1-minimal",
        }
    }

    fn version(&self) -> &'static str {
        match self.0 {
            ShopR1Variant::AllPages => "shop-r1-v3",
            ShopR1Variant::LatestPage => "shop-r1-latest-v1",
            ShopR1Variant::Minimal => "shop-r1-minimal-v1",
        }
    }

    fn history(&self) -> History {
        History::Rebuild
    }

    fn form(&self) -> CompletionForm {
        FORM
    }

    fn observation(&self, page: &Page) -> String {
        page_html(&page.nodes(), matches!(page, Page::Search(_)))
    }

    fn messages(&self, conversation: &Conversation, n_dropped: usize) -> Vec<Message> {
        let past = conversation.past().iter();
        let past = past.map(|turn| (&*turn.observed.observation, action_json(&turn.action).to_string()));
        prompt(&past.collect::<Vec<_>>(), &conversation.current().observation, self.0, n_dropped)
    }

    fn parse(&self, completion: &Message, page: &Page, _rules: Compat) -> ParsedCompletion {
        parse(completion.content.trim(), page)
    }

    fn render_action(&self, action: &Action) -> String {
        format!("{}}}", action_json(action))
    }

    fn escape_thought(&self, thought: &str) -> String {
        escape(thought)
    }
}

/// The nodes of a page in simplified HTML. On the page with the search bar, the button is the input field.
pub(crate) fn page_html(nodes: &[Node<'_>], has_search_bar: bool) -> String {
    let mut html = String::new();
    for node in nodes {
        let text = node.text.trim();
        let name = text.to_lowercase().replace('"', "&quot;");
        let is_search = has_search_bar && node.kind == NodeKind::Button;
        let clicked = if node.clicked { " clicked" } else { "" };
        // A name is the label in lower case, so the label is not repeated as text.
        let _ = match node.kind {
            _ if is_search => writeln!(html, "<input name=\"{SEARCH_INPUT}\">"),
            NodeKind::Text => writeln!(html, "<p>{text}</p>"),
            NodeKind::Button => writeln!(html, "<button name=\"{name}\">"),
            NodeKind::Link => writeln!(html, "<a name=\"{name}\"{clicked}>"),
            NodeKind::Label => writeln!(html, "<option name=\"{name}\"{clicked}>"),
        };
    }
    html
}

/// The prompt of a single-step example, without the pages of its first `n_dropped` steps.
pub(super) fn example_messages(
    example: &Example,
    variant: ShopR1Variant,
    n_dropped: usize,
    with_rationales: bool,
) -> Vec<Message> {
    let past = example.context.iter().map(|step| {
        let action = match &step.action {
            None => json!({}).to_string(),
            Some(action) if with_rationales => render_step(&step.rationale, action),
            Some(action) => action.to_string(),
        };
        (&*step.page, action)
    });
    prompt(&past.collect::<Vec<_>>(), &example.page, variant, n_dropped)
}

/// `past` holds page and action of each earlier step.
fn prompt(past: &[(&str, String)], page: &str, variant: ShopR1Variant, n_dropped: usize) -> Vec<Message> {
    let n_dropped = if variant == ShopR1Variant::AllPages { n_dropped } else { past.len() };
    let mut text = String::new();
    for (at, (page, action)) in past.iter().enumerate() {
        let step = at + 1;
        let _ = if at < n_dropped {
            writeln!(text, "Action {step}: {action}")
        } else {
            write!(text, "Page {step}:\n{page}Action {step}: {action}\n\n")
        };
    }
    let _ = write!(text, "Page {}:\n{page}", past.len() + 1);
    let system = if variant == ShopR1Variant::Minimal { MINIMAL_SYSTEM } else { SYSTEM };
    vec![Message::text(Role::System, system), Message::text(Role::User, text)]
}

/// An action as JSON; a no-op is an empty object.
fn action_json(action: &Action) -> Value {
    NextAction::of(action, BuyNowAs::Click).map_or_else(|| json!({}), |action| json!(action))
}

/// The completion with this rationale and action.
pub(super) fn render_step(rationale: &str, action: &NextAction) -> String {
    let (opening, closing) = FORM.thought.unwrap_or_default();
    format!("{opening}{}{closing}{action}}}", escape(rationale))
}

/// Text as written between the quotes of a JSON string.
fn escape(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn parse(text: &str, page: &Page) -> ParsedCompletion {
    let nothing = Action::Noop(NoopReason::Malformed);
    let Ok(NextActionCompletion { rationale, action: mut written }) =
        NextActionCompletion::read(text, FormatMode::Schema)
    else {
        return ParsedCompletion::new(None, nothing, false);
    };
    let thought = Some(rationale.trim().to_owned());
    // Pages show names with HTML's escape of quotes.
    written.name = written.name.replace("&quot;", "\"");
    let action = match written.in_shop(&page.available_actions(), BuyNowAs::Click) {
        Ok(MappedAction::Act(action)) => action,
        Ok(MappedAction::Terminate) => {
            return ParsedCompletion { terminates: true, ..ParsedCompletion::new(thought, nothing, true) };
        }
        Err(MappingError::NotOnPage(name)) => click(&name),
        Err(MappingError::UnknownField(_) | MappingError::NoSearchBar) => Action::Noop(NoopReason::NotOnPage),
        Err(MappingError::EmptyQuery | MappingError::UnknownType(_)) => nothing,
    };
    ParsedCompletion::new(thought, action, true)
}

fn click(name: &str) -> Action {
    match name.trim().to_lowercase() {
        name if name.is_empty() || name.contains('\n') => Action::Noop(NoopReason::Malformed),
        name => Action::Click(name),
    }
}
