//! The immutable world: what is sold, what is wanted, how to find it and what it is worth.
//!
//! A [`Shop`] is built once from a [`Catalog`] and a [`GoalSet`] and then shared by `Arc` among
//! any number of customers. Everything it answers is a pure function of its arguments. Building it
//! can fail; nothing afterwards can.
//!
//! It holds no customer: that is a [`crate::Session`].

use crate::action::NoopReason;
use crate::search::bm25::SearchExplanation;
use crate::original::compat::Compat;
use webshop_products::Digest;
use crate::fingerprint::ShopFingerprint;
use crate::search::index::{Hit, SearchIndex, TooManyTerms};
use crate::reward::nouns::NounTable;
use webshop_pycompat::strip;
use crate::reward::{GoalFacts, ProductFacts, REWARD_VERSION, RewardBreakdown, RewardExplanation, judge};
use crate::search::memo::SearchMemo;
use crate::shop_env::ENVIRONMENT_ID;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use webshop_products::{Catalog, Goal, GoalId, GoalSet, Product, ProductIdx, Selection};

/// Why a shop could not be built.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// A shop must sell something.
    #[error("the catalog is empty")]
    EmptyCatalog,
    /// The goals were made for another catalog.
    #[error("goal `{}` asks for product {} of a catalog of {n_products}", goal.0, product.0)]
    ForeignGoal {
        /// The goal at fault.
        goal: GoalId,
        /// The product it was made from.
        product: ProductIdx,
        /// How many products the catalog has.
        n_products: usize,
    },
    /// The search index could not be built.
    #[error("the search index could not be built")]
    Index(#[from] tantivy::TantivyError),
}

/// What can be chosen when a shop is built; the default is the repaired shop.
#[derive(Clone, Debug)]
pub struct ShopConfig {
    /// Ours, or the original's oddities.
    pub compat: Compat,
    /// Whether item pages have a button to the product's attributes.
    pub shows_attributes: bool,
    /// Titles whose nouns are known from another tagger.
    pub nouns: NounTable,
    /// A folder in which the search index is kept from run to run; results do not depend on it.
    pub index_cache: Option<PathBuf>,
    /// About how many of the latest searches are remembered, some 400 bytes each; results do not depend on it.
    pub remembered_searches: usize,
}

impl Default for ShopConfig {
    fn default() -> Self {
        Self {
            compat: Compat::default(),
            shows_attributes: false,
            nouns: NounTable::default(),
            index_cache: None,
            remembered_searches: 10_000,
        }
    }
}

/// Facts of so many products and goals together are kept; of more, they are prepared whenever something is bought,
/// since they take several times the room of the products and goals themselves.
const MAX_PREPARED: usize = 100_000;

/// What rewards compare, prepared once.
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

/// The immutable world of all customers.
pub struct Shop {
    catalog: Catalog,
    goals: GoalSet,
    config: ShopConfig,
    index: SearchIndex,
    searches: SearchMemo,
    facts: Option<PreparedFacts>,
    /// Products by department and by query, for the `<c>` and `<q>` listings.
    departments: Groups,
    queries: Groups,
    fingerprint: OnceLock<ShopFingerprint>,
}

impl Shop {
    /// Opens the repaired shop.
    ///
    /// # Errors
    /// [`EnvError`], if there is nothing to sell or the goals belong to another catalog.
    pub fn new(catalog: Catalog, goals: GoalSet) -> Result<Shop, EnvError> {
        Shop::with_config(catalog, goals, ShopConfig::default())
    }

