//! Single steps are made of episodes, of recordings in each of the formats in use, and of pages to terminate on; and files
//! of steps are checked field by field.

use std::collections::BTreeMap;
use std::fs;

use crate::common::command::{CORNER_SHOP, answer, path, temporary, webshop};
use crate::common::corner_shop::{corner_shop, goal};
use crate::common::in_area;
use serde_json::{Value, json};
use webshop_agent::{
    next_action::ActionType, next_action::BuyNowAs, next_action::Example, next_action::ExampleOptions,
    next_action::ExampleSource, next_action::NextAction, next_action::examples_of,
    next_action::terminate_example,
};
use webshop_env::{Action, Shop};
use webshop_products::{GoalId, ProductIdx};
use webshop_training::config::CatalogConfig;
use webshop_training::open_shop;

const ABOUT: ExampleOptions<'_> =
    ExampleOptions { source: ExampleSource::Policy, split: "train", buy_now_as: BuyNowAs::Click };

fn embedded() -> Shop {
    open_shop(&CatalogConfig { source: "100".into(), ..CatalogConfig::default() }).expect("the shop opens")
}

fn tea(shop: &Shop) -> GoalId {
    shop.goals().goals().iter().find(|goal| goal.asin.as_str() == "B0TEA00001").expect("a goal for tea").id
}

fn steps(said: &[&str]) -> Vec<(String, Action)> {
    said.iter().map(|said| (String::new(), said.parse().unwrap_or_else(|never| match never {}))).collect()
}

fn samples(lines: &str) -> Vec<Example> {
    lines.lines().map(|line| serde_json::from_str(line).expect("a sample")).collect()
}

/// The action of an example in short.
fn done(sample: &Example) -> String {
    match &sample.action {
        NextAction::Click { name } => format!("{} {name}", sample.id),
        NextAction::TypeAndSubmit { text, .. } => format!("{} search {text}", sample.id),
        NextAction::Terminate {} => format!("{} leave", sample.id),
    }
}

pub(super) fn all_done(samples: &[Example]) -> Vec<String> {
    samples.iter().map(done).collect()
}

/// The samples that `data` writes with these flags, and the table.
pub(super) fn data(flags: &[&str]) -> (Vec<Example>, String) {
    let answer = webshop(&[&["shop-r1", "data"], flags].concat(), "");
    assert_eq!(answer.code, Some(0), "{flags:?}: {}", answer.stderr);
    (samples(&answer.stdout), answer.stderr)
}

#[test]
fn each_step_of_an_episode_is_an_example_if_its_action_is_available() {
    let shop = corner_shop();
    let tea = tea(&shop);
    let said = [
        "search[green tea]",
        "click[no such thing]",
        "search[sugar free green tea]",
        "click[b0tea00001]",
        "click[crème brûlée]",
        "click[buy now]",
        "click[buy now]",
    ];
    let made = examples_of(&shop, tea, &steps(&said), ABOUT);
    let id = |step: usize| format!("policy-{}-{step}", tea.0);
    // Step 1 is no available action, step 2 has no search bar, and step 6 is behind the purchase.
    let expected = ["search green tea", "b0tea00001", "crème brûlée", "buy now"];
    let expected: Vec<String> =
        [0, 3, 4, 5].into_iter().zip(expected).map(|(at, done)| format!("{} {done}", id(at))).collect();
    assert_eq!(all_done(&made), expected);
    let last = &made[3];
    assert_eq!((last.step, last.context.len(), last.rationale.as_str()), (5, 5, "I buy it."));
    assert_eq!(last.context[1].action, None, "an unavailable action is left out of the context");
    let search = last.context[2].action.as_ref().map(NextAction::action_type);
    assert_eq!(
        search,
        Some(ActionType::TypeAndSubmit),
        "an action is in the context though it makes no example"
    );
    assert!(last.page.contains("<option name=\"crème brûlée\" clicked>"), "{}", last.page);
    let about = ExampleOptions { buy_now_as: BuyNowAs::Terminate, ..ABOUT };
    let made = examples_of(&shop, tea, &steps(&said), about);
    assert_eq!(made[3].action, NextAction::Terminate {});
}

