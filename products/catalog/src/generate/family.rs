//! Products that answer the same search.
//!
//! A [`Family`] shares kind, brand and the options it offers. Its [`Member`]s differ in the traits that only
//! their bullets tell, in prices, in the option values they offer, and in the tails of their titles; in a
//! fifth of the families two members share the title. So a reader of titles cannot tell two to four of them
//! apart, and the page of features does.

use super::choice::Choice;
use super::words::{Department, Form, Kind};

/// A property of a product that an instruction may require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trait {
    pub form: Form,
    pub text: &'static str,
}

/// The properties of one product of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// In its title, the traits of the whole family first.
    pub shown: Vec<Trait>,
    /// In its bullets only, those of the whole family last.
    pub hidden: Vec<Trait>,
    pub cents: i64,
    pub choices: Vec<Choice>,
    pub title: String,
}

/// Products of one kind and brand.
pub(super) struct Family {
    pub department: &'static Department,
    pub kind: &'static Kind,
    /// Whom it is made for, or what it is made of: the first word of the query.
    pub variant: Option<&'static str>,
    /// The query: its name in instructions.
    pub query: String,
    pub brand: String,
    pub material: Option<&'static str>,
    pub purpose: &'static str,
    pub members: Vec<Member>,
}

impl Family {
    /// Whether no other member has this trait.
    pub(super) fn is_own(&self, wanted: Trait) -> bool {
        let has = |member: &&Member| member.shown.contains(&wanted) || member.hidden.contains(&wanted);
        self.members.iter().filter(has).count() == 1
    }
}
