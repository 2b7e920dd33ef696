//! Interned texts: equal texts of many products are stored once.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::FixedState;

/// The texts seen so far; needed only while products or goals are made.
#[derive(Default)]
pub(crate) struct Texts(HashSet<Arc<str>, FixedState>);

impl Texts {
    /// The shared copy of `text`.
    pub(crate) fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.0.insert(Arc::clone(&new));
        new
    }

    /// The shared copy of each of `texts`.
    pub(crate) fn share_all<L: FromIterator<Arc<str>>>(&mut self, texts: &[String]) -> L {
        texts.iter().map(|text| self.share(text)).collect()
    }
}
