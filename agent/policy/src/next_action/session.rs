//! A visit as it was seen and done, and the samples that its steps make.
//!
//! A [`Visit`] is a list of [`TakenStep`]s: what a page showed in simplified HTML, what was done on it, and why. Each
//! step that Shop-R1 has words for on its own page makes a [`Sample`] with all steps before it as context; the others
//! (what is no move, a search where there is no search bar) stand in the contexts of later ones only.
//!
//! Where pages come from is not known here: [`crate::next_action::retrace`] makes them in the shop, [`crate::next_action::Recordings`] reads them.

use crate::next_action::action::NextAction;
use crate::next_action::mapping::folded;
use crate::next_action::example::{Sample, SampleSource, TakenStep};

/// Somebody's visit.
#[derive(Clone, Debug, PartialEq)]
pub struct Visit {
    /// What its samples' ids begin with.
    pub name: String,
    /// Who visited.
    pub source: SampleSource,
    /// The split of its goal.
    pub split: String,
    /// The goal's number in its shop, if it is known.
    pub goal: Option<u32>,
    /// What happened, oldest first.
    pub steps: Vec<TakenStep>,
}

impl Visit {
    /// A sample for each step whose action its page offers, in order. Their ids are the visit's name and the step.
    pub fn samples(&self) -> Vec<Sample> {
        let sample = |(at, step): (usize, &TakenStep)| {
            let action = step.action.clone().filter(|action| offers(&step.page, action))?;
            Some(Sample {
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
        self.steps.iter().enumerate().filter_map(sample).collect()
    }
}

/// Whether a page in simplified HTML has an element with the name that an action uses, but for capitals and white space.
/// Leaving takes none.
///
/// ```
/// use crate::next_action::{NextAction, offers};
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

/// Whether a page has a field to fill in.
pub(super) fn has_field(page: &str) -> bool {
    elements(page).any(|(tag, _)| is_field(tag))
}

fn is_field(tag: &str) -> bool {
    matches!(tag, "input" | "textarea")
}

/// The elements of a page that have a name: tag and name. Names may hold angle brackets, as `< prev` does.
fn elements(page: &str) -> impl Iterator<Item = (&str, String)> {
    const NAME: &str = " name=\"";
    page.match_indices(NAME).filter_map(move |(at, _)| {
        let opening = &page[page[..at].rfind('<')? + 1..at];
        let tag = opening.split_whitespace().next().filter(|_| !opening.contains('>'))?;
        let name = page[at + NAME.len()..].split('"').next()?;
        Some((tag, name.replace("&quot;", "\"")))
    })
}
