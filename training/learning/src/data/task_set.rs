//! The shops and goals of training and evaluation.
//!
//! Shop 0 is the shop of the configured catalog. The agent is evaluated on one split of its goals, and trains on the
//! `train` split only with `catalog.train_on_source`. All goals of auxiliary shops are training goals; their products
//! are generated from seeds of their own, or drawn from the products of shop 0 that have training goals only. A policy
//! trained on many shops learns to read pages; the products of a single shop of a hundred can be memorized. All goals of
//! validation shops, which are generated, join the validation goals of shop 0.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use webshop_agent::EpisodeCoordinates;
use webshop_env::Shop;
use webshop_products::{GoalId, ProductIdx, Seed, Split, hex};

use crate::config::{AuxiliarySource, Config, EvaluationConfig};
use crate::data::generated_shops::{auxiliary_shops, validation_shops};
use crate::data::held_out::{HeldOutGoal, evaluation_sample, goals_of};
use crate::data::resampled_shops::resampled_shops;
use crate::data::sampling::sample_without_replacement;
use crate::error::{Result, TrainingError};
use crate::purpose;
use crate::setup::open_shop::open_shop;

/// A goal of one of the shops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId {
    /// Position of the shop; 0 is the evaluated one.
    pub shop: u32,
    /// The goal in that shop.
    pub goal: GoalId,
}

/// All shops and the training goals.
#[derive(Clone, Debug)]
pub struct TaskSet {
    /// The evaluated shop, then the auxiliary ones.
    shops: Vec<Arc<Shop>>,
    training: Vec<TaskId>,
    /// Generated shops whose goals join the validation goals.
    validation: Vec<Arc<Shop>>,
    /// Training goals of one product in one auxiliary shop at most; 0 for all.
    goals_per_product: usize,
}

impl TaskSet {
    /// `shop` alone; its training split is trained on.
    pub fn of_shop(shop: Shop) -> Self {
        let shops = vec![Arc::new(shop)];
        Self {
            training: training_goals(&shops, true, 0),
            shops,
            validation: Vec::new(),
            goals_per_product: 0,
        }
    }

    /// The task set of `config`.
    ///
    /// # Errors
    /// If there is no training goal, or a shop cannot be opened.
    pub fn open(config: &Config) -> Result<Self> {
        let (catalog, evaluation) = (&config.catalog, &config.evaluation);
        let mut shops = vec![Arc::new(open_shop(catalog)?)];
        let (n_shops, n_products) = (catalog.auxiliary_shops, catalog.auxiliary_products);
        let auxiliary = match catalog.auxiliary_source {
            AuxiliarySource::Generator => auxiliary_shops(n_shops, n_products)?,
            AuxiliarySource::TrainingProducts => resampled_shops(catalog, &shops[0])?,
        };
        shops.extend(auxiliary);
        let goals_per_product = catalog.auxiliary_goals_per_product;
        let training = training_goals(&shops, catalog.train_on_source, goals_per_product);
        if training.is_empty() {
            return Err(no_training_goal());
        }
        let n_validation = if evaluation.has_validation_shops() { evaluation.shops } else { 0 };
        let validation = validation_shops(n_validation, catalog.auxiliary_products)?;
        Ok(Self { shops, training, validation, goals_per_product })
    }

    /// The task set of a curriculum stage: the same number of auxiliary shops with `n_products` products
    /// each; only their goals are training goals. Shop 0 is unchanged but not trained on, since its splits
    /// depend on its size.
    pub(crate) fn stage(&self, n_products: usize) -> Result<Self> {
        let n_auxiliary = self.shops.len() - 1;
        let mut shops = vec![self.shops[0].clone()];
        shops.extend(auxiliary_shops(n_auxiliary, n_products)?);
        let training = training_goals(&shops, false, self.goals_per_product);
        Ok(Self { shops, training, validation: self.validation.clone(), ..*self })
    }

    /// The same shops; only training goals with at most `n_requirements` attributes and options remain.
    pub(crate) fn with_at_most_requirements(mut self, n_requirements: usize) -> Result<Self> {
        let shops = &self.shops;
        self.training.retain(|goal| {
            shops[goal.shop as usize].goals().get(goal.goal).n_requirements() <= n_requirements
        });
        match self.training.is_empty() {
            false => Ok(self),
            true => Err(TrainingError::InvalidValue {
                key: "curriculum.requirements".into(),
                problem: format!(
                    "must leave a training goal: none has {n_requirements} requirements or fewer"
                ),
            }),
        }
    }

    /// Digest of the goals of the evaluated and of every auxiliary shop, in order.
    pub(crate) fn fingerprint(&self) -> String {
        digest(&self.shops)
    }

    /// Digest of the goals of the validation shops, in order; empty without such shops.
    pub(crate) fn validation_fingerprint(&self) -> String {
        if self.validation.is_empty() { String::new() } else { digest(&self.validation) }
    }

