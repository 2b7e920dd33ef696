//! The same shop is the same bytes: its files, its cached index, its fingerprints and all observations, in two runs and on
//! any number of threads.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use rand::Rng;
use tempfile::TempDir;
use webshop_env::{Action, EnvConfig, ObservationMode, Shop, ShopConfig, VecEnv};
use webshop_products::{CatalogSource, GoalId, Purpose, Seed, SourceConfig, write_generated};

/// Enough for some episodes to end and others to go on, and for every thread to have some.
const N_LANES: usize = 1_024;
const N_TURNS: usize = 20;

/// All bytes of one run, by name.
type Bytes = BTreeMap<String, Vec<u8>>;

fn files(prefix: &str, folder: &Path) -> Bytes {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let file = |entry: fs::DirEntry| {
        let name = format!("{prefix}/{}", entry.file_name().to_string_lossy());
        (name, fs::read(entry.path()).expect("a file"))
    };
    entries.map(file).collect()
}

/// Generates a catalog, opens it twice, the second time from the cache, and takes random actions in it.
fn run(n_threads: usize) -> Bytes {
    let [catalog, cache] = [(); 2].map(|()| TempDir::new().expect("a temporary folder"));
    write_generated(Seed(5), 400, 300, catalog.path()).expect("an empty folder");
    let mut bytes = files("catalog", catalog.path());
    for index in ["built", "cached"] {
        let source = catalog.path().to_str().expect("a path in Unicode");
        let source = CatalogSource::open_cached(source, SourceConfig::default(), Some(cache.path()));
        let source = source.expect("a sound catalog");
        let (products, goals) = source.into_goals().expect("with sound goals");
        let config = ShopConfig { cache: Some(cache.path().to_owned()), ..ShopConfig::default() };
        let shop = Arc::new(Shop::with_config(products, goals, config).expect("the shop opens"));
        let digests = shop.goals().digests(shop.catalog());
        bytes.insert(
            format!("digests, {index}"),
            format!("{digests:?} {}", shop.snapshot_digest()).into_bytes(),
        );
        let threads = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("threads");
        bytes.insert(format!("steps, {index}"), threads.install(|| steps(&shop)));
    }
    bytes.extend(files("cache", cache.path()));
    bytes
}

/// Every step of every lane, as JSON.
fn steps(shop: &Arc<Shop>) -> Vec<u8> {
    let goals: Vec<GoalId> = shop.goals().goals().iter().map(|goal| goal.id).take(N_LANES).collect();
    let config = EnvConfig { observation: ObservationMode::TextRich, ..EnvConfig::default() };
    let mut lanes = VecEnv::new(shop, config, &goals);
    let mut bytes = Vec::new();
    for turn in 0..N_TURNS {
        let act = |(lane, goal): (usize, &GoalId)| {
            let available = lanes.steps()[lane].observation.available_actions();
            let mut rng = Seed(0).rng(Purpose::new("policy"), &[lane as u64, turn as u64]);
            let n_clicks = available.clicks().count();
            match available.has_search_bar {
                true => Action::Search(shop.goals().get(*goal).instruction.to_lowercase()),
                false if n_clicks == 0 => Action::Click("no label".into()),
                false => available.clicks().nth(rng.random_range(0..n_clicks)).expect("there are so many"),
            }
        };
        let actions: Vec<Action> = goals.iter().enumerate().map(act).collect();
        serde_json::to_writer(&mut bytes, lanes.step(&actions)).expect("steps are data");
    }
    bytes
}

#[test]
fn two_runs_on_one_and_on_eight_threads_make_the_same_bytes() {
    let first = run(1);
    assert!(
        first.len() == 9,
        "three files, a cached catalog, its index, and two looks at it twice: {:?}",
        first.keys()
    );
    assert!(first["steps, built"] == first["steps, cached"], "the cached catalog gives other steps");
    assert!(first["steps, built"].len() > 10_000_000, "there are observations");
    for n_threads in [1, 8, 8] {
        let again = run(n_threads);
        assert!(again.keys().eq(first.keys()), "{:?} and {:?}", again.keys(), first.keys());
        for (name, bytes) in &again {
            assert!(*bytes == first[name], "`{name}` differs on {n_threads} threads");
        }
    }
}
