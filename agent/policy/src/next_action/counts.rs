//! How many samples there are, by source and type.

use std::collections::BTreeMap;
use std::fmt;

use crate::next_action::action::ActionType;
use crate::next_action::example::{Sample, SampleSource};

/// Counts of samples, printed as a table.
///
/// ```
/// use crate::next_action::{ActionType, Census, SampleSource};
/// let mut census = Census::default();
/// census.count_step(SampleSource::Human, ActionType::Click);
/// census.count_step(SampleSource::DeadEnd, ActionType::Terminate);
/// let rows: Vec<String> = census.to_string().lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
/// assert_eq!(rows, ["samples click type_and_submit terminate all", "human 1 0 0 1", "dead_end 0 0 1 1", "all 1 0 1 2"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    counts: BTreeMap<(SampleSource, ActionType), usize>,
}

impl Census {
    /// Of all these.
    pub fn of(samples: &[Sample]) -> Self {
        let mut census = Self::default();
        samples.iter().for_each(|sample| census.count(sample));
        census
    }

    /// Counts one more.
    pub fn count(&mut self, sample: &Sample) {
        self.count_step(sample.source, sample.action.action_type());
    }

    /// Counts one more of which only this is known.
    pub fn count_step(&mut self, source: SampleSource, kind: ActionType) {
        *self.counts.entry((source, kind)).or_default() += 1;
    }

    /// How many there are.
    pub fn n_samples(&self) -> usize {
        self.counts.values().sum()
    }

    fn row(&self, is_in: impl Fn(SampleSource) -> bool) -> [usize; 4] {
        let of = |kind| {
            let counts = self.counts.iter().filter(|((source, of), _)| is_in(*source) && *of == kind);
            counts.map(|(_, n)| n).sum()
        };
        let [clicks, searches, leavings] = ActionType::ALL.map(of);
        [clicks, searches, leavings, clicks + searches + leavings]
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [click, search, leave] = ActionType::ALL.map(ActionType::name);
        write!(f, "{:13}  {click:>6}  {search:>15}  {leave:>9}  {:>6}", "samples", "all")?;
        let mut row = |name: &str, counts: [usize; 4]| {
            let [clicks, searches, leavings, all] = counts;
            write!(f, "\n{name:13}  {clicks:>6}  {searches:>15}  {leavings:>9}  {all:>6}")
        };
        for source in SampleSource::ALL {
            let counts = self.row(|other| other == source);
            if counts[3] > 0 {
                row(source.name(), counts)?;
            }
        }
        row("all", self.row(|_| true))
    }
}