    /// The evaluated shop.
    pub fn shop(&self) -> &Arc<Shop> {
        &self.shops[0]
    }

    /// The evaluated shop, then the auxiliary ones.
    pub(crate) fn shops(&self) -> &[Arc<Shop>] {
        &self.shops
    }

    /// The training goals, shop by shop.
    pub fn training(&self) -> &[TaskId] {
        &self.training
    }

    /// The shop of `goal`.
    pub fn shop_of(&self, goal: TaskId) -> &Arc<Shop> {
        &self.shops[goal.shop as usize]
    }

    /// `n` training goals without repetition, drawn from `seed`; all of them if there are fewer.
    pub(crate) fn sample(&self, seed: Seed, n: usize) -> Vec<TaskId> {
        sampled(self.training.clone(), seed, n)
    }

    /// The same shops with up to `n` training goals of each product of each shop, drawn from `seed`; with all if `n` is 0.
    pub(crate) fn balanced(mut self, seed: Seed, n: usize) -> Self {
        if n > 0 {
            let of_shops = self.training.chunk_by(|one, other| one.shop == other.shop);
            self.training =
                of_shops.flat_map(|goals| some_of_each_product(&self.shops, goals, n, seed)).collect();
        }
        self
    }

    /// The first `n` goals of `split` of the evaluated shop, in an order that depends on the goals only, so
    /// that every run is evaluated on the same ones.
    pub fn held_out(&self, split: Split, n: usize) -> Vec<GoalId> {
        evaluation_sample(self.shop().goals().split(split).to_vec(), n)
    }

    /// The goals of every evaluation: `episodes` goals of the split, those of the validation shops among them, in an
    /// order that depends on the goals only.
    pub fn evaluation_goals(&self, config: &EvaluationConfig) -> Vec<HeldOutGoal> {
        let further = self.validation.iter().flat_map(|shop| goals_of(shop, Split::All));
        let pool = goals_of(self.shop(), config.split.into()).chain(further).collect();
        evaluation_sample(pool, config.episodes)
    }
}

/// `n` of `pool` without repetition, drawn from `seed`; all of them if there are fewer.
pub(crate) fn sampled(pool: Vec<TaskId>, seed: Seed, n: usize) -> Vec<TaskId> {
    sample_without_replacement(pool, seed.rng(purpose::GOAL_SAMPLING, &[]), n)
}

/// Coordinates of rollouts.
impl TaskId {
    /// The coordinates of its `sample`-th episode at `step`.
    pub(crate) fn at(self, step: u64, sample: u64) -> EpisodeCoordinates {
        EpisodeCoordinates { step, shop: u64::from(self.shop), goal: self.goal, sample }
    }
}

fn no_training_goal() -> TrainingError {
    TrainingError::InvalidValue {
        key: "catalog.train_on_source".into(),
        problem: "leaves no training goal: set it to true for a catalog with training goals, or \
                  `catalog.auxiliary_shops` to 1 or more"
            .into(),
    }
}

/// Digest of the goals of these shops, in order.
fn digest(shops: &[Arc<Shop>]) -> String {
    let mut hash = Sha256::new();
    for shop in shops {
        hash.update(shop.goals().fingerprint());
    }
    hex(&hash.finalize())
}

/// The training goals: those of the auxiliary shops, of each product up to `per_product` that are drawn anew for each shop,
/// or all if that is 0; and, if `with_source`, the training split of the evaluated shop. Neither depends on the run's seed.
fn training_goals(shops: &[Arc<Shop>], with_source: bool, per_product: usize) -> Vec<TaskId> {
    let goals = (0..).zip(shops).flat_map(|(number, shop)| {
        let split = if number == 0 { Split::Train } else { Split::All };
        let goals: Vec<TaskId> =
            shop.goals().split(split).iter().map(|&goal| TaskId { shop: number, goal }).collect();
        match number {
            0 if with_source => goals,
            0 => Vec::new(),
            _ if per_product == 0 => goals,
            _ => some_of_each_product(shops, &goals, per_product, Seed(0)),
        }
    });
    goals.collect()
}

