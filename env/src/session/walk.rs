//! A session moved through a list of actions.

use super::{LastListing, Outcome, Session};
use crate::action::{Action, NoopReason};
use crate::page::Page;
use crate::shop::Shop;
use std::borrow::Borrow;
use std::mem;
use webshop_products::GoalId;

/// One action with the state before it and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition<A = Action> {
    /// The session before the action.
    pub session: Session,
    /// The page before the action.
    pub page: Page,
    /// Why the previous action did nothing; `None` if it did something or there is none.
    pub noop_before: Option<NoopReason>,
    /// The action.
    pub action: A,
    /// The outcome of the action.
    pub outcome: Outcome,
}

/// Iterator over the [`Transition`]s of a list of actions; see [`Session::walk`].
#[derive(Clone, Debug)]
pub struct Walk<'s, I> {
    shop: &'s Shop,
    actions: I,
    session: Session,
    page: Page,
    noop: Option<NoopReason>,
    last: LastListing,
}

impl Session {
    /// Takes `actions` one after the other from the start of `goal`, and yields each with the state before
    /// it. There is no step limit.
    ///
    /// ```
    /// # use webshop_env::{Action, Session, Shop};
    /// # use webshop_products::{EmbeddedCatalog, GoalId, GoalKind};
    /// # let shop = Shop::embedded(EmbeddedCatalog::Hundred, GoalKind::Both);
    /// let actions = [Action::Search("almond trail mix".into()), Action::Click("b0helineri".into())];
    /// let mut walk = Session::walk(&shop, GoalId(408), &actions);
    /// let steps: Vec<u32> = walk.by_ref().map(|transition| transition.session.steps()).collect();
    /// assert_eq!(steps, [0, 1]);
    /// assert!(walk.page().text().contains("Buy Now"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If the goal is not one of the shop's.
    pub fn walk<'s, A: Borrow<Action>, I: IntoIterator<Item = A>>(
        shop: &'s Shop,
        goal: GoalId,
        actions: I,
    ) -> Walk<'s, I::IntoIter> {
        let (session, mut last) = (Session::start(goal), LastListing::default());
        let page = session.page_with(shop, &mut last);
        Walk { shop, actions: actions.into_iter(), session, page, noop: None, last }
    }
}

impl<I> Walk<'_, I> {
    /// The session after the last action taken.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The page after the last action taken.
    pub fn page(&self) -> &Page {
        &self.page
    }
}

impl<A: Borrow<Action>, I: Iterator<Item = A>> Iterator for Walk<'_, I> {
    type Item = Transition<A>;

    fn next(&mut self) -> Option<Transition<A>> {
        let action = self.actions.next()?;
        let session = self.session.clone();
        let outcome = self.session.act_with(self.shop, &mut self.last, action.borrow());
        let after = match outcome.noop {
            Some(_) => self.page.clone(),
            None => self.session.page_after(&outcome, self.shop, &mut self.last),
        };
        let page = mem::replace(&mut self.page, after);
        let noop_before = mem::replace(&mut self.noop, outcome.noop);
        Some(Transition { session, page, noop_before, action, outcome })
    }
}
