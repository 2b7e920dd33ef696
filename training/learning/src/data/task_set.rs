//! Where the agent trains and where it is judged.
//!
//! Shop 0 is the shop of the catalog that was asked for. Its goals are split by product: the agent trains
//! on the `train` split and is judged on another. RlMode shops are generated from seeds of their own, so
//! that no product of theirs stands in shop 0, and all their goals may be trained on: a learner that has
//! seen many shops learns to read, where one shop of a hundred products can be learned by heart.

use std::sync::Arc;

use rand::Rng;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use webshop_agent::EpisodeCoordinates;
use webshop_env::Shop;
use webshop_products::{Catalog, GoalId, GoalKind, GoalSet, Purpose, RawData, Seed, Split, generate};

use crate::config::Config;
use crate::error::{Result, TrainingError};
use crate::setup::open_shop::open_shop;

/// Added to the number of a auxiliary shop to make its generator seed. Seed 0 is the embedded catalogs'.
const AUXILIARY_SEED: u64 = 1_000_000;

/// A goal of one of the shops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId {
    /// Position of the shop; 0 is the judged one.
    pub shop: u32,
    /// The goal in it.
    pub goal: GoalId,
}

/// All shops and the goals that may be trained on.
#[derive(Clone, Debug)]
pub struct TaskSet {
    shops: Vec<Arc<Shop>>,
    training: Vec<TaskId>,
}

impl TaskSet {
    /// `shop` with `n_auxiliary` generated shops of `n_products` each beside it.
    pub fn new(shop: Shop, n_auxiliary: usize, n_products: usize) -> Result<Self> {
        let mut shops = vec![Arc::new(shop)];
        shops.extend(auxiliary_shops(n_auxiliary as u64, n_products)?);
        let training = training_goals(&shops).collect();
        Ok(Self { shops, training })
    }

    /// The task_set that `config` describes.
    pub fn open(config: &Config) -> Result<Self> {
        let catalog = &config.catalog;
        Self::new(open_shop(catalog)?, catalog.auxiliary_shops, catalog.auxiliary_products)
    }

    /// The task_set of a stage of a curriculum: as many auxiliary shops, of `n_products` each, and their goals alone. The
    /// judged shop is in it, but nothing of it is trained on: cut smaller, its splits would be others.
    pub fn stage(&self, n_products: usize) -> Result<Self> {
        let n_auxiliary = self.shops.len() as u64 - 1;
        let mut shops = vec![self.shops[0].clone()];
        shops.extend(auxiliary_shops(n_auxiliary, n_products)?);
        let training = training_goals(&shops).filter(|goal| goal.shop > 0).collect();
        Ok(Self { shops, training })
    }

    /// The same shops with those goals alone that want at most `n_requirements` attributes and options.
    pub fn with_at_most_requirements(mut self, n_requirements: usize) -> Result<Self> {
        let shops = &self.shops;
        self.training.retain(|goal| shops[goal.shop as usize].goals().get(goal.goal).n_requirements() <= n_requirements);
        match self.training.is_empty() {
            false => Ok(self),
            true => Err(TrainingError::InvalidValue {
                key: "curriculum.requirements".into(),
                problem: format!(
                    "must leave something to learn: no training goal wants {n_requirements} things or fewer"
                ),
            }),
        }
    }

    /// Digest of the goals of every shop, in order.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        for shop in &self.shops {
            hash.update(shop.goals().fingerprint());
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The judged shop.
    pub fn shop(&self) -> &Arc<Shop> {
        &self.shops[0]
    }

    /// Every shop, the judged one first.
    pub fn shops(&self) -> &[Arc<Shop>] {
        &self.shops
    }

    /// Goals that may be trained on, shop by shop.
    pub fn training(&self) -> &[TaskId] {
        &self.training
    }

    /// The shop of `goal`.
    pub fn shop_of(&self, goal: TaskId) -> &Arc<Shop> {
        &self.shops[goal.shop as usize]
    }

    /// `n` training goals without repetition, drawn from `seed`; all of them if there are fewer.
    pub fn sample(&self, seed: Seed, n: usize) -> Vec<TaskId> {
        sampled(self.training.clone(), seed, n)
    }

    /// The first `n` goals of `split` of the evaluated shop in an order that depends on the goals alone, so
    /// that every run is judged on the same ones.
    pub fn held_out(&self, split: Split, n: usize) -> Vec<GoalId> {
        let goals = self.shop().goals().split(split).to_vec();
        drawn(goals, Seed(0).rng(Purpose::Evaluation, &[]), n)
    }
}

/// `n` of `pool` without repetition, drawn from `seed`; all of them if there are fewer.
pub(crate) fn sampled(pool: Vec<TaskId>, seed: Seed, n: usize) -> Vec<TaskId> {
    drawn(pool, seed.rng(Purpose::GoalSampling, &[]), n)
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

/// A task of the rollout for `goal`.
impl TaskId {
    /// The address of its `sample`-th episode at `step`.
    pub fn at(self, step: u64, sample: u64) -> EpisodeCoordinates {
        EpisodeCoordinates { step, shop: u64::from(self.shop), goal: self.goal, sample }
    }
}

/// Goals that may be trained on: the evaluated shop's training goals, and all of the others.
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
