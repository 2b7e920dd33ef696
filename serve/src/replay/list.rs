//! The list of recorded episodes, newest first, with filters.

use askama::Template;
use serde::Deserialize;
use webshop_agent::{Episode, EpisodeExt};

use super::recordings::Recordings;

/// The number of episodes on a page of the list.
const LISTED: usize = 50;

/// Which episodes are listed; the query of the address.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Filter {
    /// A policy's name; empty for all.
    #[serde(default)]
    policy: String,
    #[serde(default)]
    success: Success,
    /// The least reward, 0 to 1.
    #[serde(default)]
    least: f64,
    /// The number of matching episodes that are left out at the beginning.
    #[serde(default)]
    from: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Success {
    #[default]
    #[serde(rename = "")]
    Any,
    Yes,
    No,
}

impl Success {
    /// Its name in an address.
    fn name(self) -> &'static str {
        match self {
            Success::Any => "",
            Success::Yes => "yes",
            Success::No => "no",
        }
    }
}

impl Filter {
    fn admits(&self, episode: &Episode) -> bool {
        let is_wanted = match self.success {
            Success::Any => true,
            Success::Yes => episode.is_success(),
            Success::No => !episode.is_success(),
        };
        let is_of_policy = self.policy.is_empty() || *self.policy == *episode.meta.policy;
        is_wanted && is_of_policy && episode.reward >= self.least
    }
}

#[derive(Template)]
#[template(path = "replays.html")]
pub(super) struct ListView<'a> {
    n_recorded: usize,
    n_found: usize,
    n_successes: usize,
    mean_reward: f64,
    policies: Vec<&'a str>,
    filter: Filter,
    rows: Vec<Row<'a>>,
    before: Option<usize>,
    after: Option<usize>,
}

struct Row<'a> {
    number: usize,
    episode: &'a Episode,
}

impl Row<'_> {
    fn end(&self) -> &'static str {
        super::end_of(self.episode)
    }
}

/// The choices of the filter by reward.
const LEAST: [(f64, &str); 5] =
    [(0.0, "any"), (0.25, "at least 0.25"), (0.5, "at least 0.5"), (0.75, "at least 0.75"), (1.0, "1")];

/// The list that a filter leaves.
pub(super) fn list(recordings: &Recordings, filter: Filter) -> ListView<'_> {
    let found: Vec<Row<'_>> = recordings
        .newest_first()
        .map(|(number, recording)| Row { number, episode: &recording.episode })
        .filter(|row| filter.admits(row.episode))
        .collect();
    let n_found = found.len();
    let from = filter.from.min(n_found);
    let end = (from + LISTED).min(n_found);
    ListView {
        n_recorded: recordings.len(),
        n_found,
        n_successes: found.iter().filter(|row| row.episode.is_success()).count(),
        mean_reward: found.iter().map(|row| row.episode.reward).sum::<f64>() / n_found.max(1) as f64,
        policies: recordings.policies(),
        rows: found.into_iter().skip(from).take(end - from).collect(),
        before: (from > 0).then(|| from.saturating_sub(LISTED)),
        after: (end < n_found).then_some(end),
        filter,
    }
}
