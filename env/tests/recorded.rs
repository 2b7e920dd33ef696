//! What the original WebShop answered, our `Compat::Original` shop answers too.
//!
//! The recordings in `data/synth` (its README says where they come from) cover analysis, search,
//! rewards, and whole trips. Prices are left out: the original draws what ranges cost, and the limits
//! in instructions, from a generator that is not imitated.

use flate2::read::GzDecoder;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use webshop_env::{Action, Compat, NounTable, Page, Session, Shop, ShopConfig, analyze};
use webshop_products::{
    Catalog, Cents, Goal, GoalId, GoalKind, GoalSet, GoalStyle, ProductIdx, RawData, Seed, Selection,
    WantedOption,
};

#[test]
fn queries_have_the_recorded_terms() {
    for record in records("search") {
        let query = text(&record["q"]);
        assert_eq!(analyze(query), texts(&record["tokens"]), "terms of {query:?}");
    }
}

#[test]
fn searches_find_the_recorded_products_with_the_recorded_scores() {
    let shop = shop();
    for record in records("search") {
        let query = text(&record["q"]);
        let hits = shop.search(query);
        let ids: Vec<&str> = hits.iter().map(|hit| id(&shop, hit.product)).collect();
        assert_eq!(ids, texts(&record["ids"]), "results for {query:?}");
        let scores = record["raw_scores"].as_array().expect("a list of scores");
        for (hit, score) in hits.iter().zip(scores) {
            // The recording holds exact f32 values, so equality is meant.
            assert_eq!(f64::from(hit.score), number(score), "score of a result for {query:?}");
        }
    }
}

#[test]
fn an_explanation_adds_up_to_the_score() {
    let shop = shop();
    for record in records("search").iter().step_by(10) {
        let query = text(&record["q"]);
        for (at, hit) in shop.search(query).into_iter().enumerate() {
            let explanation = shop.explain(query, hit.product).expect("few terms");
            assert_eq!(explanation.score, hit.score);
            assert_eq!(explanation.rank, Some(at + 1));
            // 996 of the 1,000 records have text; 52,797 terms in all.
            assert_eq!(explanation.collection.n_documents, 996);
            assert_eq!(explanation.collection.average_len, 53.009_037);
        }
    }
}

#[test]
fn purchases_are_worth_what_was_recorded() {
    let shop = shop();
    for record in records("rewards") {
        let product = shop.catalog().find(text(&record["purchased_asin"])).expect("a known product");
        let breakdown =
            shop.reward(&goal_of(&record, product, &shop), product, &selection(&record["options"]));
        let info = &record["info"];
        assert_eq!(breakdown.query_match, info["query_match"], "{record}");
        assert_eq!(breakdown.category_match, info["category_match"], "{record}");
        assert_eq!(breakdown.title_score(), number(&info["title_score"]), "{record}");
        assert_eq!(breakdown.r_type(), number(&info["r_type"]), "{record}");
        assert_eq!(breakdown.attribute_matches, record["num_attr_matches"], "{record}");
        assert_eq!(breakdown.option_matches, record["num_option_matches"], "{record}");
        assert_eq!(breakdown.total(), number(&record["reward"]), "{record}");
    }
}

#[test]
fn trips_show_the_recorded_pages() {
    let shop = shop();
    for record in records("episodes") {
        let goal = same_goal(&shop, &record["goal"]);
        let told = text(&record["goal"]["instruction_text"]);
        let mut session = Session::start(goal.id);
        for shown in record["pages"].as_array().expect("a list of pages") {
            if let Some(action) = shown.get("action") {
                session.act(&shop, &Action::parse(text(action), Compat::Original));
            }
            let page = session.page(&shop);
            let with_their_limit = |ours: String| ours.replace(&goal.instruction, told);
            let same = |ours: String, theirs: &Value| {
                let (ours, theirs) = (with_their_limit(ours), text(theirs));
                assert_eq!(without_reward(&page, &ours), without_reward(&page, theirs), "{shown}");
            };
            same(page.text(), &shown["text"]);
            same(page.text_rich(), &shown["text_rich"]);
            assert_eq!(page.url(text(&record["session"])), text(&shown["url"]));
            let available = page.available_actions();
            assert_eq!(available.clickables, texts(&shown["clickables"]), "{shown}");
            assert_eq!(available.has_search_bar, shown["has_search_bar"], "{shown}");
        }
    }
}