    /// Opens a shop with the given rules.
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
        Ok(Shop {
            index: SearchIndex::new(ids, documents, config.index_cache.as_deref())?,
            searches: SearchMemo::new(config.remembered_searches),
            facts: PreparedFacts::new(products, goals.goals(), &config),
            departments: grouped(products, |product| &product.department),
            queries: grouped(products, |product| &product.query),
            catalog,
            goals,
            config,
            fingerprint: OnceLock::new(),
        })
    }

    /// What is sold.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// What is wanted.
    pub fn goals(&self) -> &GoalSet {
        &self.goals
    }

    /// The rules this shop keeps.
    pub fn config(&self) -> &ShopConfig {
        &self.config
    }

    /// The name of this world: what is sold, what is wanted, and by which rules, what nouns are among them, since the
    /// last page tells the reward. States may move between shops of one name.
    pub fn world(&self) -> Digest {
        let rules = (self.config.compat, self.config.shows_attributes);
        let name = (ENVIRONMENT_ID, self.goals.fingerprint(), rules);
        let name = match self.config.nouns.digest() {
            None => serde_json::to_vec(&name),
            Some(nouns) => serde_json::to_vec(&(name, nouns)),
        };
        Digest::of(&name.expect("texts and truth values are all valid JSON"))
    }

    /// What results and records of this shop are about. The first to ask waits until everything has been read.
    pub fn fingerprint(&self) -> &ShopFingerprint {
        self.fingerprint.get_or_init(|| ShopFingerprint::new(self))
    }

    /// The version of what purchases are worth, marked `+original` under the original's rules and `+nouns-` with the
    /// name of the table where one says what nouns are.
    pub fn reward_version(&self) -> String {
        let rules = match self.config.compat {
            Compat::Repaired => "",
            Compat::Original => "+original",
        };
        let nouns = self.config.nouns.digest().map(|table| format!("+nouns-{table}")).unwrap_or_default();
        format!("{REWARD_VERSION}{rules}{nouns}")
    }

    /// The at most 50 best products for words, best first; ties by product id. No words known, or
    /// more than 1024 distinct ones: nothing.
    pub fn search(&self, words: &str) -> Vec<Hit> {
        self.try_search(words).unwrap_or_default()
    }

    /// [`Shop::search`], for whoever wants to know why nothing was found.
    ///
    /// # Errors
    /// [`TooManyTerms`], since such a query is never scored.
    pub fn try_search(&self, words: &str) -> Result<Vec<Hit>, TooManyTerms> {
        self.index.search(words)
    }

    /// How a product came by its score for words, and where it stands among the results.
    ///
    /// # Errors
    /// [`TooManyTerms`], since such a query is never scored.
    pub fn explain(&self, words: &str, product: ProductIdx) -> Result<SearchExplanation, TooManyTerms> {
        self.index.explain(words, product)
    }

    /// All products that a query lists, in order: a search, unless its first word is a marker.
    ///
    /// `<c> X` lists the department X and `<q> X` the products of the query X, whole and in catalog
    /// order. The original's `<r>` lists products at random and its `<a>` fails; here both are
    /// refused, like `<c>` alone (only a [`crate::Tracer`] has what `<r>` draws from).
    ///
    /// # Errors
    /// The reason why the query lists nothing at all, as opposed to an empty list.
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

    /// What it is worth, for any goal, to buy a product with these options chosen.
    pub fn reward(&self, goal: &Goal, product: ProductIdx, selection: &Selection) -> RewardBreakdown {
        let facts = GoalFacts::new(goal, &self.config.nouns, self.config.compat);
        judge(&facts, &self.product_facts(product), selection)
    }

    /// How that worth comes about, wish by wish.
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

    /// [`Shop::reward`] for one of this shop's goals, whose facts are at hand.
    pub(crate) fn reward_by_id(
        &self,
        goal: GoalId,
        product: ProductIdx,
        selection: &Selection,
    ) -> RewardBreakdown {
        judge(&self.goal_facts(goal), &self.product_facts(product), selection)
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

/// What the index knows of a product: title, description, first bullet and options, lower case.
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

/// Products that have something in common, in catalog order, by what that is.
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
    fn a_shop_too_large_to_prepare_judges_the_same() {
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
