//! What must hold whatever bytes a reader is given: a function for each of the shop's readers.
//!
//! Each takes arbitrary bytes and panics if a promise is broken. The fuzz targets call them with what libFuzzer
//! invents, and the tests of the house with the files in `corpus/`, one folder a function.

use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use webshop_env::{Action, Compat, GivenTrip, Session, Shop, ShopConfig, Tracer, Trip, read_html};
use webshop_products::{
    Catalog, EmbeddedCatalog, GoalId, GoalKind, GoalRecord, GoalSet, GoalStyle, OriginalWorld, RawData,
    RawItem, Seed,
};

/// Products with more combinations of options than this make more goals than are worth the wait.
const MAX_COMBINATIONS: usize = 1_000;

/// The shop that actions are said and trips are made in.
static SHOP: LazyLock<Arc<Shop>> = LazyLock::new(|| {
    let data = RawData::embedded(EmbeddedCatalog::Hundred);
    let catalog = Catalog::from_raw(&data, Seed(0)).expect("the embedded catalog is sound");
    let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).expect("so are its goals");
    Arc::new(Shop::new(catalog, goals).expect("the shop opens"))
});

/// The original's world of the same products, and the shop in it.
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

/// Any text is an action, an action reads back from its text, and one that does nothing changes nothing. The text
/// is said on every kind of page.
pub fn action(bytes: &[u8]) {
    let said = String::from_utf8_lossy(bytes);
    let action = Action::parse(&said, Compat::Repaired);
    let printed = action.to_string();
    let read = Action::parse(&printed, Compat::Repaired);
    assert!(read == action || matches!(action, Action::Noop(_)), "{action:?} reads back as {read:?}");
    // The original reads to the last brackets, and may take another text for an action, but any text for something.
    let _ = Action::parse(&said, Compat::Original);
    let mut session = Session::start(GoalId(0));
    for before in
        ["search[pasta sauce]", "click[b0lufehiro]", "click[description]", "click[< prev]", "click[buy now]"]
    {
        let page = session.page(&SHOP);
        let mut customer = session.clone();
        let outcome = customer.act(&SHOP, &action);
        assert_eq!(customer.steps(), session.steps() + 1);
        if outcome.noop.is_some() {
            assert_eq!(customer.page(&SHOP), page);
        }
        assert!(outcome.reward == 0.0 || outcome.breakdown.is_some());
        session.act(&SHOP, &Action::parse(before, Compat::Repaired));
    }
}

/// A catalog is read, or refused with a message; what was read is written and read again the same, and makes the same
/// goals. The bytes are taken for a file of products, and for a whole catalog in one object.
pub fn catalog(bytes: &[u8]) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let put = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).expect("a written file");
    put("items_shuffle.json", bytes);
    put("items_ins_v2.json", b"{}");
    put("items_human_ins.json", b"{}");
    match RawData::read_dir(dir.path(), None) {
        Ok(data) => keeps(&data, dir.path()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(data) = serde_json::from_slice::<RawData>(bytes) {
        keeps(&data, dir.path());
    }
}

fn keeps(data: &RawData, dir: &Path) {
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
    let told = |error: webshop_products::DataError| error.to_string();
    let catalog = Catalog::from_raw(data, Seed(0)).map_err(told)?;
    let goals = GoalSet::from_raw(data, &catalog, GoalKind::Both, Seed(0)).map_err(told)?;
    Ok(goals.fingerprint().to_owned())
}

/// Any bytes are a document with texts and legal moves, each move once, and every move can be said.
pub fn html(bytes: &[u8]) {
    let page = read_html(&String::from_utf8_lossy(bytes));
    let labels = &page.available_actions.clickables;
    assert!(
        labels.iter().enumerate().all(|(at, label)| !labels[..at].contains(label)),
        "a label comes twice"
    );
    for click in page.available_actions.clicks() {
        assert_eq!(Action::parse(&click.to_string(), Compat::Repaired), lower(&click));
    }
    assert!(page.nodes.is_empty() || page.text().len() >= page.nodes.len() - 1);
    assert!(page.text_rich().lines().count() >= usize::from(!page.nodes.is_empty()));
}

/// As a click is said: labels of radio inputs stand in the document as they stand.
fn lower(click: &Action) -> Action {
    match click {
        Action::Click(label) => Action::Click(label.to_lowercase()),
        other => other.clone(),
    }
}

/// A file of trips is judged or refused with a message; a trip that went as recorded is what was read of it.
pub fn replay(bytes: &[u8]) {
    match webshop_env::replay(bytes, &SHOP) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(replayed) => {
            // What lies behind the first difference was not read, and may be anything.
            let text = String::from_utf8_lossy(bytes);
            for line in text.lines().filter(|line| !line.trim().is_empty()).take(replayed.trips) {
                let trip = Trip::read(line).expect("it was read before");
                let again = serde_json::to_string(&trip).expect("a trip is data");
                assert_eq!(Trip::read(&again), Ok(trip));
            }
        }
    }
}

/// Lines that give trips are told as the original tells them, the same twice, or refused with a message; a trip has as
/// many steps as actions.
pub fn trace(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let given: Vec<GivenTrip> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let own_goals: Vec<GoalRecord> = given.iter().filter_map(|trip| trip.goal.clone()).collect();
    let mut world = ORIGINAL.0.clone();
    if let Err(error) = world.append(&own_goals) {
        return assert!(!error.to_string().is_empty());
    }
    let made_anew;
    let shop = match own_goals.is_empty() {
        true => &ORIGINAL.1,
        false => {
            made_anew = original_shop(world);
            &made_anew
        }
    };
    let n_goals = shop.goals().goals().len() - own_goals.len();
    let tell = || -> Vec<Result<String, String>> {
        let mut tracer = Tracer::new(shop, n_goals, ORIGINAL.0.random.clone(), 1);
        let tell = |trip: &GivenTrip| match tracer.trace(trip) {
            Ok(told) => {
                assert_eq!(told.steps.len(), trip.actions.len());
                Ok(serde_json::to_string(&told).expect("a trip is data"))
            }
            Err(error) => Err(error.to_string()),
        };
        given.iter().map(tell).collect()
    };
    assert_eq!(tell(), tell());
}
