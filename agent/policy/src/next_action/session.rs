//! A session of a user or policy, and its examples.
//!
//! A [`UserSession`] is a list of [`TakenStep`]s: page in simplified HTML, action and rationale. Each step
//! whose action its page offers makes an [`Example`] with all steps before it as context; the others only
//! appear in contexts.

use crate::next_action::action::NextAction;
use crate::next_action::example::{Example, ExampleSource, TakenStep};
use crate::next_action::mapping::folded;

/// One session.
#[derive(Clone, Debug, PartialEq)]
pub struct UserSession {
    /// The prefix of its examples' ids.
    pub name: String,
    /// Where the session comes from.
    pub source: ExampleSource,
    /// The split of its goal.
    pub split: String,
    /// The goal's number in its shop, if known.
    pub goal: Option<u32>,
    /// The steps, oldest first.
    pub steps: Vec<TakenStep>,
}

impl UserSession {
    /// An example for each step whose action its page offers, in order. Their ids are the session's name and
    /// the step.
    pub fn examples(&self) -> Vec<Example> {
        let example = |(at, step): (usize, &TakenStep)| {
            let action = step.action.clone().filter(|action| offers(&step.page, action))?;
            Some(Example {
                id: format!("{}-{at}", self.name),
                source: self.source,
                split: self.split.clone(),
                goal: self.goal,
                step: at,
                context: self.steps[..at].to_vec(),
                page: step.page.clone(),
                rationale: step.rationale.clone(),
                action,
            })
        };
        self.steps.iter().enumerate().filter_map(example).collect()
    }
}

/// Whether a page in simplified HTML has the element that an action names, up to case and white space.
/// `terminate` needs none.
///
/// ```
/// use webshop_agent::next_action::{NextAction, offers};
/// let page = "<p>24\" lamp</p>\n<option name=\"24&quot; inch\">\n";
/// let click = |name: &str| NextAction::Click { name: name.into() };
/// assert!(offers(page, &click("24\" Inch")));
/// assert!(!offers(page, &click("lamp")));
/// assert!(offers(page, &NextAction::Terminate {}));
/// ```
pub fn offers(page: &str, action: &NextAction) -> bool {
    let (NextAction::Click { name } | NextAction::TypeAndSubmit { name, .. }) = action else {
        return true;
    };
    let (name, is_typed) = (folded(name), matches!(action, NextAction::TypeAndSubmit { .. }));
    elements(page).any(|(tag, named)| (is_field(tag) || !is_typed) && folded(&named) == name)
}

/// Whether a page has an input field.
pub(super) fn has_field(page: &str) -> bool {
    elements(page).any(|(tag, _)| is_field(tag))
}

fn is_field(tag: &str) -> bool {
    matches!(tag, "input" | "textarea")
}

/// Tag and name of each element with a name. Names may contain angle brackets, as `< prev` does.
fn elements(page: &str) -> impl Iterator<Item = (&str, String)> {
    const NAME: &str = " name=\"";
    page.match_indices(NAME).filter_map(move |(at, _)| {
        let opening = &page[page[..at].rfind('<')? + 1..at];
        let tag = opening.split_whitespace().next().filter(|_| !opening.contains('>'))?;
        let name = page[at + NAME.len()..].split('"').next()?;
        Some((tag, name.replace("&quot;", "\"")))
    })
}
