//! Opening a shop from its arguments; shops with equal arguments are one.

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use webshop_env::{Compat, NounTable, Shop, ShopConfig};
use webshop_products::{
    CatalogSource, EmbeddedCatalog, GoalKind, GoalStyle, OriginalWorld, RawData, Seed, SourceConfig,
    user_cache,
};

type BoxError = Box<dyn Error + Send + Sync>;

/// The arguments of a shop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Arguments {
    pub(crate) catalog: String,
    pub(crate) size: Option<usize>,
    pub(crate) goals: Option<String>,
    pub(crate) compat: String,
    pub(crate) seed: u64,
    pub(crate) nouns: Option<String>,
    pub(crate) skip_bad: bool,
    pub(crate) cache: bool,
}

/// The open shops of this process, as long as something uses them.
static OPEN: Mutex<Option<HashMap<Arguments, Weak<Shop>>>> = Mutex::new(None);

impl Arguments {
    /// The shop of these arguments: the one that is open already, else a new one. One shop is opened at a time.
    ///
    /// # Errors
    /// An argument that names nothing, or data that cannot be read; the text says which.
    pub(crate) fn shop(&self) -> Result<Arc<Shop>, String> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_default();
        if let Some(shop) = open.get(self).and_then(Weak::upgrade) {
            return Ok(shop);
        }
        let shop = Arc::new(self.open().map_err(|error| with_causes(&*error))?);
        open.retain(|_, shop| shop.strong_count() > 0);
        open.insert(self.clone(), Arc::downgrade(&shop));
        Ok(shop)
    }

    fn open(&self) -> Result<Shop, BoxError> {
        if EmbeddedCatalog::named(&self.catalog).is_none() && !Path::new(&self.catalog).is_dir() {
            let catalog = &self.catalog;
            return Err(format!(
                "the catalog `{catalog}` is no folder and neither `100` nor `1000`, the embedded ones"
            )
            .into());
        }
        let nouns = self.nouns.as_deref().map(|file| NounTable::read(Path::new(file))).transpose()?;
        let config = ShopConfig {
            nouns: nouns.unwrap_or_default(),
            cache: self.cache_folder(),
            ..ShopConfig::default()
        };
        match self.compat.as_str() {
            "repaired" => self.open_repaired(config),
            "original" => self.open_original(ShopConfig { compat: Compat::Original, ..config }),
            other => Err(format!("unknown compat `{other}`; use `repaired` or `original`").into()),
        }
    }

    fn open_repaired(&self, config: ShopConfig) -> Result<Shop, BoxError> {
        let goals = match self.goals.as_deref() {
            None | Some("both") => GoalKind::Both,
            Some("human") => GoalKind::Human,
            Some("synthetic") => GoalKind::Synthetic,
            Some(other) => return Err(unknown_goals(other)),
        };
        let source =
            SourceConfig { limit: self.size, skips_bad: self.skip_bad, goals, seed: Seed(self.seed) };
        let source = CatalogSource::open_cached(&self.catalog, source, config.cache.as_deref())?;
        let (catalog, goals) = source.into_goals()?;
        Ok(Shop::with_config(catalog, goals, config)?)
    }

    fn open_original(&self, config: ShopConfig) -> Result<Shop, BoxError> {
        let style = match self.goals.as_deref() {
            None | Some("synthetic") => GoalStyle::Synthetic,
            Some("human") => GoalStyle::Human,
            Some("both") => {
                return Err("the original has goals of one style: use goals=`human` or `synthetic`".into());
            }
            Some(other) => return Err(unknown_goals(other)),
        };
        let data = if self.skip_bad {
            RawData::open_skipping(&self.catalog, self.size)?.0
        } else {
            RawData::open(&self.catalog, self.size)?
        };
        let world = OriginalWorld::load(&data, style, self.seed)?;
        Ok(Shop::with_config(world.catalog, world.goals, config)?)
    }

    /// The command line's cache folder. The index of an embedded catalog is built faster than read.
    fn cache_folder(&self) -> Option<PathBuf> {
        let is_cached = self.cache && EmbeddedCatalog::named(&self.catalog).is_none();
        is_cached.then(user_cache).flatten()
    }
}

fn unknown_goals(name: &str) -> BoxError {
    format!("unknown goals `{name}`; use `both`, `human` or `synthetic`").into()
}

/// The text of an error with those of its causes, unless it has them already.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    let add = |text: String, cause: &(dyn Error + 'static)| {
        let cause = cause.to_string();
        if text.ends_with(&cause) { text } else { format!("{text}: {cause}") }
    };
    causes.skip(1).fold(error.to_string(), add)
}