#[test]
fn a_terminate_example_lists_nothing_worth_buying() {
    let shop = corner_shop();
    let (tea, sheet) = (tea(&shop), goal(&shop, "B0SHEET001", &["twin [38x75]"]).id);
    // The sheets alone are listed. Their title shares no noun with the tea's, so that the reward's factor is 0.
    let example = terminate_example(&shop, tea, sheet, ABOUT).expect("a terminate example");
    assert_eq!(example.page.matches("<a name=").count(), 1, "{}", example.page);
    assert_eq!(done(&example), format!("terminate-{}-{}-1 leave", tea.0, sheet.0));
    assert_eq!((example.source, example.context.len()), (ExampleSource::Terminate, 1));
    assert_eq!(example.rationale, "I find nothing that I want.");
    assert_eq!(terminate_example(&shop, tea, tea, ABOUT), None, "the wanted product is listed");
    // Sneakers without laces earn more than a tenth of a goal for some with: the kind is right.
    let [laced, plain] =
        [["white", "8"], ["white", "9"]].map(|options| goal(&shop, "B0SNEAK001", &options).id);
    assert_eq!(terminate_example(&shop, laced, plain, ABOUT), None);
    let shop = embedded();
    let goals = shop.goals().goals();
    let coat = goals.iter().find(|goal| &*goal.query == "women's winter coat").expect("a goal for a coat");
    let searches: Vec<GoalId> = goals.iter().map(|goal| goal.id).filter(|other| *other != coat.id).collect();
    let pages: Vec<String> = searches
        .into_iter()
        .filter_map(|other| terminate_example(&shop, coat.id, other, ABOUT))
        .map(|example| example.page)
        .collect();
    // Most searches for something else list no coat, and some find products whose titles share a noun with one.
    assert!(pages.len() > 10 && pages.len() < goals.len() - 10, "{} of {}", pages.len(), goals.len());
    for (at, product) in shop.catalog().products().iter().enumerate() {
        let is_listed = |page: &&String| page.contains(&product.id.as_str().to_lowercase());
        let n_listed = pages.iter().filter(is_listed).count();
        let worth = shop.best_purchase_of(coat, ProductIdx(at as u32)).breakdown.total();
        assert!(n_listed == 0 || worth < 0.1, "{}: {worth} on {n_listed} pages", product.title);
    }
    assert_eq!(terminate_example(&shop, coat.id, coat.id, ABOUT), None);
}

#[test]
fn data_is_the_same_every_time_and_checks_out() {
    let dir = temporary();
    let mut written = Vec::new();
    for (name, threads) in [("one", "1"), ("two", "2")] {
        let file = dir.path().join(name);
        let flags = ["shop-r1", "data", "--episodes", "30", "--threads", threads, "--out", path(&file)];
        let table = answer(&flags);
        assert_eq!(answer(&["shop-r1", "validate", path(&file)]), counts_of(&table));
        written.push(fs::read_to_string(&file).expect("samples"));
    }
    assert_eq!(written[0], written[1]);
    let made = samples(&written[0]);
    let n_terminate = made.iter().filter(|sample| sample.source == ExampleSource::Terminate).count();
    // A tenth of all, to the nearest whole sample.
    assert_eq!(n_terminate, ((made.len() - n_terminate) as f64 / 9.0).round() as usize);
    assert!(made.iter().all(|sample| sample.split == "train" && !sample.rationale.is_empty()));
    let (elsewhere, _) = data(&["--episodes", "30", "--split", "test"]);
    assert!(!elsewhere.is_empty() && elsewhere.iter().all(|sample| sample.split == "test"));
}

