//! Actions: `search[words]`, `click[label]`, or a no-op.
//!
//! Any text parses to an [`Action`]; a text that is no action becomes an [`Action::Noop`] with its
//! [`NoopReason`]. The printed form of a search or click parses back to the same action; a no-op is printed without its
//! reason.
//!
//! Whether a label is on the page is decided by [`crate::Session::act`].

use crate::original::compat::Compat;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// An action of the agent.
///
/// ```
/// use webshop_env::{Action, NoopReason};
/// let action: Action = "click[Buy Now]".parse().unwrap();
/// assert_eq!(action, Action::Click("buy now".into()));
/// assert_eq!(action.to_string(), "click[buy now]");
/// assert_eq!("hello".parse(), Ok(Action::Noop(NoopReason::Malformed)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Searches for these words: lower case, at least one character, one line.
    Search(String),
    /// Clicks the element with this label: lower case, at least one character, one line.
    Click(String),
    /// Does nothing.
    Noop(NoopReason),
}

/// Why an action did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoopReason {
    /// The text is not of the form `verb[argument]`.
    Malformed,
    /// The verb is neither `search` nor `click`.
    UnknownVerb,
    /// Nothing on the page has that label.
    NotOnPage,
    /// The query holds more than 1024 distinct terms.
    TooManyTerms,
    /// The query begins with a marker that lists nothing: `<r>`, `<a>`, or `<c>` alone.
    NoSuchListing,
    /// No product has the label in upper case as its ASIN; only under the original's rules.
    NoSuchProduct,
    /// The episode has ended.
    EpisodeOver,
}

impl Action {
    /// The inverse of `Display`, independent of a shop's rules: `None` if the text has none of the three printed forms.
    /// The argument is taken as it is. A no-op, which is printed without its reason, is read as [`NoopReason::Malformed`].
    ///
    /// ```
    /// use webshop_env::{Action, NoopReason};
    /// assert_eq!(Action::from_display("click[a [b]]"), Some(Action::Click("a [b]".into())));
    /// assert_eq!(Action::from_display("noop"), Some(Action::Noop(NoopReason::Malformed)));
    /// assert_eq!(Action::from_display("buy"), None);
    /// ```
    pub fn from_display(text: &str) -> Option<Action> {
        let argument = |verb| text.strip_prefix(verb)?.strip_suffix(']').map(str::to_owned);
        match text {
            "noop" => Some(Action::Noop(NoopReason::Malformed)),
            _ => argument("search[").map(Action::Search).or_else(|| argument("click[").map(Action::Click)),
        }
    }

    /// Parses an action under the given rules. Lower-cases the argument but not the verb.
    pub fn parse(text: &str, compat: Compat) -> Action {
        let split = match compat {
            Compat::Repaired => split_at_first_bracket(text),
            Compat::Original => split_at_last_bracket(text),
        };
        match split {
            None => Action::Noop(NoopReason::Malformed),
            Some(("search", words)) => Action::Search(words.to_lowercase()),
            Some(("click", label)) => Action::Click(label.to_lowercase()),
            Some(_) => Action::Noop(NoopReason::UnknownVerb),
        }
    }
}

/// `verb[argument]` up to the line's last `]`; the verb ends at the first `[`.
fn split_at_first_bracket(text: &str) -> Option<(&str, &str)> {
    let line = text.split('\n').next()?;
    let close = line.rfind(']')?;
    let open = line.find('[').filter(|&open| open >= 1)?;
    (open + 1 < close).then(|| (&line[..open], &line[open + 1..close]))
}

/// The original's greedy pattern: the verb ends at the last `[` that leaves an argument.
fn split_at_last_bracket(text: &str) -> Option<(&str, &str)> {
    let line = text.split('\n').next()?;
    let close = line.rfind(']')?;
    let open =
        line[..close].rmatch_indices('[').map(|(at, _)| at).find(|&open| open >= 1 && open + 1 < close)?;
    Some((&line[..open], &line[open + 1..close]))
}

impl FromStr for Action {
    type Err = Infallible;

    /// [`Action::parse`] under the repaired rules; never fails.
    fn from_str(text: &str) -> Result<Action, Infallible> {
        Ok(Action::parse(text, Compat::Repaired))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Search(words) => write!(f, "search[{words}]"),
            Action::Click(label) => write!(f, "click[{label}]"),
            Action::Noop(_) => f.write_str("noop"),
        }
    }
}

impl fmt::Display for NoopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoopReason::Malformed => "not of the form `verb[argument]`",
            NoopReason::UnknownVerb => "the verb is neither `search` nor `click`",
            NoopReason::NotOnPage => "nothing on the page carries that label",
            NoopReason::TooManyTerms => "the query holds more than 1024 distinct terms",
            NoopReason::NoSuchListing => "the query's marker lists nothing",
            NoopReason::NoSuchProduct => "no product is called so in capitals",
            NoopReason::EpisodeOver => "the episode has ended",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_original_splits_at_the_last_brackets() {
        // Recorded from the original's parser.
        let cases = [
            ("search[shoes]", Some(("search", "shoes"))),
            ("search[a[b]c]", Some(("search[a", "b]c"))),
            ("search[[x]]", Some(("search[", "x]"))),
            ("search[]", None),
            ("[x]", None),
            ("a[b]c[d]e", Some(("a[b]c", "d"))),
            ("search[x] trailing", Some(("search", "x"))),
            ("search[x\ny]", None),
            ("click[full]]", Some(("click", "full]"))),
            ("[[[]]]", Some(("[[", "]]"))),
            ("a[[]b]", Some(("a[", "]b"))),
            ("search[é]", Some(("search", "é"))),
        ];
        for (text, expected) in cases {
            assert_eq!(split_at_last_bracket(text), expected, "{text:?}");
        }
    }

    #[test]
    fn brackets_in_an_argument_are_kept() {
        let action: Action = "click[twin [38x75]]".parse().unwrap();
        assert_eq!(action, Action::Click("twin [38x75]".into()));
        assert_eq!(action.to_string().parse(), Ok(action));
    }

    #[test]
    fn verbs_are_exact_and_arguments_are_not() {
        let cases = [
            ("search[Red Shoes]", Action::Search("red shoes".into())),
            ("Search[x]", Action::Noop(NoopReason::UnknownVerb)),
            (" search[x]", Action::Noop(NoopReason::UnknownVerb)),
            ("think[x]", Action::Noop(NoopReason::UnknownVerb)),
            ("click[]", Action::Noop(NoopReason::Malformed)),
            ("]click[", Action::Noop(NoopReason::Malformed)),
            ("", Action::Noop(NoopReason::Malformed)),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse(), Ok(expected), "{text:?}");
        }
    }
}
