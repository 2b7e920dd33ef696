//! Counts of examples by source and action type.

use std::collections::BTreeMap;
use std::fmt;

use crate::next_action::action::ActionType;
use crate::next_action::example::{Example, ExampleSource};

/// Counts of examples, printed as a table.
///
/// ```
/// use webshop_agent::next_action::{ActionType, ExampleCounts, ExampleSource};
/// let mut counts = ExampleCounts::default();
/// counts.count_step(ExampleSource::Human, ActionType::Click);
/// counts.count_step(ExampleSource::Terminate, ActionType::Terminate);
/// let table = counts.to_string();
/// let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
/// assert_eq!(rows[0], ["examples", "click", "type_and_submit", "terminate", "all"]);
/// assert_eq!(rows[1], ["human", "1", "0", "0", "1"]);
/// assert_eq!(rows[2], ["terminate", "0", "0", "1", "1"]);
/// assert_eq!(rows[3], ["all", "1", "0", "1", "2"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExampleCounts {
    counts: BTreeMap<(ExampleSource, ActionType), usize>,
}

impl ExampleCounts {
    /// The counts of `examples`.
    pub fn of(examples: &[Example]) -> Self {
        let mut counts = Self::default();
        examples.iter().for_each(|example| counts.count(example));
        counts
    }

    /// Adds an example.
    pub fn count(&mut self, example: &Example) {
        self.count_step(example.source, example.action.action_type());
    }

    /// Adds an example by its source and action type.
    pub fn count_step(&mut self, source: ExampleSource, kind: ActionType) {
        *self.counts.entry((source, kind)).or_default() += 1;
    }

    /// The number of examples.
    pub fn n_examples(&self) -> usize {
        self.counts.values().sum()
    }

    fn row(&self, is_in: impl Fn(ExampleSource) -> bool) -> [usize; 4] {
        let of = |kind| {
            let counts = self.counts.iter().filter(|((source, of), _)| is_in(*source) && *of == kind);
            counts.map(|(_, n)| n).sum()
        };
        let [clicks, searches, terminations] = ActionType::ALL.map(of);
        [clicks, searches, terminations, clicks + searches + terminations]
    }
}

impl fmt::Display for ExampleCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [click, search, terminate] = ActionType::ALL.map(ActionType::name);
        write!(f, "{:13}  {click:>6}  {search:>15}  {terminate:>9}  {:>6}", "examples", "all")?;
        let mut row = |name: &str, counts: [usize; 4]| {
            let [clicks, searches, terminations, all] = counts;
            write!(f, "\n{name:13}  {clicks:>6}  {searches:>15}  {terminations:>9}  {all:>6}")
        };
        for source in ExampleSource::ALL {
            let counts = self.row(|other| other == source);
            if counts[3] > 0 {
                row(source.name(), counts)?;
            }
        }
        row("all", self.row(|_| true))
    }
}
