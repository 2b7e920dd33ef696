//! The shops and goals of training and evaluation.
//!
//! Shop 0 is the shop of the configured catalog. Its goals are split by product: the agent trains on the
//! `train` split and is evaluated on another. Auxiliary shops are generated from their own seeds, contain no
//! product of shop 0, and all their goals are training goals. A policy trained on many shops learns to read
//! pages; the products of a single shop of a hundred can be memorized.

use std::sync::Arc;

use rand::Rng;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use webshop_agent::EpisodeCoordinates;
use webshop_env::Shop;
use webshop_products::{Catalog, GoalId, GoalKind, GoalSet, RawData, Seed, Split, generate};

use crate::config::Config;
use crate::error::{Result, TrainingError};
use crate::purpose;
use crate::setup::open_shop::open_shop;

/// Added to the number of an auxiliary shop to make its generator seed. The embedded catalogs use seed 0.
const AUXILIARY_SEED: u64 = 1_000_000;

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
    shops: Vec<Arc<Shop>>,
    training: Vec<TaskId>,
}

impl TaskSet {
    /// `shop` as shop 0, with `n_auxiliary` generated shops of `n_products` products each.
    pub fn new(shop: Shop, n_auxiliary: usize, n_products: usize) -> Result<Self> {
        let mut shops = vec![Arc::new(shop)];
        shops.extend(auxiliary_shops(n_auxiliary as u64, n_products)?);
        let training = training_goals(&shops).collect();
        Ok(Self { shops, training })
    }

    /// The task set of `config`.
    pub fn open(config: &Config) -> Result<Self> {
        let catalog = &config.catalog;
        Self::new(open_shop(catalog)?, catalog.auxiliary_shops, catalog.auxiliary_products)
    }

    /// The task set of a curriculum stage: the same number of auxiliary shops with `n_products` products
    /// each; only their goals are training goals. Shop 0 is unchanged but not trained on, since its splits
    /// depend on its size.
    pub(crate) fn stage(&self, n_products: usize) -> Result<Self> {
        let n_auxiliary = self.shops.len() as u64 - 1;
        let mut shops = vec![self.shops[0].clone()];
        shops.extend(auxiliary_shops(n_auxiliary, n_products)?);
        let training = training_goals(&shops).filter(|goal| goal.shop > 0).collect();
        Ok(Self { shops, training })
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

    /// Digest of the goals of every shop, in order.
    pub(crate) fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        for shop in &self.shops {
            hash.update(shop.goals().fingerprint());
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The evaluated shop.
    pub fn shop(&self) -> &Arc<Shop> {
        &self.shops[0]
    }

    /// All shops, the evaluated one first.
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

    /// The first `n` goals of `split` of the evaluated shop, in an order that depends on the goals only, so
    /// that every run is evaluated on the same ones.
    pub fn held_out(&self, split: Split, n: usize) -> Vec<GoalId> {
        let goals = self.shop().goals().split(split).to_vec();
        drawn(goals, Seed(0).rng(purpose::EVALUATION, &[]), n)
    }
}

/// `n` of `pool` without repetition, drawn from `seed`; all of them if there are fewer.
pub(crate) fn sampled(pool: Vec<TaskId>, seed: Seed, n: usize) -> Vec<TaskId> {
    drawn(pool, seed.rng(purpose::GOAL_SAMPLING, &[]), n)
}

/// `n` of `pool` without repetition; all of them if there are fewer.
fn drawn<T>(mut pool: Vec<T>, mut rng: impl Rng, n: usize) -> Vec<T> {
    let n = n.min(pool.len());
    for i in 0..n {
        let j = rng.random_range(i as u64..pool.len() as u64) as usize;
        pool.swap(i, j);
    }
    pool.truncate(n);
    pool
}

/// Coordinates of rollouts.
impl TaskId {
    /// The coordinates of its `sample`-th episode at `step`.
    pub(crate) fn at(self, step: u64, sample: u64) -> EpisodeCoordinates {
        EpisodeCoordinates { step, shop: u64::from(self.shop), goal: self.goal, sample }
    }
}

/// The training goals: the training split of the evaluated shop, and all goals of the other shops.
fn training_goals(shops: &[Arc<Shop>]) -> impl Iterator<Item = TaskId> {
    shops.iter().enumerate().flat_map(|(number, shop)| {
        let split = if number == 0 { Split::Train } else { Split::All };
        shop.goals().split(split).iter().map(move |&goal| TaskId { shop: number as u32, goal })
    })
}

fn auxiliary_shops(n: u64, n_products: usize) -> Result<Vec<Arc<Shop>>> {
    (0..n).into_par_iter().map(|number| auxiliary_shop(number, n_products)).collect()
}

fn auxiliary_shop(number: u64, n_products: usize) -> Result<Arc<Shop>> {
    let seed = Seed(AUXILIARY_SEED + number);
    let raw: RawData = generate(seed, n_products);
    let catalog = Catalog::from_raw(&raw, seed)?;
    let goals = GoalSet::from_raw(&raw, &catalog, GoalKind::Both, seed)?;
    Ok(Arc::new(Shop::new(catalog, goals)?))
}
