//! Under `Compat::Original` the shop draws goals, finds products, shows pages and gives rewards as the original does.
//!
//! The recordings in `tests/data/parity` (its README says where they come from) are part of a larger one,
//! which holds real products too and cannot be committed. Where the environment variable `WEBSHOP_GOLDEN`
//! names the folder of the larger one, that is compared as well; otherwise standard error says that it was not.
//!
//! Everything is compared exactly, floats included.

mod episodes;

use crate::common::recordings::{Recordings, list, number, text, texts};
use serde_json::{Map, Value, json};
use webshop_env::{
    Action, COLORS, Collection, Compat, NoopReason, Shop, Tracer, VerboseInfo, analyze, normalize_color,
    stem, token_set_ratio,
};
use webshop_products::{
    GoalDraw, GoalRecord, GoalStyle, OriginalWorld, ProductIdx, RecordedOptions, Selection,
};
use webshop_pycompat::PythonRandom;

/// Checks the committed recordings, and the whole if it is there.
fn everywhere(check: impl Fn(&Recordings)) {
    check(&Recordings::committed());
    if let Some(whole) = Recordings::whole() {
        check(&whole);
    }
}

/// The catalog that a recording is about.
fn catalog_of(name: &str) -> &str {
    let mut parts = name.split('_').map(|part| part.trim_end_matches("1k"));
    parts.find(|part| ["synth", "real", "edge", "odd"].contains(part)).expect("recordings name their catalog")
}

fn style(name: &str) -> GoalStyle {
    if name.contains("human") { GoalStyle::Human } else { GoalStyle::Synthetic }
}

fn world(recordings: &Recordings, catalog: &str, style: GoalStyle) -> OriginalWorld {
    OriginalWorld::load(&recordings.catalog(catalog), style, 0).expect("sound products and goals")
}

/// The original's shop without a session, for searches and rewards.
fn shop(recordings: &Recordings, catalog: &str) -> Shop {
    let world = world(recordings, catalog, GoalStyle::Human);
    recordings.shop(catalog, world.catalog, world.goals, false)
}

#[test]
fn the_generator_is_cpythons() {
    everywhere(|recordings| {
        let vectors = recordings.whole_file("rng_vectors").expect("recorded everywhere");
        for (name, expected) in vectors.as_object().expect("a map") {
            if let Some(n) = name.strip_prefix("shuffle_233_") {
                let mut shuffled: Vec<usize> = (0..n.parse().expect("a count")).collect();
                PythonRandom::new(233).shuffle(&mut shuffled);
                assert_eq!(json!(shuffled), *expected, "{name}");
            }
        }
        let drawn = |n: usize, mut draw: Box<dyn FnMut(&mut PythonRandom) -> Value>| {
            let mut random = PythonRandom::new(0);
            Value::Array((0..n).map(|_| draw(&mut random)).collect())
        };
        let choose = |from: &'static [u32]| -> Box<dyn FnMut(&mut PythonRandom) -> Value> {
            Box::new(|random| {
                let sample = random.sample(from.len() as u32, 2).expect("enough to choose from");
                sample.into_iter().map(|at| from[at as usize]).collect()
            })
        };
        let cases = [
            ("seed0_random_20", drawn(20, Box::new(|random| json!(random.random())))),
            ("seed0_uniform(3.5,10.25)_20", drawn(20, Box::new(|random| json!(random.uniform(3.5, 10.25))))),
            ("seed0_sample([10,20,30,40],2)_50", drawn(50, choose(&[10, 20, 30, 40]))),
            ("seed0_sample([980,990],2)_20", drawn(20, choose(&[980, 990]))),
            ("seed0_choices_lowercase_k10_x10", drawn(10, Box::new(|random| json!(random.letters(10))))),
            ("seed0_getrandbits32_10", drawn(10, Box::new(|random| json!(random.bits(32))))),
            ("seed5_sample(range(1000),50)", json!(PythonRandom::new(5).sample(1000, 50))),
        ];
        for (name, ours) in cases {
            assert_eq!(ours, vectors[name], "{name}");
        }
        let recorded = &vectors["random_idx_seed0_cw_x30"];
        let sums: Vec<f64> = list(&recorded["cum_weights"]).iter().map(number).collect();
        let draw = GoalDraw::new(sums.windows(2).map(|pair| pair[1] - pair[0]));
        let goals = drawn(30, Box::new(move |random| json!(draw.goal(random))));
        assert_eq!(goals, recorded["idx"]);
    });
}

#[test]
fn prices_are_those_of_the_original() {
    everywhere(|recordings| {
        for name in recordings.set("product_prices_") {
            let recorded = recordings.whole_file(&name).expect("just found");
            let world = world(recordings, catalog_of(&name), GoalStyle::Human);
            let asins = world.catalog.products().iter().map(|product| product.id.to_string());
            let ours: Map<String, Value> =
                asins.zip(world.prices.iter().map(|&price| json!(price))).collect();
            let recorded = recorded["prices"].as_object().expect("a map");
            assert_eq!(ours.len(), recorded.len());
            for (asin, price) in recorded {
                assert_eq!(ours[asin].as_f64(), price.as_f64(), "{name}: {asin}");
            }
        }
    });
}

#[test]
fn goals_have_the_same_instructions_and_order() {
    everywhere(|recordings| {
        for name in recordings.set("goals_") {
            let world = world(recordings, catalog_of(&name), style(&name));
            let recorded = recordings.records(&name);
            for mut goal in recorded {
                let index = goal.as_object_mut().expect("a goal").shift_remove("idx").expect("its index");
                let ours = &world.goals.goals()[index.as_u64().expect("a number") as usize];
                assert_eq!(json!(GoalRecord::from(ours)).to_string(), goal.to_string(), "{name}: {index}");
            }
        }
    });
}

