//! Validation of example files of other programs.
//!
//! A [`ExampleValidator`] takes the lines of a file in order and returns the [`ExampleProblem`]s of each: missing, unknown or
//! mistyped fields; an action that its type does not allow or its page does not offer; a duplicate id; a goal
//! in two splits; and a context whose length does not fit `step`. A context is complete if its first page has
//! an input field; others may be shortened but not too long. Sessions without a goal number are identified by
//! their first page. A line without problems can be read as an [`Example`](crate::next_action::Example).
//! Rationales may be empty; such examples are counted.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use webshop_products::line_problem;

use crate::next_action::action::{NextAction, WrittenAction};
use crate::next_action::counts::ExampleCounts;
use crate::next_action::example::{ExampleSource, TakenStep};
use crate::next_action::parse::FormatMode;
use crate::next_action::session::{has_field, offers};

/// The fields of an example, and whether they are required.
const FIELDS: [(&str, bool); 9] = [
    ("id", true),
    ("source", true),
    ("split", true),
    ("goal", false),
    ("step", true),
    ("context", true),
    ("page", true),
    ("rationale", false),
    ("action", true),
];

/// The splits of goals.
const SPLITS: [&str; 3] = ["train", "validation", "test"];

/// A problem of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExampleProblem {
    /// The field; `line` for the line as a whole.
    pub field: String,
    /// The problem.
    pub problem: String,
}

impl fmt::Display for ExampleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

/// Validates the lines of a file in order.
#[derive(Clone, Debug, Default)]
pub struct ExampleValidator {
    /// The line of each id.
    ids: BTreeMap<String, usize>,
    /// The split of each goal, and the first line with it.
    splits: BTreeMap<String, (String, usize)>,
    /// The examples without problems.
    counts: ExampleCounts,
    n_without_rationale: usize,
}

impl ExampleValidator {
    /// The problems of line `line`, whose content is `text`; none if the line is blank or a valid example.
    pub fn check(&mut self, line: usize, text: &str) -> Vec<ExampleProblem> {
        if text.trim().is_empty() {
            return Vec::new();
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(object)) => self.check_object(line, &object),
            Ok(_) => vec![problem("line", "not a JSON object")],
            Err(error) => {
                vec![problem("line", format!("not JSON: {}", line_problem(&error)))]
            }
        }
    }

    /// The counts of the examples without problems.
    pub fn counts(&self) -> &ExampleCounts {
        &self.counts
    }

    /// How many of them have no rationale.
    pub fn n_without_rationale(&self) -> usize {
        self.n_without_rationale
    }

    fn check_object(&mut self, line: usize, object: &Map<String, Value>) -> Vec<ExampleProblem> {
        let mut fields = Fields { object, problems: Vec::new() };
        fields.check_names();
        let id: Option<String> = fields.read("id");
        let source: Option<ExampleSource> = fields.read("source");
        let split: Option<String> = fields.read("split");
        let goal: Option<Option<u32>> = fields.read("goal");
        let step: Option<usize> = fields.read("step");
        let context = fields.context();
        let page: Option<String> = fields.read("page");
        let rationale: Option<String> = fields.read("rationale");
        let action = fields.action();
        let mut problems = fields.problems;
        if let Some(id) = id {
            match self.ids.get(&id) {
                Some(first) => problems.push(problem("id", format!("`{id}` is also on line {first}"))),
                None => {
                    self.ids.insert(id, line);
                }
            }
        }
        if let Some(split) = split.as_ref().filter(|split| !SPLITS.contains(&split.as_str())) {
            let message = format!("`{split}` is not `train`, `validation` or `test`");
            problems.push(problem("split", message));
        }
        if let (Some(action), Some(page)) = (&action, &page)
            && !offers(page, action)
        {
            problems.push(problem("action", format!("the page does not offer `{action}`")));
        }
        if let (Some(step), Some(context)) = (step, &context) {
            problems.extend(misplaced(step, context));
        }
        let first_page =
            context.as_ref().map(|context| context.first().map(|step| &step.page).or(page.as_ref()));
        let key = match (goal.flatten(), first_page.flatten()) {
            (Some(goal), _) => Some(format!("goal {goal}")),
            (None, page) => page.map(|page| format!("page {page}")),
        };
        if let (Some(key), Some(split)) = (key, split) {
            let (first, at) = self.splits.entry(key).or_insert_with(|| (split.clone(), line));
            if *first != split {
                let message = format!("`{split}`, but the goal is in `{first}` on line {at}");
                problems.push(problem("split", message));
            }
        }
        if let (true, Some(source), Some(action)) = (problems.is_empty(), source, action) {
            self.counts.count_step(source, action.action_type());
            self.n_without_rationale += usize::from(rationale.unwrap_or_default().trim().is_empty());
        }
        problems
    }
}

/// The fields of a line, and their problems.
struct Fields<'a> {
    object: &'a Map<String, Value>,
    problems: Vec<ExampleProblem>,
}

impl Fields<'_> {
    /// Finds missing and unknown fields.
    fn check_names(&mut self) {
        let object = self.object;
        let missing = FIELDS.iter().filter(|(name, is_needed)| *is_needed && !object.contains_key(*name));
        self.problems.extend(missing.map(|(name, _)| problem(*name, "missing")));
        let unknown = object.keys().filter(|key| FIELDS.iter().all(|(name, _)| name != key));
        self.problems.extend(unknown.map(|key| problem(key, "not a field of an example")));
    }

    /// The value of a field, if it has this type.
    fn read<T: DeserializeOwned>(&mut self, field: &str) -> Option<T> {
        let object = self.object;
        self.value(field, object.get(field)?)
    }

    fn value<T: DeserializeOwned>(&mut self, field: &str, value: &Value) -> Option<T> {
        match serde_json::from_value(value.clone()) {
            Ok(read) => Some(read),
            Err(error) => {
                self.problems.push(problem(field, error.to_string()));
                None
            }
        }
    }

    /// The context, if it is a list of steps.
    fn context(&mut self) -> Option<Vec<TakenStep>> {
        let object = self.object;
        let Value::Array(steps) = object.get("context")? else {
            self.problems.push(problem("context", "not a list"));
            return None;
        };
        let read = |(at, step): (usize, &Value)| self.value(&format!("context[{at}]"), step);
        let steps: Vec<Option<TakenStep>> = steps.iter().enumerate().map(read).collect();
        steps.into_iter().collect()
    }

    /// The action, if it has exactly the fields that its type needs.
    fn action(&mut self) -> Option<NextAction> {
        let object = self.object;
        let value = object.get("action")?;
        let read = WrittenAction::read(value, FormatMode::Schema);
        let checked =
            read.and_then(|written| written.action_type().map_or(Ok(()), |kind| written.check_filled(kind)));
        if let Err(error) = checked {
            self.problems.push(problem("action", error.to_string()));
            return None;
        }
        self.value("action", value)
    }
}

/// The problem of a context of step `step`.
fn misplaced(step: usize, context: &[TakenStep]) -> Option<ExampleProblem> {
    let n = context.len();
    let is_whole = context.first().is_some_and(|first| has_field(&first.page));
    let is_wrong = n > step || (is_whole && n < step);
    is_wrong.then(|| problem("step", format!("{step}, but `context` has {n} steps")))
}

fn problem(field: impl Into<String>, problem: impl Into<String>) -> ExampleProblem {
    ExampleProblem { field: field.into(), problem: problem.into() }
}