/// The receipt's text around the reward, which depends on a price limit drawn elsewhere.
fn without_reward(page: &Page, text: &str) -> (String, String) {
    let Page::Done(_) = page else {
        return (text.into(), String::new());
    };
    let (before, after) = text.split_once("max 1.0)").expect("a receipt names the greatest score");
    let details = after.find("Reward Details").expect("and announces details");
    (before.into(), after[details..].into())
}

/// Our goal with the same wishes and, but for the price, the same instruction.
fn same_goal<'a>(shop: &'a Shop, recorded: &Value) -> &'a Goal {
    let sentence = |text: &str| text.split(", and price lower than").next().map(str::to_owned);
    let mut wanted = wishes(&recorded["goal_options"]);
    wanted.sort_by(|a, b| a.name.cmp(&b.name));
    let is_same = |goal: &&Goal| {
        goal.asin.as_str() == text(&recorded["asin"])
            && goal.options == wanted
            && sentence(&goal.instruction) == sentence(text(&recorded["instruction_text"]))
    };
    shop.goals().goals().iter().find(is_same).expect("every recorded goal is ours too")
}

/// The recorded goal, with a price limit that gives the recorded answer about the price.
fn goal_of(record: &Value, product: ProductIdx, shop: &Shop) -> Goal {
    let sold = shop.catalog().get(product);
    let is_cheap = record["info"]["r_price"].as_bool().expect("a truth value");
    let limit = if is_cheap { sold.price.paid } else { Cents(sold.price.paid.0 - 1) };
    Goal {
        id: GoalId(0),
        product,
        asin: sold.id.clone(),
        department: String::new(),
        query: text(&record["goal_query"]).into(),
        title: text(&record["goal_name"]).into(),
        product_category: text(&record["goal_product_category"]).into(),
        instruction: String::new(),
        attributes: texts(&record["attributes"]).into_iter().map(str::to_owned).collect(),
        options: wishes(&record["goal_options"]),
        price_limit: Some(limit),
        weight: 1.0,
        style: GoalStyle::Synthetic,
    }
}

/// A list of values, or of pairs of name and value, or a map.
fn wishes(recorded: &Value) -> Vec<WantedOption> {
    let wish = |name: Option<&str>, value: &Value| WantedOption {
        name: name.map(str::to_owned),
        value: text(value).to_owned(),
    };
    match recorded {
        Value::Object(map) => map.iter().map(|(name, value)| wish(Some(name), value)).collect(),
        Value::Array(list) => list
            .iter()
            .map(|entry| match entry.as_array().map(Vec::as_slice) {
                Some([name, value]) => wish(Some(text(name)), value),
                _ => wish(None, entry),
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn selection(recorded: &Value) -> Selection {
    let chosen = recorded.as_object().expect("a map of choices");
    chosen.iter().map(|(name, value)| (name, text(value))).collect()
}

fn shop() -> Shop {
    let data = RawData::read_dir(&data_dir(), None).expect("the recorded catalog is sound");
    let catalog = Catalog::from_raw(&data, Seed(0)).expect("so are its products");
    let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Synthetic, Seed(0)).expect("and its goals");
    let nouns = records("title_nouns").into_iter().map(|record| {
        let nouns = texts(&record["nouns"]).into_iter().map(str::to_owned);
        (text(&record["name"]).to_owned(), nouns.collect())
    });
    let config = ShopConfig {
        compat: Compat::Original,
        nouns: NounTable::new(nouns.collect()),
        ..ShopConfig::default()
    };
    Shop::with_config(catalog, goals, config).expect("the shop opens")
}

fn data_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/synth")
}

fn records(name: &str) -> Vec<Value> {
    let file = File::open(data_dir().join(format!("{name}.jsonl.gz"))).expect("a committed file");
    let records: Vec<Value> = BufReader::new(GzDecoder::new(file))
        .lines()
        .map(|line| serde_json::from_str(&line.expect("UTF-8")).expect("JSON"))
        .collect();
    assert!(!records.is_empty(), "{name} holds no records");
    records
}

fn id(shop: &Shop, product: ProductIdx) -> &str {
    shop.catalog().get(product).id.as_str()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().expect("a list").iter().map(text).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}
