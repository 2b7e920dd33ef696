//! The immutable part of the environment: products, goals, search and rewards.
//!
//! A [`Shop`] is built once from a [`Catalog`] and a [`GoalSet`] and shared by `Arc` among any number of
//! sessions. Every method is a pure function of its arguments. Only construction can fail.
//!
//! It holds no state of an episode: that is a [`crate::Session`].

use crate::action::NoopReason;
use crate::fingerprint::{GeneratedCatalog, ShopFingerprint};
use crate::original::compat::Compat;
use crate::reward::nouns::NounTable;
use crate::reward::{GoalFacts, ProductFacts, RewardBreakdown, RewardExplanation, breakdown};
use crate::search::bm25::SearchExplanation;
use crate::search::index::{Hit, SearchIndex, TooManyTerms};
use crate::search::index_cache::CachedPostings;
use crate::search::query_cache::QueryCache;
use crate::version::{ENVIRONMENT_ID, REWARD_VERSION};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use webshop_products::Digest;
use webshop_products::{
    Catalog, EmbeddedCatalog, Goal, GoalId, GoalKind, GoalSet, Product, ProductIdx, RawData, Seed, Selection,
};
use webshop_pycompat::strip;

/// A shop that cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// The catalog has no products.
    #[error("the catalog is empty")]
    EmptyCatalog,
    /// The goals belong to another catalog.
    #[error("goal `{}` was made from product {}, but the catalog has {n_products}", goal.0, product.0)]
    ForeignGoal {
        /// The goal.
        goal: GoalId,
        /// The product it was made from.
        product: ProductIdx,
        /// The number of products in the catalog.
        n_products: usize,
    },
    /// More products than a generated shop may have.
    #[error("a generated shop has at most {max} products, not {n_products}")]
    TooManyProducts {
        /// The number that was given.
        n_products: usize,
        /// The largest number.
        max: usize,
    },
    /// The catalog or its goals.
    #[error(transparent)]
    Data(#[from] webshop_products::DataError),
    /// The search index could not be built.
    #[error("the search index could not be built")]
    Index(#[from] tantivy::TantivyError),
}

/// The rules and caches of a shop; the default is the repaired shop.
#[derive(Clone, Debug)]
pub struct ShopConfig {
    /// Repaired rules, or the original's.
    pub compat: Compat,
    /// Whether item pages have an `Attributes` button.
    pub shows_attributes: bool,
    /// Nouns of titles, as another tagger found them.
    pub nouns: NounTable,
    /// Folder that caches the search index between runs; results do not depend on it.
    pub cache: Option<PathBuf>,
    /// Approximate number of cached searches, some 400 bytes each; results do not depend on it.
    pub remembered_searches: usize,
}

impl Default for ShopConfig {
    fn default() -> Self {
        Self {
            compat: Compat::default(),
            shows_attributes: false,
            nouns: NounTable::default(),
            cache: None,
            remembered_searches: 10_000,
        }
    }
}

/// Up to this number of products and goals together, reward facts are prepared once. Above it they are
/// prepared for each purchase, because they take several times the memory of the products and goals.
const MAX_PREPARED: usize = 100_000;

/// The prepared values that rewards compare.
struct PreparedFacts {
    products: Vec<ProductFacts>,
    goals: Vec<GoalFacts>,
}

impl PreparedFacts {
    fn new(products: &[Product], goals: &[Goal], config: &ShopConfig) -> Option<Self> {
        (products.len() + goals.len() <= MAX_PREPARED).then(|| Self {
            products: products.iter().map(|product| ProductFacts::new(product, &config.nouns)).collect(),
            goals: goals.iter().map(|goal| GoalFacts::new(goal, &config.nouns, config.compat)).collect(),
        })
    }
}

/// The immutable part of the environment, shared by all sessions.
pub struct Shop {
    catalog: Catalog,
    goals: GoalSet,
    config: ShopConfig,
    index: SearchIndex,
    searches: QueryCache,
    facts: Option<PreparedFacts>,
    /// Products by department and by query, for the `<c>` and `<q>` listings.
    departments: Groups,
    queries: Groups,
    /// The arguments of the generator; `None` for other catalogs.
    generated: Option<GeneratedCatalog>,
    fingerprint: OnceLock<ShopFingerprint>,
}

impl Shop {
    /// The shop of an embedded catalog with its goals, at the prices of seed 0, with the default configuration.
    pub fn embedded(catalog: EmbeddedCatalog, goals: GoalKind) -> Shop {
        let data = RawData::embedded(catalog);
        let catalog = Catalog::from_raw(&data, Seed(0)).expect("embedded catalogs are valid");
        let goals = GoalSet::from_raw(&data, &catalog, goals, Seed(0)).expect("so are their goals");
        Shop::new(catalog, goals).expect("the goals are of the catalog")
    }

    /// A shop with the default configuration.
    ///
    /// # Errors
    /// [`EnvError`], if the catalog is empty or the goals belong to another catalog.
    pub fn new(catalog: Catalog, goals: GoalSet) -> Result<Shop, EnvError> {
        Shop::with_config(catalog, goals, ShopConfig::default())
    }

    /// A shop with the given configuration.
    ///
    /// # Errors
    /// As [`Shop::new`].
    pub fn with_config(catalog: Catalog, goals: GoalSet, config: ShopConfig) -> Result<Shop, EnvError> {
        if catalog.is_empty() {
            return Err(EnvError::EmptyCatalog);
        }
        let n_products = catalog.len();
        let foreign = |goal: &&Goal| goal.product.as_usize() >= n_products;
        if let Some(goal) = goals.goals().iter().find(foreign) {
            return Err(EnvError::ForeignGoal { goal: goal.id, product: goal.product, n_products });
        }
        let products = catalog.products();
        let ids = products.iter().map(|product| product.id.clone()).collect();
        let documents = products.iter().map(document);
        let cached = config.cache.as_deref().map(|folder| match catalog.source_digest() {
            Some(source) => CachedPostings::of_source(folder, source),
            None => CachedPostings::of_documents(folder, documents.clone()),
        });
        Ok(Shop {
            index: SearchIndex::new(ids, documents, cached)?,
            searches: QueryCache::new(config.remembered_searches),
            facts: PreparedFacts::new(products, goals.goals(), &config),
            departments: grouped(products, |product| &product.department),
            queries: grouped(products, |product| &product.query),
            catalog,
            goals,
            config,
            generated: None,
            fingerprint: OnceLock::new(),
        })
    }

    /// The same shop, whose catalog was generated from these arguments.
    pub(crate) fn of_generator(self, generated: GeneratedCatalog) -> Shop {
        Shop { generated: Some(generated), fingerprint: OnceLock::new(), ..self }
    }

    /// The arguments that the catalog was generated from; `None` for embedded catalogs and files.
    pub fn generator(&self) -> Option<GeneratedCatalog> {
        self.generated
    }

    /// The products.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The goals.
    pub fn goals(&self) -> &GoalSet {
        &self.goals
    }

    /// The configuration.
    pub fn config(&self) -> &ShopConfig {
        &self.config
    }

    /// Digest of catalog, goals and rules, including the noun table because the last page shows the reward.
    /// Snapshots can be restored in any shop with the same digest.
    pub fn snapshot_digest(&self) -> Digest {
        let rules = (self.config.compat, self.config.shows_attributes);
        let name = (ENVIRONMENT_ID, self.goals.fingerprint(), rules);
        let name = match self.config.nouns.digest() {
            None => serde_json::to_vec(&name),
            Some(nouns) => serde_json::to_vec(&(name, nouns)),
        };
        Digest::of(&name.expect("texts and truth values are all valid JSON"))
    }

    /// The fingerprint of this shop. The first call hashes the catalog and the goals.
    pub fn fingerprint(&self) -> &ShopFingerprint {
        self.fingerprint.get_or_init(|| {
            let generated = self.generated;
            let found = ShopFingerprint::new(&self.catalog, &self.goals, self.reward_version());
            ShopFingerprint { generated, ..found }
        })
    }

    /// The version of the reward rules, with `+original` under the original's rules and `+nouns-` and the
    /// digest of the noun table if there is one.
    pub fn reward_version(&self) -> String {
        let rules = match self.config.compat {
            Compat::Repaired => "",
            Compat::Original => "+original",
        };
        let nouns = self.config.nouns.digest().map(|table| format!("+nouns-{table}")).unwrap_or_default();
        format!("{REWARD_VERSION}{rules}{nouns}")
    }

    /// At most 50 products for a query, best first; ties by product id. Empty if no word is known or the
    /// query has more than 1024 distinct terms.
    pub fn search(&self, words: &str) -> Vec<Hit> {
        self.try_search(words).unwrap_or_default()
    }

    /// Like [`Shop::search`], with an error for a query that is not scored.
    ///
    /// # Errors
    /// [`TooManyTerms`].
    pub fn try_search(&self, words: &str) -> Result<Vec<Hit>, TooManyTerms> {
        self.index.search(words)
    }

    /// The hits of [`Shop::try_search`] by scoring every document: slower in a large catalog, and equal to the last bit.
    ///
    /// # Errors
    /// [`TooManyTerms`].
    pub fn search_exhaustively(&self, words: &str) -> Result<Vec<Hit>, TooManyTerms> {
        self.index.search_exhaustively(words)
    }

    /// The score of a product for a query, term by term, and its rank among the results.
    ///
    /// # Errors
    /// [`TooManyTerms`].
    pub fn explain(&self, words: &str, product: ProductIdx) -> Result<SearchExplanation, TooManyTerms> {
        self.index.explain(words, product)
    }

    /// All products that a query lists, in order: a search, unless its first word is a marker.
    ///
    /// `<c> X` lists the department X and `<q> X` the products of the query X, completely and in catalog
    /// order. The original's `<r>` lists random products and its `<a>` fails; here both are refused, like
    /// `<c>` alone (only a [`crate::Tracer`] has the generator for `<r>`).
    ///
    /// # Errors
    /// The reason why the query is refused, as opposed to an empty list.
    pub fn listing(&self, query: &str) -> Result<Arc<[ProductIdx]>, NoopReason> {
        let (marker, rest) = query.split_once(' ').unwrap_or((query, ""));
        let of = |groups: &Groups, key: &str| groups.get(strip(key)).cloned().unwrap_or_default();
        match marker {
            "<c>" if marker.len() == query.len() => Err(NoopReason::NoSuchListing),
            "<c>" => Ok(of(&self.departments, rest.split(' ').next().unwrap_or(rest))),
            "<q>" => Ok(of(&self.queries, rest)),
            "<r>" | "<a>" => Err(NoopReason::NoSuchListing),
            _ => self.searches.get_or(query, || match self.index.search(query) {
                Ok(hits) => Ok(hits.into_iter().map(|hit| hit.product).collect()),
                Err(TooManyTerms) => Err(NoopReason::TooManyTerms),
            }),
        }
    }

    /// The reward of buying a product with `selection`, for any goal.
    pub fn reward(&self, goal: &Goal, product: ProductIdx, selection: &Selection) -> RewardBreakdown {
        let facts = GoalFacts::new(goal, &self.config.nouns, self.config.compat);
        breakdown(&facts, &self.product_facts(product), selection)
    }

    /// The reward of a purchase, requirement by requirement.
    pub fn explain_reward(
        &self,
        goal: &Goal,
        product: ProductIdx,
        selection: &Selection,
    ) -> RewardExplanation {
        let wanted = GoalFacts::new(goal, &self.config.nouns, self.config.compat);
        let facts = self.product_facts(product);
        RewardExplanation::new((goal, &wanted), (self.catalog.get(product), &facts), selection)
    }

    /// [`Shop::reward`] for one of this shop's goals, with its prepared facts.
    pub(crate) fn reward_by_id(
        &self,
        goal: GoalId,
        product: ProductIdx,
        selection: &Selection,
    ) -> RewardBreakdown {
        breakdown(&self.goal_facts(goal), &self.product_facts(product), selection)
    }

    pub(crate) fn goal_facts(&self, goal: GoalId) -> Cow<'_, GoalFacts> {
        match &self.facts {
            Some(facts) => Cow::Borrowed(&facts.goals[goal.0 as usize]),
            None => {
                let goal = self.goals.get(goal);
                Cow::Owned(GoalFacts::new(goal, &self.config.nouns, self.config.compat))
            }
        }
    }

    fn product_facts(&self, product: ProductIdx) -> Cow<'_, ProductFacts> {
        match &self.facts {
            Some(facts) => Cow::Borrowed(&facts.products[product.as_usize()]),
            None => Cow::Owned(ProductFacts::new(self.catalog.get(product), &self.config.nouns)),
        }
    }
}

