//! The shop that a bench runs in, and a customer who wanders about in it.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::path::Path;
use std::sync::Arc;
use webshop_env::{Action, AvailableActions, Shop, ShopConfig};
use webshop_products::{GoalId, GoalKind, Purpose, Seed, Split, Stock, StockConfig};

/// The catalog and the goals that the command line names: `1000` and both kinds, unless it says otherwise. With an
/// `index_cache`, the search index is kept in that folder.
///
/// # Panics
/// If there is no such catalog: a bench has nobody to tell but its terminal.
pub fn shop(remembered_searches: usize, index_cache: Option<&Path>) -> Arc<Shop> {
    // Cargo adds flags of its own.
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let source = words.next().unwrap_or_else(|| "1000".into());
    let goals = match words.next().as_deref() {
        None | Some("both") => GoalKind::Both,
        Some("human") => GoalKind::Human,
        Some("synthetic") => GoalKind::Synthetic,
        Some(other) => panic!("`{other}` names no goals; there are `both`, `human` and `synthetic`"),
    };
    let stock = Stock::open(&source, StockConfig { goals, ..StockConfig::default() });
    let (catalog, goals) = stock.and_then(Stock::into_goals).unwrap_or_else(|error| panic!("{error}"));
    let index_cache = index_cache.map(Path::to_owned);
    let config = ShopConfig { remembered_searches, index_cache, ..ShopConfig::default() };
    Arc::new(Shop::with_config(catalog, goals, config).unwrap_or_else(|error| panic!("{error}")))
}

/// What the operating system says of this process, in bytes: `VmRSS` is resident, `VmHWM` was at most.
///
/// # Panics
/// Where there is no Linux to say it.
pub fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells of a process here");
    let line = status.lines().find(|line| line.starts_with(name)).expect("with its memory");
    let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
    kilobytes.expect("in kB") * 1024
}

/// A customer who clicks at random among what is available and searches, at the search bar, for the goal's query or
/// for its whole instruction.
pub struct Wanderer {
    shop: Arc<Shop>,
    rng: ChaCha8Rng,
}

impl Wanderer {
    /// The `number`-th customer, whose wishes and moves are always the same.
    pub fn new(shop: &Arc<Shop>, number: u64) -> Self {
        Wanderer { shop: Arc::clone(shop), rng: Seed(0).rng(Purpose::Policy, &[number]) }
    }

    /// The next wish, a training goal.
    pub fn goal(&mut self) -> GoalId {
        let goals = self.shop.goals().split(Split::Train);
        goals[self.rng.random_range(0..goals.len())]
    }

    /// The next move.
    pub fn action(&mut self, goal: GoalId, available: &AvailableActions) -> Action {
        if available.has_search_bar {
            let goal = self.shop.goals().get(goal);
            let words = if self.rng.random() { &goal.query } else { &goal.instruction };
            return Action::Search(words.to_lowercase());
        }
        let n_clicks = available.clicks().count();
        let chosen = self.rng.random_range(0..n_clicks);
        available.clicks().nth(chosen).expect("every page but the last has a button")
    }
}
