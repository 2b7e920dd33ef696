//! Snapshots, forks and digests of sessions.

use super::{Place, Session};
use crate::session::envelope::{Kind, SnapshotError, payload, seal, unseal};
use crate::shop::Shop;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use webshop_products::Digest;
use webshop_products::{GoalId, ProductIdx, Selection};

/// The content of a snapshot: the fields of a session in order, without names.
pub(crate) type Fields =
    (GoalId, Option<Box<str>>, u32, Place, Arc<str>, u32, Selection, BTreeSet<ProductIdx>);

impl Session {
    /// This session as bytes: some 60 bytes and the query. [`Session::restore`] reads them in the same shop,
    /// in this process or another.
    ///
    /// ```
    /// # use webshop_env::{Action, Session, Shop};
    /// # use webshop_products::{EmbeddedCatalog, GoalId, GoalKind};
    /// # let shop = Shop::embedded(EmbeddedCatalog::Hundred, GoalKind::Both);
    /// let mut session = Session::start(GoalId(7));
    /// session.act(&shop, &Action::Search("boots".into()));
    /// let bytes = session.snapshot(&shop);
    /// assert!(bytes.len() < 100);
    /// assert_eq!(Session::restore(&shop, &bytes), Ok(session));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&self, shop: &Shop) -> Vec<u8> {
        seal(Kind::Session, shop.snapshot_digest(), &self.fields())
    }

    /// The session of a [`Session::snapshot`].
    ///
    /// # Errors
    /// [`SnapshotError`], if the bytes are no snapshot of a session, damaged, or of another shop.
    pub fn restore(shop: &Shop, bytes: &[u8]) -> Result<Session, SnapshotError> {
        Session::from_fields(unseal(Kind::Session, shop.snapshot_digest(), bytes)?, shop)
    }

    /// The digest of this state, equal for equal sessions in every process and on every machine. The number
    /// of steps is part of it.
    pub fn digest(&self) -> Digest {
        Digest::of(&payload(&self.fields()))
    }

    /// `n` independent copies of this session.
    ///
    /// Nothing in a session is random under the repaired rules, so forks with the same actions see the same
    /// pages, and none needs a seed. Policies may be random: they address their draws by the coordinates of
    /// the episode (purpose, step, goal, sample), so forks that should continue differently need different
    /// coordinates, for example another `sample`.
    pub fn fork(&self, n: usize) -> Vec<Session> {
        vec![self.clone(); n]
    }

    /// This session as [`Fields`].
    pub(crate) fn fields(&self) -> impl Serialize {
        let Session { goal, name, steps, place, query, page_number, selection, visited } = self;
        (goal, name, steps, place, query, page_number, selection, visited)
    }

    /// The session with these fields, if goal and products exist in the shop.
    pub(crate) fn from_fields(fields: Fields, shop: &Shop) -> Result<Session, SnapshotError> {
        let (goal, name, steps, place, query, page_number, selection, visited) = fields;
        let session = Session { goal, name, steps, place, query, page_number, selection, visited };
        let n_goals = shop.goals().goals().len();
        if goal.0 as usize >= n_goals {
            let problem = format!("goal `{}` of {n_goals}", goal.0);
            return Err(SnapshotError::Impossible(problem));
        }
        let n_products = shop.catalog().len();
        let mut products = session.product().into_iter().chain(session.visited.iter().copied());
        match products.find(|product| product.as_usize() >= n_products) {
            Some(product) => {
                Err(SnapshotError::Impossible(format!("product `{}` of {n_products}", product.0)))
            }
            None => Ok(session),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Action, NoopReason};
    use webshop_products::{EmbeddedCatalog, GoalKind};

    #[test]
    fn a_digest_is_the_same_on_every_machine() {
        // Recorded once; a change here makes every recorded episode differ.
        let session = Session::start(GoalId(7));
        assert_eq!(payload(&session.fields()), br#"[7,null,0,"search","",0,{},[]]"#);
        assert_eq!(session.digest().to_string(), "a87d5b7269c3a057");
    }

    #[test]
    fn the_number_of_steps_has_an_end() {
        let fields = serde_json::from_slice(br#"[7,null,4294967295,"search","",0,{},[]]"#).unwrap();
        let shop = Shop::embedded(EmbeddedCatalog::Hundred, GoalKind::Both);
        let mut session = Session::from_fields(fields, &shop).unwrap();
        session.act(&shop, &Action::Noop(NoopReason::Malformed));
        assert_eq!(session.steps(), u32::MAX);
    }
}