impl std::fmt::Debug for Shop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shop")
            .field("n_products", &self.catalog.len())
            .field("n_goals", &self.goals.goals().len())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// The indexed text of a product: title, description, first bullet and options, lower case.
fn document(product: &Product) -> String {
    let options: Vec<String> = product
        .options
        .iter()
        .map(|group| {
            let values: Vec<&str> = group.values.iter().map(|value| &*value.text).collect();
            format!("{}: {}", group.name, values.join(", "))
        })
        .collect();
    let bullet = product.bullets.first().map_or("", |bullet| bullet);
    let parts = [&*product.title, &*product.description, bullet, &options.join(", and ")];
    parts.join(" ").to_lowercase()
}

/// Products in catalog order, by department or by query.
type Groups = HashMap<Arc<str>, Arc<[ProductIdx]>>;

fn grouped(products: &[Product], key: impl Fn(&Product) -> &Arc<str>) -> Groups {
    let mut groups: HashMap<Arc<str>, Vec<ProductIdx>> = HashMap::new();
    for (at, product) in products.iter().enumerate() {
        groups.entry(Arc::clone(key(product))).or_default().push(ProductIdx(at as u32));
    }
    groups.into_iter().map(|(key, group)| (key, group.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use webshop_products::{GoalKind, Seed, generate};

    #[test]
    fn rewards_are_the_same_without_prepared_facts() {
        let data = generate(Seed(0), 30);
        let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).unwrap();
        let mut shop = Shop::new(catalog, goals).unwrap();
        let purchases = |shop: &Shop| -> Vec<_> {
            shop.goals().goals().iter().map(|goal| shop.best_purchase(goal)).collect()
        };
        let prepared = purchases(&shop);
        assert!(prepared.iter().all(|purchase| purchase.breakdown.is_success()));
        shop.facts = None;
        assert_eq!(purchases(&shop), prepared);
    }
}
