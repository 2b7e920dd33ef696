//! Lists of recorded episodes, with filters.

use askama::Template;
use percent_encoding::utf8_percent_encode;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use webshop_agent::{Episode, EpisodeExt, FailureKind};

use crate::http::SEGMENT;

/// The number of episodes on a page of a list that has several.
pub(crate) const LISTED: usize = 50;

/// Which episodes are listed; the query of the address.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Filter {
    /// A policy's name; empty for all.
    #[serde(default)]
    policy: String,
    #[serde(default)]
    success: Success,
    /// Absent for all episodes, also for those without a failure.
    #[serde(default, deserialize_with = "failure")]
    failure: Option<FailureKind>,
    /// A goal's number, or words of its instruction; empty for all.
    #[serde(default)]
    goal: String,
    /// The least reward, 0 to 1.
    #[serde(default)]
    least: f64,
    /// The number of matching episodes that are left out at the beginning.
    #[serde(default)]
    from: usize,
}

/// A kind of failure by its name in files; empty for none.
fn failure<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<FailureKind>, D::Error> {
    let name = String::deserialize(deserializer)?;
    if name.is_empty() {
        return Ok(None);
    }
    let name: StrDeserializer<'_, Error> = name.as_str().into_deserializer();
    FailureKind::deserialize(name).map(Some).map_err(serde::de::Error::custom)
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
        let is_of_kind = self.failure.is_none() || self.failure == FailureKind::of(episode);
        is_wanted && is_of_policy && is_of_kind && self.is_for_goal(episode) && episode.reward >= self.least
    }

    fn is_for_goal(&self, episode: &Episode) -> bool {
        let goal = self.goal.trim();
        match goal.parse::<u32>() {
            Ok(number) => episode.goal.0 == number,
            Err(_) => episode.meta.instruction.to_lowercase().contains(&goal.to_lowercase()),
        }
    }

    /// The address's query but for the place in the list.
    fn query(&self) -> String {
        let encoded = |text: &str| utf8_percent_encode(text, SEGMENT).to_string();
        let (policy, goal) = (encoded(&self.policy), encoded(&self.goal));
        let (success, least) = (self.success.name(), self.least);
        let failure = self.failure.map(name_of).unwrap_or_default();
        format!("policy={policy}&success={success}&failure={failure}&goal={goal}&least={least}")
    }
}

/// The name of a kind of failure in addresses, as in files.
pub(super) fn name_of(kind: FailureKind) -> String {
    let name = kind.serialize(serde_json::value::Serializer).ok();
    name.and_then(|name| name.as_str().map(str::to_owned)).expect("a variant without fields is its name")
}

/// What is listed, and where.
pub(crate) struct Place {
    /// The heading of the list.
    pub(crate) heading: String,
    /// The address of the list; those of the episodes have their numbers behind it.
    pub(crate) base: String,
    /// The largest number of episodes on a page.
    pub(crate) limit: usize,
    /// Name and address of the page to go back to, if there is one.
    pub(crate) back: Option<(&'static str, String)>,
}

/// A document that lists episodes.
#[derive(Template)]
#[template(path = "replays.html")]
pub(crate) struct ListDocument<'a> {
    view: ListView<'a>,
}

/// A list as a part of a document.
#[derive(Template)]
#[template(path = "list.html")]
pub(super) struct ListView<'a> {
    place: Place,
    n_recorded: usize,
    n_found: usize,
    n_successes: usize,
    mean_reward: f64,
    policies: Vec<&'a str>,
    /// Names in addresses and titles.
    failures: Vec<(String, &'static str)>,
    filter: Filter,
    rows: Rows<'a>,
    before: Option<usize>,
    after: Option<usize>,
}

impl ListView<'_> {
    /// Whether the filter is for this kind of failure.
    fn is_chosen(&self, failure: &str) -> bool {
        self.filter.failure.is_some_and(|kind| kind.title() == failure)
    }
}

/// A table of episodes.
#[derive(Template)]
#[template(path = "rows.html")]
pub(crate) struct Rows<'a> {
    base: String,
    rows: Vec<Row<'a>>,
}

impl<'a> Rows<'a> {
    /// The table of numbered episodes, whose addresses have their numbers behind `base`.
    pub(crate) fn new(base: String, episodes: impl Iterator<Item = (usize, &'a Episode)>) -> Rows<'a> {
        Rows { base, rows: episodes.map(|(number, episode)| Row { number, episode }).collect() }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

struct Row<'a> {
    number: usize,
    episode: &'a Episode,
}

impl Row<'_> {
    fn end(&self) -> &'static str {
        super::end_of(self.episode)
    }

    /// Why a purchase failed.
    fn failure(&self) -> Option<&'static str> {
        let kind = FailureKind::of(self.episode);
        // The end says as much.
        kind.filter(|kind| *kind != FailureKind::NeverBought).map(FailureKind::title)
    }
}

/// The choices of the filter by reward.
const LEAST: [(f64, &str); 5] =
    [(0.0, "any"), (0.25, "at least 0.25"), (0.5, "at least 0.5"), (0.75, "at least 0.75"), (1.0, "1")];

/// The list that a filter leaves of numbered episodes.
pub(crate) fn document<'a>(
    place: Place,
    episodes: impl Iterator<Item = (usize, &'a Episode)>,
    filter: Filter,
) -> ListDocument<'a> {
    ListDocument { view: view(place, episodes, filter) }
}

/// As [`document`], a part of one.
pub(super) fn view<'a>(
    place: Place,
    episodes: impl Iterator<Item = (usize, &'a Episode)>,
    filter: Filter,
) -> ListView<'a> {
    let all: Vec<(usize, &Episode)> = episodes.collect();
    let n_recorded = all.len();
    let mut policies: Vec<&str> = all.iter().map(|(_, episode)| &*episode.meta.policy).collect();
    policies.sort_unstable();
    policies.dedup();
    let found: Vec<(usize, &Episode)> =
        all.into_iter().filter(|(_, episode)| filter.admits(episode)).collect();
    let n_found = found.len();
    let from = filter.from.min(n_found);
    let end = (from + place.limit).min(n_found);
    ListView {
        rows: Rows::new(place.base.clone(), found[from..end].iter().copied()),
        n_recorded,
        n_found,
        n_successes: found.iter().filter(|(_, episode)| episode.is_success()).count(),
        mean_reward: found.iter().map(|(_, episode)| episode.reward).sum::<f64>() / n_found.max(1) as f64,
        policies,
        failures: FailureKind::IN_SHOP.map(|kind| (name_of(kind), kind.title())).into(),
        before: (from > 0).then(|| from.saturating_sub(place.limit)),
        after: (end < n_found).then_some(end),
        filter,
        place,
    }
}