/// Up to `n` of `goals`, which are of one shop, for each product: drawn from `seed`, ascending.
fn some_of_each_product(shops: &[Arc<Shop>], goals: &[TaskId], n: usize, seed: Seed) -> Vec<TaskId> {
    let mut of_product: BTreeMap<ProductIdx, Vec<TaskId>> = BTreeMap::new();
    for &goal in goals {
        let product = shops[goal.shop as usize].goals().get(goal.goal).product;
        of_product.entry(product).or_default().push(goal);
    }
    let shop = goals.first().map_or(0, |goal| u64::from(goal.shop));
    let mut rng = seed.rng(purpose::GOALS_OF_PRODUCT, &[shop]);
    let mut drawn_goals: Vec<TaskId> =
        of_product.into_values().flat_map(|goals| sample_without_replacement(goals, &mut rng, n)).collect();
    drawn_goals.sort_unstable();
    drawn_goals
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn config(more: &[&str]) -> Config {
        let small = ["catalog.size=30", "catalog.auxiliary_shops=2", "catalog.auxiliary_products=10"];
        let more: Vec<String> = small.iter().chain(more).map(|text| text.to_string()).collect();
        Config::resolve("test", "", &more).unwrap()
    }

    #[test]
    fn goals_are_balanced_by_product_if_the_key_says_so() {
        let goals = |per_product: usize, shops: usize| {
            let key = format!("catalog.auxiliary_goals_per_product={per_product}");
            let shops = format!("catalog.auxiliary_shops={shops}");
            TaskSet::open(&config(&[&key, &shops])).unwrap()
        };
        let counts = |tasks: &TaskSet| {
            let mut counts: BTreeMap<(u32, ProductIdx), usize> = BTreeMap::new();
            for goal in tasks.training() {
                let product = tasks.shop_of(*goal).goals().get(goal.goal).product;
                *counts.entry((goal.shop, product)).or_default() += 1;
            }
            counts
        };
        let (all, two) = (goals(0, 2), goals(2, 2));
        let (counts_of_all, counts_of_two) = (counts(&all), counts(&two));
        assert!(counts_of_all.values().any(|n| *n > 2));
        let capped: BTreeMap<_, _> =
            counts_of_all.iter().map(|(product, n)| (*product, *n.min(&2))).collect();
        assert_eq!(counts_of_two, capped);
        // Which goals are drawn depends on neither the run nor the number of shops.
        let more = goals(2, 3);
        assert_eq!(more.training()[..two.training().len()], *two.training());

        let drawn = |seed, n| all.clone().balanced(Seed(seed), n);
        assert_eq!(counts(&drawn(0, 2)), counts_of_two);
        assert_eq!(drawn(0, 2).training(), two.training());
        assert_ne!(drawn(1, 2).training(), two.training());
        assert_eq!(drawn(1, 0).training(), all.training());
    }

    fn shops_of(goals: &[TaskId]) -> BTreeSet<u32> {
        goals.iter().map(|goal| goal.shop).collect()
    }

    #[test]
    fn the_configured_catalog_is_trained_on_only_if_the_key_says_so() {
        let without = TaskSet::open(&config(&[])).unwrap();
        assert_eq!(shops_of(without.training()), BTreeSet::from([1, 2]));
        let with = TaskSet::open(&config(&["catalog.train_on_source=true"])).unwrap();
        assert_eq!(shops_of(with.training()), BTreeSet::from([0, 1, 2]));
        let n_source = with.shop().goals().split(Split::Train).len();
        assert_eq!(with.training()[n_source..], *without.training());
    }

    #[test]
    fn a_task_set_without_training_goals_is_refused() {
        // With one product, all goals of the catalog are on one side of the split: not on the training side.
        let mut alone = config(&["catalog.train_on_source=true"]);
        alone.catalog.auxiliary_shops = 0;
        alone.catalog.train_on_source = false;
        let error = TaskSet::open(&alone).unwrap_err().to_string();
        assert!(error.contains("`catalog.train_on_source`"), "{error}");
        assert!(error.contains("`catalog.auxiliary_shops`"), "{error}");
    }

    #[test]
    fn validation_goals_are_of_the_catalog_and_of_further_shops() {
        let opened = |more: &[&str]| {
            let config = config(&[&["evaluation.episodes=100000"], more].concat());
            TaskSet::open(&config).unwrap().evaluation_goals(&config.evaluation)
        };
        let numbers =
            |goals: &[HeldOutGoal]| goals.iter().map(HeldOutGoal::shop_number).collect::<BTreeSet<_>>();
        let all = opened(&["evaluation.shops=2"]);
        assert_eq!(numbers(&all), BTreeSet::from([0, 2_000_000, 2_000_001]));
        for shop in all.iter().map(|goal| &goal.shop) {
            let split = if shop.generator().is_some() { Split::All } else { Split::Validation };
            let n = all.iter().filter(|goal| Arc::ptr_eq(&goal.shop, shop)).count();
            assert_eq!(n, shop.goals().split(split).len());
        }
        assert_eq!(numbers(&opened(&["evaluation.shops=0"])), BTreeSet::from([0]));
        assert_eq!(numbers(&opened(&["evaluation.split=test"])), BTreeSet::from([0]));
        // The draw depends on the goals: neither on the run's seed nor on what is trained on.
        let names = |goals: Vec<HeldOutGoal>| {
            goals.iter().map(|goal| (goal.shop_number(), goal.goal)).collect::<Vec<_>>()
        };
        let other = ["evaluation.shops=2", "seed=5", "catalog.auxiliary_shops=1"];
        assert_eq!(names(opened(&other)), names(all));
    }
}
