//! Recorded episodes with their shops: the one that the flags name, and generated ones that recordings name themselves.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use webshop_env::{EnvError, GeneratedCatalog, Shop};
use webshop_products::open_text;
use webshop_serve::Recordings;

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

/// The episodes of files, all of which are replayed in their shops.
pub(crate) fn recordings(files: &[PathBuf], shops: &mut RecordedShops) -> anyhow::Result<Recordings> {
    let mut recordings = Recordings::default();
    for path in files {
        let read = recordings.read(open_text(path)?, |generator| shops.of(generator));
        read.with_context(|| format!("cannot show the episodes of `{}`", path.display()))?;
    }
    Ok(recordings)
}
