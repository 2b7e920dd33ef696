//! The shops of recorded episodes: the one that the flags name, and generated ones that recordings name themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use webshop_env::{EnvError, GeneratedCatalog, Shop};

/// A shop, and the generated ones that were opened.
pub(crate) struct RecordedShops {
    shop: Arc<Shop>,
    generated: BTreeMap<GeneratedCatalog, Arc<Shop>>,
}

impl RecordedShops {
    pub(crate) fn new(shop: Arc<Shop>) -> Self {
        Self { shop, generated: BTreeMap::new() }
    }

    /// The shop of a generated catalog, opened once; for `None` the one that the flags name.
    pub(crate) fn of(&mut self, generator: Option<GeneratedCatalog>) -> Result<Arc<Shop>, EnvError> {
        let Some(of) = generator else { return Ok(Arc::clone(&self.shop)) };
        if let Some(opened) = self.generated.get(&of) {
            return Ok(Arc::clone(opened));
        }
        let opened = Arc::new(Shop::generated(of)?);
        self.generated.insert(of, Arc::clone(&opened));
        Ok(opened)
    }
}
