//! Steps per second of one customer in the embedded shop of 1,000 products, on one core.
//!
//! A step is everything an agent waits for: the action, the page, its text, and the list of available
//! actions; resets are included. The customer clicks at random among what is available and searches,
//! at the search bar, for the goal's query or for its whole instruction. `search` is the search
//! alone, for whole instructions (about 20 words).
//!
//! ```text
//! cargo bench -p webshop-env --bench step
//! ```

use criterion::{BenchmarkId, Criterion, Throughput};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::hint::black_box;
use std::sync::Arc;
use webshop_env::{Action, EnvConfig, ObservationMode, Shop, ShopEnv};
use webshop_products::{Catalog, EmbeddedCatalog, GoalId, GoalKind, GoalSet, Purpose, RawData, Seed, Split};

/// Steps per measured iteration: some hundred episodes.
const N_STEPS: usize = 2_000;

fn shop() -> Arc<Shop> {
    let data = RawData::embedded(EmbeddedCatalog::Thousand);
    let catalog = Catalog::from_raw(&data, Seed(0)).expect("the embedded catalog is sound");
    let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).expect("so are its goals");
    Arc::new(Shop::new(catalog, goals).expect("the shop opens"))
}

/// Random moves through the training goals; returns the sum of rewards, so that nothing is left out.
fn wander(env: &mut ShopEnv, goals: &[GoalId], rng: &mut ChaCha8Rng) -> f64 {
    let shop = Arc::clone(env.shop());
    let mut rewards = 0.0;
    let mut goal = goals[0];
    let mut available = env.reset(goal).available_actions;
    for _ in 0..N_STEPS {
        let clicks: Vec<Action> = available.clicks().collect();
        let action = if available.has_search_bar {
            let goal = shop.goals().get(goal);
            let words = if rng.random() { &goal.query } else { &goal.instruction };
            Action::Search(words.to_lowercase())
        } else {
            clicks[rng.random_range(0..clicks.len())].clone()
        };
        let step = env.step(&action);
        rewards += step.reward;
        available = if step.terminated || step.truncated {
            goal = goals[rng.random_range(0..goals.len())];
            env.reset(goal).available_actions
        } else {
            step.observation.available_actions
        };
        black_box(&step.observation.content);
    }
    rewards
}

fn steps(criterion: &mut Criterion) {
    let shop = shop();
    let goals = shop.goals().split(Split::Train);
    let mut group = criterion.benchmark_group("step");
    group.throughput(Throughput::Elements(N_STEPS as u64)).sample_size(20);
    let modes = [
        ("text", ObservationMode::Text),
        ("text_rich", ObservationMode::TextRich),
        ("html", ObservationMode::Html),
    ];
    for (name, observation) in modes {
        let config = EnvConfig { observation, ..EnvConfig::default() };
        let mut env = ShopEnv::new(Arc::clone(&shop), config);
        let mut rng = Seed(0).rng(Purpose::Policy, &[]);
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| wander(&mut env, goals, &mut rng));
        });
    }
    group.finish();
}

fn searches(criterion: &mut Criterion) {
    let shop = shop();
    let goals = &shop.goals().goals()[..256];
    let mut group = criterion.benchmark_group("search");
    group.throughput(Throughput::Elements(goals.len() as u64)).sample_size(20);
    group.bench_function("instruction", |bencher| {
        bencher.iter(|| goals.iter().map(|goal| shop.search(&goal.instruction).len()).sum::<usize>());
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    steps(&mut criterion);
    searches(&mut criterion);
    criterion.final_summary();
}
