//! Fuzz targets: one function for each reader of untrusted input.
//!
//! Each takes arbitrary bytes and panics if a property does not hold. The fuzz targets call them with the
//! inputs of libFuzzer, and the tests of the workspace with the files in `corpus/`, one folder per function.

use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use webshop_env::{Action, Compat, Episode, ScriptedEpisode, Session, Shop, ShopConfig, Tracer, read_html};
use webshop_products::{
    Catalog, EmbeddedCatalog, GoalId, GoalKind, GoalRecord, GoalSet, GoalStyle, OriginalWorld, RawData,
    RawItem, Seed,
};

/// Catalogs with a product of more option combinations than this are skipped, because goals take too long.
const MAX_COMBINATIONS: usize = 1_000;

/// The shop of the targets `action` and `replay`.
static SHOP: LazyLock<Arc<Shop>> =
    LazyLock::new(|| Arc::new(Shop::embedded(EmbeddedCatalog::Hundred, GoalKind::Both)));

/// The original's catalog and goals of the same data, and their shop.
static ORIGINAL: LazyLock<(OriginalWorld, Shop)> = LazyLock::new(|| {
    let data = RawData::embedded(EmbeddedCatalog::Hundred);
    let world = OriginalWorld::load(&data, GoalStyle::Synthetic, 0).expect("the embedded catalog is sound");
    let shop = original_shop(world.clone());
    (world, shop)
});

fn original_shop(world: OriginalWorld) -> Shop {
    let config = ShopConfig { compat: Compat::Original, ..ShopConfig::default() };
    Shop::with_config(world.catalog, world.goals, config).expect("the shop opens")
}

/// Any text is an action, an action reads back from its text, and a no-op changes nothing. The action is
/// taken on every kind of page.
pub fn action(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let action = Action::parse(&text, Compat::Repaired);
    let printed = action.to_string();
    let read = Action::parse(&printed, Compat::Repaired);
    assert!(read == action || matches!(action, Action::Noop(_)), "{action:?} reads back as {read:?}");
    let inverse = Action::from_display(&printed).expect("what an action prints");
    assert!(inverse == action || matches!(action, Action::Noop(_)), "{action:?} reads back as {inverse:?}");
    // The original's rules may read another action, but must not fail.
    let _ = Action::parse(&text, Compat::Original);
    let mut session = Session::start(GoalId(0));
    for before in
        ["search[pasta sauce]", "click[b0lufehiro]", "click[description]", "click[< prev]", "click[buy now]"]
    {
        let page = session.page(&SHOP);
        let mut fork = session.clone();
        let outcome = fork.act(&SHOP, &action);
        assert_eq!(fork.steps(), session.steps() + 1);
        if outcome.noop.is_some() {
            assert_eq!(fork.page(&SHOP), page);
        }
        assert!(outcome.reward == 0.0 || outcome.breakdown.is_some());
        session.act(&SHOP, &Action::parse(before, Compat::Repaired));
    }
}

/// A catalog is read or refused with a message; a catalog that was read survives writing and reading and
/// makes the same goals. The bytes are used as a file of products and as a whole catalog in one object.
pub fn catalog(bytes: &[u8]) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let put = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).expect("a written file");
    put("items_shuffle.json", bytes);
    put("items_ins_v2.json", b"{}");
    put("items_human_ins.json", b"{}");
    match RawData::read_dir(dir.path(), None) {
        Ok(data) => round_trips(&data, dir.path()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(data) = serde_json::from_slice::<RawData>(bytes) {
        round_trips(&data, dir.path());
    }
}

fn round_trips(data: &RawData, dir: &Path) {
    if data.items.iter().any(|item| combinations(item) > MAX_COMBINATIONS) {
        return;
    }
    let copy = tempfile::tempdir_in(dir).expect("a folder in a temporary one");
    data.write_dir(copy.path()).expect("an empty folder");
    let read = RawData::read_dir(copy.path(), None).expect("what was just written");
    assert_eq!(&read, data);
    assert_eq!(loaded(&read), loaded(data));
}

fn combinations(item: &RawItem) -> usize {
    let lists = item.customization_options.values().flatten();
    lists.fold(1, |product: usize, values| product.saturating_mul(values.len().max(1)))
}

fn loaded(data: &RawData) -> Result<String, String> {
    let message = |error: webshop_products::DataError| error.to_string();
    let catalog = Catalog::from_raw(data, Seed(0)).map_err(message)?;
    let goals = GoalSet::from_raw(data, &catalog, GoalKind::Both, Seed(0)).map_err(message)?;
    Ok(goals.fingerprint().to_owned())
}

/// Any bytes are a document with texts and available actions, without repeats, and every click can be printed
/// and parsed.
pub fn html(bytes: &[u8]) {
    let page = read_html(&String::from_utf8_lossy(bytes));
    let labels = &page.available_actions.clickables;
    assert!(
        labels.iter().enumerate().all(|(at, label)| !labels[..at].contains(label)),
        "a label is repeated"
    );
    for click in page.available_actions.clicks() {
        assert_eq!(Action::parse(&click.to_string(), Compat::Repaired), lower(&click));
    }
    assert!(page.nodes.is_empty() || page.text().len() >= page.nodes.len() - 1);
    assert!(page.text_rich().lines().count() >= usize::from(!page.nodes.is_empty()));
}

/// The click as it is parsed: labels of radio inputs keep their case in the document.
fn lower(click: &Action) -> Action {
    match click {
        Action::Click(label) => Action::Click(label.to_lowercase()),
        other => other.clone(),
    }
}

/// A file of episodes is replayed or refused with a message; an episode that was read survives writing and
/// reading.
pub fn replay(bytes: &[u8]) {
    match webshop_env::replay(bytes, &SHOP) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(replayed) => {
            // Lines after the first difference were not read.
            let text = String::from_utf8_lossy(bytes);
            for line in text.lines().filter(|line| !line.trim().is_empty()).take(replayed.episodes) {
                let episode = Episode::<()>::read(line).expect("it was read before");
                let again = serde_json::to_string(&episode).expect("an episode is data");
                assert_eq!(Episode::read(&again), Ok(episode));
            }
        }
    }
}

/// Scripted episodes are traced, twice with the same result, or refused with a message; an episode has as
/// many steps as actions.
pub fn trace(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let scripts: Vec<ScriptedEpisode> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let own_goals: Vec<GoalRecord> = scripts.iter().filter_map(|script| script.goal.clone()).collect();
    let mut world = ORIGINAL.0.clone();
    if let Err(error) = world.append(&own_goals) {
        return assert!(!error.to_string().is_empty());
    }
    let with_own_goals;
    let shop = match own_goals.is_empty() {
        true => &ORIGINAL.1,
        false => {
            with_own_goals = original_shop(world);
            &with_own_goals
        }
    };
    let n_goals = shop.goals().goals().len() - own_goals.len();
    let trace_all = || -> Vec<Result<String, String>> {
        let mut tracer = Tracer::new(shop, n_goals, ORIGINAL.0.random.clone(), 1);
        let trace = |script: &ScriptedEpisode| match tracer.trace(script) {
            Ok(traced) => {
                assert_eq!(traced.steps.len(), script.actions.len());
                Ok(serde_json::to_string(&traced).expect("a trace is data"))
            }
            Err(error) => Err(error.to_string()),
        };
        scripts.iter().map(trace).collect()
    };
    assert_eq!(trace_all(), trace_all());
}
