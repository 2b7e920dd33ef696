//! Texts that many products share, each held once.

use std::collections::HashSet;
use std::sync::Arc;

/// All texts met so far. It is needed only while products or goals are made.
#[derive(Default)]
pub(crate) struct Texts(HashSet<Arc<str>>);

impl Texts {
    /// The one copy of `text`.
    pub fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.0.insert(Arc::clone(&new));
        new
    }

    /// The one copy of each of `texts`.
    pub fn share_all<L: FromIterator<Arc<str>>>(&mut self, texts: &[String]) -> L {
        texts.iter().map(|text| self.share(text)).collect()
    }
}
