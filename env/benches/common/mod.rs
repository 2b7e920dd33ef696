//! The shop of the benches and an agent with random actions.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::path::Path;
use std::sync::Arc;
use webshop_env::{Action, AvailableActions, Shop, ShopConfig};
use webshop_products::{CatalogSource, GoalId, GoalKind, Purpose, Seed, SourceConfig, Split};

/// The catalog and the goals that the command line names; by default `1000` and both kinds. Both are
/// cached in the folder `cache`.
///
/// # Panics
/// If there is no such catalog.
pub(crate) fn shop(remembered_searches: usize, cache: Option<&Path>) -> Arc<Shop> {
    // Cargo adds flags of its own.
    let mut arguments = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let source = arguments.next().unwrap_or_else(|| "1000".into());
    let goals = match arguments.next().as_deref() {
        None | Some("both") => GoalKind::Both,
        Some("human") => GoalKind::Human,
        Some("synthetic") => GoalKind::Synthetic,
        Some(other) => panic!("unknown goals `{other}`; use `both`, `human` or `synthetic`"),
    };
    let config = SourceConfig { goals, ..SourceConfig::default() };
    let (catalog, goals) = CatalogSource::open_cached(&source, config, cache)
        .and_then(CatalogSource::into_goals)
        .unwrap_or_else(|error| panic!("{error}"));
    let config =
        ShopConfig { remembered_searches, cache: cache.map(Path::to_owned), ..ShopConfig::default() };
    Arc::new(Shop::with_config(catalog, goals, config).unwrap_or_else(|error| panic!("{error}")))
}

/// A memory figure of this process in bytes: `VmRSS` is the resident size, `VmHWM` its peak.
///
/// # Panics
/// Except on Linux.
pub(crate) fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells of a process here");
    let line = status.lines().find(|line| line.starts_with(name)).expect("with its memory");
    let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
    kilobytes.expect("in kB") * 1024
}

/// An agent that clicks at random and, at the search bar, searches for the goal's query or its instruction.
pub(crate) struct Wanderer {
    shop: Arc<Shop>,
    rng: ChaCha8Rng,
}

impl Wanderer {
    /// The `number`-th agent, with goals and actions of its own.
    pub(crate) fn new(shop: &Arc<Shop>, number: u64) -> Self {
        Wanderer { shop: Arc::clone(shop), rng: Seed(0).rng(Purpose::new("policy"), &[number]) }
    }

    /// The next goal, a training goal.
    pub(crate) fn goal(&mut self) -> GoalId {
        let goals = self.shop.goals().split(Split::Train);
        goals[self.rng.random_range(0..goals.len())]
    }

    /// The next action.
    pub(crate) fn action(&mut self, goal: GoalId, available: &AvailableActions) -> Action {
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
