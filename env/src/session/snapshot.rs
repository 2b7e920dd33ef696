//! A session as bytes and back, and its name.

use super::{Place, Session};
use webshop_products::Digest;
use crate::shop::Shop;
use crate::session::envelope::{Kind, SnapshotError, payload, seal, unseal};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use webshop_products::{GoalId, ProductIdx, Selection};

/// What a snapshot holds of a session: its fields in order, without their names.
pub(crate) type Fields =
    (GoalId, Option<Box<str>>, u32, Place, Arc<str>, u32, Selection, BTreeSet<ProductIdx>);

impl Session {
    /// This session as bytes, some 60 and the words of its search: to be put down and taken up again,
    /// by this process or another, with [`Session::restore`] in the same shop.
    ///
    /// ```
    /// # use webshop_env::{Action, Session, Shop};
    /// # use webshop_products::{Catalog, EmbeddedCatalog, GoalId, GoalKind, GoalSet, RawData, Seed};
    /// # let data = RawData::embedded(EmbeddedCatalog::Hundred);
    /// # let catalog = Catalog::from_raw(&data, Seed(0))?;
    /// # let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0))?;
    /// # let shop = Shop::new(catalog, goals)?;
    /// let mut session = Session::start(GoalId(7));
    /// session.act(&shop, &Action::Search("boots".into()));
    /// let bytes = session.snapshot(&shop);
    /// assert!(bytes.len() < 100);
    /// assert_eq!(Session::restore(&shop, &bytes), Ok(session));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&self, shop: &Shop) -> Vec<u8> {
        seal(Kind::Session, shop.world(), &self.fields())
    }

    /// The session that [`Session::snapshot`] made these bytes of.
    ///
    /// # Errors
    /// [`SnapshotError`], if the bytes are something else, damaged, or from another shop.
    pub fn restore(shop: &Shop, bytes: &[u8]) -> Result<Session, SnapshotError> {
        Session::from_fields(unseal(Kind::Session, shop.world(), bytes)?, shop)
    }

    /// The name of this state: equal for equal sessions and, but for an accident in 2⁶⁴, for no
    /// others; the same in every process and on every machine. The count of steps is part of it.
    pub fn digest(&self) -> Digest {
        Digest::of(&payload(&self.fields()))
    }

    /// This session `n` times over. The forks share nothing: what one does, no other sees.
    ///
    /// Nothing in a repaired session is random, so forks that do the same see the same, and none
    /// needs a seed. What can be random is who shops. A policy addresses its draws by the
    /// coordinates of its episode (purpose, step, goal, sample) and not by a generator that runs on,
    /// so forks that are to be continued differently must each be given coordinates of their own, by
    /// another `sample` say; under the same ones they all make the same trip.
    pub fn fork(&self, n: usize) -> Vec<Session> {
        vec![self.clone(); n]
    }

    /// This session as [`Fields`].
    pub(crate) fn fields(&self) -> impl Serialize {
        let Session { goal, name, steps, place, query, page_number, selection, visited } = self;
        (goal, name, steps, place, query, page_number, selection, visited)
    }

    /// The session with these fields, if the shop has all that they speak of.
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
    use webshop_products::GoalId;

    #[test]
    fn a_digest_is_the_same_on_every_machine() {
        // Recorded once; a change here makes every recorded trip differ.
        let session = Session::start(GoalId(7));
        assert_eq!(payload(&session.fields()), br#"[7,null,0,"search","",0,{},[]]"#);
        assert_eq!(session.digest().to_string(), "a87d5b7269c3a057");
    }
}