/// The rows of the table that `validate` prints too.
fn counts_of(table: &str) -> String {
    table.lines().filter(|line| !line.starts_with("left out")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_models_rationale_is_taken_where_its_action_is_the_recorded_one() {
    let (before, _) = data(&["--episodes", "4"]);
    let answers = |step: &Example| {
        // The first step for a reason of its own, the second done otherwise, the others not readable.
        let (rationale, action) = match step.step {
            0 => ("I ask for it.", step.action.clone()),
            1 => ("I leave.", NextAction::Terminate {}),
            _ => {
                return json!({ "id": step.id, "ground_truth": step.action, "completion": "hm" }).to_string();
            }
        };
        let completion = json!({ "rationale": rationale, "action": action }).to_string();
        json!({ "id": step.id, "ground_truth": step.action, "completion": completion }).to_string()
    };
    let dir = temporary();
    let file = dir.path().join("answers.jsonl");
    fs::write(&file, before.iter().map(|step| answers(step) + "\n").collect::<String>())
        .expect("a written file");
    let (after, printed) = data(&["--episodes", "4", "--rationales", path(&file)]);
    assert_eq!(before.len(), after.len());
    let n_first = before.iter().filter(|step| step.step == 0).count();
    // A terminate example is the second step of its session, and its action is right.
    let n_terminate = before.iter().filter(|step| step.source == ExampleSource::Terminate).count();
    let n = n_first + n_terminate;
    assert!(printed.contains(&format!("rationales by a model: {n} of {}", before.len())), "{printed}");
    for (before, after) in before.iter().zip(&after) {
        let expected = match (before.step, before.source) {
            (0, _) => "I ask for it.",
            (_, ExampleSource::Terminate) => "I leave.",
            _ => &before.rationale,
        };
        assert_eq!(after.rationale, expected, "{}", after.id);
        let recalled = after.context.first().map(|step| step.rationale.as_str());
        let asked = before.source == ExampleSource::Demonstration && before.step > 0;
        assert!(!asked || recalled == Some("I ask for it."), "{}: {recalled:?}", after.id);
        let without =
            |sample: &Example| Example { rationale: String::new(), context: Vec::new(), ..sample.clone() };
        assert_eq!(without(before), without(after));
    }
}

#[test]
fn the_papers_mix_has_its_proportions() {
    let (made, _) = data(&["--from", "oracle", "--mix", "paper", "--episodes", "60"]);
    let mut counts: BTreeMap<ActionType, usize> = BTreeMap::new();
    made.iter().for_each(|sample| *counts.entry(sample.action.action_type()).or_default() += 1);
    // There are 60 searches, so that all others are 60/677 of the paper's 690 and 512, but for rounding.
    let [clicks, searches, terminations] = ActionType::ALL.map(|kind| counts[&kind]);
    assert!((59..=60).contains(&searches), "{searches}");
    assert!((60..=61).contains(&clicks) && (44..=45).contains(&terminations), "{clicks} and {terminations}");
}

#[test]
fn only_successful_recorded_episodes_are_taken() {
    let dir = temporary();
    let file = dir.path().join("episodes.jsonl");
    let flags = ["--catalog", CORNER_SHOP, "--split", "all"];
    let [oracle, rule] = ["oracle", "rule"].map(|policy| {
        let out = dir.path().join(policy);
        answer(&[&["rollout", "--policy", policy, "--out", path(&out)], &flags[..]].concat());
        fs::read_to_string(&out).expect("episodes")
    });
    let again = oracle.lines().next().expect("an episode");
    fs::write(&file, format!("{oracle}{rule}{again}\n")).expect("a written file");
    let recorded = ["--from", "episodes", "--input", path(&file), "--terminate-share", "0"];
    let (made, printed) = data(&[&recorded, &flags[..]].concat());
    let began: Vec<&str> =
        made.iter().filter(|sample| sample.step == 0).map(|sample| sample.id.as_str()).collect();
    // All 17 of the oracle, and one of them again. The rule agent buys the first result without options, which never succeeds.
    assert_eq!(began.len(), 18, "{printed}");
    assert!(
        printed.contains("\nleft out: 17 episodes, because the reward is below 1 (the first: line 18)"),
        "{printed}"
    );
    let goal = made[0].goal.expect("a goal of this shop");
    assert_eq!([began[0], began[17]], [format!("policy-{goal}-0"), format!("policy-{goal}.2-0")]);
    let (few, _) = data(&[&recorded, &flags[..], &["--episodes", "3"]].concat());
    assert_eq!(few.iter().filter(|sample| sample.step == 0).count(), 3);
}

#[test]
fn each_problem_of_an_example_is_named() {
    let door = "<p>a lamp</p>\n<input name=\"search_input\">\n";
    let lamp = "<button name=\"< prev\">\n<option name=\"24&quot; inch\">\n";
    let search = json!({ "type": "type_and_submit", "name": "search_input", "text": "lamp" });
    let good = json!({
        "id": "a-1", "source": "human", "split": "train", "goal": 7, "step": 1,
        "context": [{ "page": door, "action": search }], "page": lamp, "rationale": "It fits.",
        "action": { "type": "click", "name": "24\" inch" },
    });
    let with = |id: &str, changes: &[(&str, Value)]| {
        let mut row = good.clone();
        row["id"] = id.into();
        changes.iter().for_each(|(field, value)| row[*field] = value.clone());
        row.to_string()
    };
    let mut incomplete = good.clone();
    incomplete.as_object_mut().expect("an object").retain(|field, _| field != "goal" && field != "page");
    let click = |name: &str| json!({ "type": "click", "name": name });
    let rows = [
        good.to_string(),
        String::new(),
        with("no-reason", &[("rationale", "".into())]),
        "{\"id\": ".into(),
        "[]".into(),
        incomplete.to_string(),
        with("mood", &[("mood", 1.into())]),
        with("split", &[("split", "test".into())]),
        with("dev", &[("split", "dev".into()), ("goal", 8.into())]),
        with("red", &[("action", click("red"))]),
        with("field", &[("action", search.clone())]),
        with("bare", &[("action", json!({ "type": "terminate", "name": "x" }))]),
        with("scroll", &[("action", json!({ "type": "scroll" }))]),
        with("nobody", &[("source", "nobody".into()), ("goal", (-1).into())]),
        with("long", &[("step", 0.into())]),
        with("short", &[("step", 2.into())]),
        with("broken", &[("context", json!([{ "page": door, "action": null }, { "page": 1 }]))]),
        // A cut context, and terminate, which needs nothing on the page.
        with("cut", &[("step", 9.into()), ("context", json!([{ "page": lamp, "action": null }]))]),
        with("left", &[("action", json!({ "type": "terminate" }))]),
    ];
    let dir = temporary();
    let file = dir.path().join("samples.jsonl");
    fs::write(&file, rows.join("\n")).expect("a written file");
    let answered = webshop(&["shop-r1", "validate", path(&file)], "");
    assert_eq!((answered.code, answered.stderr.as_str()), (Some(1), ""));
    let printed = answered.stdout.replace(path(&file), "FILE");
    in_area("cli", || insta::assert_snapshot!("shop_r1_validate_problems", printed));
    let sound = [&rows[0], &rows[2], &rows[17], &rows[18]].map(String::as_str);
    fs::write(&file, sound.join("\n")).expect("a written file");
    in_area("cli", || {
        insta::assert_snapshot!("shop_r1_validate", answer(&["shop-r1", "validate", path(&file)]));
    });
}
