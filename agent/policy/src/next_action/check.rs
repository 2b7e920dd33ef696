//! Samples that others wrote, checked line by line.
//!
//! A [`Checker`] takes a file's lines in order and answers each with what is wrong with it, a [`Problem`] for a field:
//! what is missing, unknown or of another kind; an action that its type does not allow or whose page lacks it; an id that
//! was there before, or a goal that was there in another split; and a whole context of another length than `step` says. A
//! context is whole if its first page has a field to search with; any other may have been cut, and is only not to be too
//! long. Visits for goals without number are known by their first page. What has no problem reads as a
//! [`Sample`](crate::next_action::Sample).
//!
//! A rationale may be empty, as nobody is made to give reasons; such samples are counted.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::next_action::action::{NextAction, WrittenAction};
use crate::next_action::counts::Census;
use crate::next_action::parse::FormatMode;
use crate::next_action::example::{SampleSource, TakenStep};
use crate::next_action::session::{has_field, offers};

/// The fields of a sample, and whether it needs them.
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

/// The splits that a goal can be in.
const SPLITS: [&str; 3] = ["train", "validation", "test"];

/// Something wrong with a field of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which; `line` if the line is at fault as a whole.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

/// Checks the lines of a file, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    /// Where each id stands.
    ids: BTreeMap<String, usize>,
    /// In which split each goal was seen first, and where.
    splits: BTreeMap<String, (String, usize)>,
    /// Those without problems.
    census: Census,
    n_without_rationale: usize,
}

impl Checker {
    /// What is wrong with the `line`-th line; nothing if it is empty, or a sample.
    pub fn check(&mut self, line: usize, text: &str) -> Vec<Problem> {
        if text.trim().is_empty() {
            return Vec::new();
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(object)) => self.check_object(line, &object),
            Ok(_) => vec![problem("line", "no JSON object")],
            Err(error) => {
                let error = error.to_string().replace(" at line 1 column ", " at column ");
                vec![problem("line", format!("no JSON: {error}"))]
            }
        }
    }

    /// The samples so far, without those that have problems.
    pub fn census(&self) -> &Census {
        &self.census
    }

    /// How many of them say no reason.
    pub fn n_without_rationale(&self) -> usize {
        self.n_without_rationale
    }

    fn check_object(&mut self, line: usize, object: &Map<String, Value>) -> Vec<Problem> {
        let mut fields = Fields { object, problems: Vec::new() };
        fields.check_names();
        let id: Option<String> = fields.read("id");
        let source: Option<SampleSource> = fields.read("source");
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
                Some(first) => problems.push(problem("id", format!("`{id}` stands on line {first} already"))),
                None => {
                    self.ids.insert(id, line);
                }
            }
        }
        if let Some(split) = split.as_ref().filter(|split| !SPLITS.contains(&split.as_str())) {
            let told = format!("`{split}` is none of `train`, `validation` and `test`");
            problems.push(problem("split", told));
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
                let told = format!("`{split}`, but the goal is in `{first}` on line {at}");
                problems.push(problem("split", told));
            }
        }
        if let (true, Some(source), Some(action)) = (problems.is_empty(), source, action) {
            self.census.count_step(source, action.action_type());
            self.n_without_rationale += usize::from(rationale.unwrap_or_default().trim().is_empty());
        }
        problems
    }
}

/// A line's fields, and what is wrong with them.
struct Fields<'a> {
    object: &'a Map<String, Value>,
    problems: Vec<Problem>,
}

impl Fields<'_> {
    /// Looks for what is missing and what nobody knows.
    fn check_names(&mut self) {
        let object = self.object;
        let missing = FIELDS.iter().filter(|(name, is_needed)| *is_needed && !object.contains_key(*name));
        self.problems.extend(missing.map(|(name, _)| problem(*name, "missing")));
        let unknown = object.keys().filter(|key| FIELDS.iter().all(|(name, _)| name != key));
        self.problems.extend(unknown.map(|key| problem(key, "no field of a sample")));
    }

    /// The value of a field, if it has one of this kind.
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

    /// The steps of the context, if all of them are steps.
    fn context(&mut self) -> Option<Vec<TakenStep>> {
        let object = self.object;
        let Value::Array(steps) = object.get("context")? else {
            self.problems.push(problem("context", "no list"));
            return None;
        };
        let read = |(at, step): (usize, &Value)| self.value(&format!("context[{at}]"), step);
        let steps: Vec<Option<TakenStep>> = steps.iter().enumerate().map(read).collect();
        steps.into_iter().collect()
    }

    /// The gold action, if it has all that its type asks for and no more.
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

/// What is wrong with a context before the `step`-th step.
fn misplaced(step: usize, context: &[TakenStep]) -> Option<Problem> {
    let n = context.len();
    let is_whole = context.first().is_some_and(|first| has_field(&first.page));
    let is_wrong = n > step || (is_whole && n < step);
    is_wrong.then(|| problem("step", format!("{step}, but {n} steps stand before it in `context`")))
}

fn problem(field: impl Into<String>, problem: impl Into<String>) -> Problem {
    Problem { field: field.into(), problem: problem.into() }
}