#[test]
fn queries_have_the_recorded_terms_and_results() {
    everywhere(|recordings| {
        for name in recordings.set("search_") {
            let shop = shop(recordings, catalog_of(&name));
            for record in recordings.records(&name) {
                let query = text(&record["q"]);
                if record.get("error").is_some() {
                    assert!(shop.try_search(query).is_err(), "{query:?}");
                    continue;
                }
                let terms = analyze(query);
                assert_eq!(terms, texts(&record["tokens"]), "terms of {query:?}");
                let hits = shop.search(query);
                let ids: Vec<&str> =
                    hits.iter().map(|hit| shop.catalog().get(hit.product).id.as_str()).collect();
                assert_eq!(ids, texts(&record["ids"]), "results for {query:?}");
                let scores: Vec<f64> = hits.iter().map(|hit| f64::from(hit.score)).collect();
                // The recording holds exact f32 values, so equality is meant.
                assert_eq!(json!(scores), record["raw_scores"], "scores for {query:?}");
                for (at, hit) in hits.iter().enumerate().step_by(10) {
                    let explanation = shop.explain(query, hit.product).expect("few terms");
                    assert_eq!((explanation.score, explanation.rank), (hit.score, Some(at + 1)), "{query:?}");
                }
            }
        }
    });
}

#[test]
fn index_statistics_are_those_of_the_original() {
    everywhere(|recordings| {
        for name in recordings.set("index_stats_") {
            let recorded = recordings.whole_file(&name).expect("just found");
            let shop = shop(recordings, catalog_of(&name));
            let explanation = shop.explain("lamp", ProductIdx(0)).expect("one term");
            let Collection { n_documents, average_len } = explanation.collection;
            assert_eq!(n_documents, recorded["docCount"], "{name}");
            assert_eq!(average_len, number(&recorded["avgdl_float"]) as f32, "{name}");
        }
    });
}

#[test]
fn rewards_are_those_of_the_original() {
    everywhere(|recordings| {
        for name in recordings.set("rewards_") {
            let shop = shop(recordings, catalog_of(&name));
            for record in recordings.records(&name) {
                let read = |field: &str| -> Value { record[field].clone() };
                let goal = json!({
                    "asin": read("goal_asin"), "query": read("goal_query"), "name": read("goal_name"),
                    "product_category": read("goal_product_category"), "attributes": read("attributes"),
                    "price_upper": read("price_upper"), "goal_options": read("goal_options"),
                });
                let goal: GoalRecord = serde_json::from_value(goal).expect("a goal");
                let product = shop.catalog().find(text(&record["purchased_asin"])).expect("a known product");
                let chosen: Selection = serde_json::from_value(read("options")).expect("choices");
                let goal = goal.to_goal_for(product, shop.catalog());
                let mut counts = shop.reward(&goal, product, &chosen);
                counts.price_ok = number(&record["price"]) <= number(&record["price_upper"]);
                assert_eq!(counts.attribute_matches, record["num_attr_matches"], "{record}");
                assert_eq!(counts.option_matches, record["num_option_matches"], "{record}");
                assert_eq!(json!(VerboseInfo::from(&counts)), record["info"], "{record}");
                assert_eq!(counts.total(), number(&record["reward"]), "{record}");
            }
        }
    });
}

#[test]
fn actions_are_parsed_as_in_the_original() {
    everywhere(|recordings| {
        for case in list(&recordings.whole_file("parse_action").expect("recorded everywhere")) {
            let (action, verb, argument) = (text(&case[0]), text(&case[1][0]), case[1][1].as_str());
            let expected = match (verb, argument.map(str::to_lowercase)) {
                (_, None) => Action::Noop(NoopReason::Malformed),
                ("search", Some(words)) => Action::Search(words),
                ("click", Some(label)) => Action::Click(label),
                (_, Some(_)) => Action::Noop(NoopReason::UnknownVerb),
            };
            assert_eq!(Action::parse(action, Compat::Original), expected, "{action:?}");
        }
    });
}

#[test]
fn texts_are_analyzed_and_compared_as_in_the_original() {
    everywhere(|recordings| {
        for line in recordings.lines("porter_vocab.tsv.gz") {
            let (word, stemmed) = line.split_once('\t').expect("a pair");
            assert_eq!(stem(word), stemmed, "{word}");
        }
        let stop_words = recordings.lines("lucene_stop_words.txt").collect::<Vec<_>>().join(" ");
        let is_stop_word = |word: &&str| stop_words.split_whitespace().any(|stop| stop == *word);
        for record in recordings.records("analyzer_raw_tokens") {
            let tokens = list(&record["tokens_types"]).iter().map(|pair| text(&pair[0]));
            let terms: Vec<String> = tokens.filter(|word| !is_stop_word(word)).map(stem).collect();
            assert_eq!(analyze(text(&record["text"])), terms, "{record}");
        }
        let all = |stem: &str| recordings.set(stem).into_iter().flat_map(|name| recordings.records(&name));
        for record in all("fuzz_token_set_ratio") {
            let ratio = token_set_ratio(text(&record[0]), text(&record[1]));
            assert_eq!(f64::from(ratio), number(&record[2]), "{record}");
        }
        for record in all("normalize_color") {
            assert_eq!(normalize_color(text(&record[0])), text(&record[1]), "{record}");
        }
        if let Some(colors) = recordings.whole_file("color_set") {
            assert_eq!(json!(COLORS.as_slice()), colors);
        }
    });
}
