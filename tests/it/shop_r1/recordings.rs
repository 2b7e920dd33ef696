//! Recordings of people: logs of the original's site, imitation data and chats become examples of next actions.

use std::fs;
use std::path::Path;

use crate::common::command::{CORNER_SHOP, answer, path, temporary};
use crate::common::in_area;
use serde_json::{Value, json};

use super::data::{all_done, data};
use webshop_agent::{next_action::Example, next_action::ExampleSource};

const TEA: &str =
    "my aunt cannot have sugar, so i am after a sugar free green tea, ideally the creme brulee one";

/// A line of the log of the original's site.
fn opened(page: &str, instruction: &str, content: &Value) -> Value {
    let goal =
        json!({ "asin": "B0TEA00001", "instruction_text": instruction, "goal_options": [], "weight": 1.0 });
    json!({ "page": page, "url": format!("http://127.0.0.1:3000/{page}/x"), "goal": goal, "content": content })
}

/// Writes a session's log into a folder.
fn log(dir: &Path, name: &str, lines: &[Value]) {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(dir.join(name), lines.join("\n")).expect("a written log");
}

#[test]
fn logs_of_the_original_site_are_read() {
    let dir = temporary();
    let instruction = format!("{TEA}, and price lower than 40.00 dollars");
    let found = json!({ "keywords": ["green", "tea"], "search_result_asins": ["B0TEA00001"], "page": 1 });
    let item = |options| json!({ "keywords": ["green", "tea"], "page": 1, "asin": "B0TEA00001", "options": options });
    let open = |page, content: &Value| opened(page, &instruction, content);
    let mut texts = open("item_sub_page", &item(json!({})));
    texts["url"] = "http://127.0.0.1:3000/item_sub_page/x/B0TEA00001/['green', 'tea']/1/Features/{}".into();
    let whole = [
        open("index", &Value::Null),
        open("search_results", &found),
        open("search_results", &found),
        open("item_page", &item(json!({}))),
        texts,
        open("item_page", &item(json!({}))),
        open("item_page", &item(json!({ "flavor": "crème brûlée" }))),
        open("done", &json!({ "asin": "B0TEA00001", "options": {}, "price": 5.0 })),
        open("index", &Value::Null),
    ];
    let whole = whole.map(|mut line| {
        if line["content"].is_null() {
            line.as_object_mut().expect("an object").remove("content");
        }
        line
    });
    log(dir.path(), "a.jsonl", &whole);
    log(dir.path(), "b.jsonl", &[whole[0].clone(), whole[3].clone()]);
    let unknown = [opened("index", "a kite", &json!({})), opened("search_results", "a kite", &found)];
    log(dir.path(), "c.jsonl", &unknown);
    let mut elsewhere = whole[3].clone();
    elsewhere["content"]["asin"] = "B0KITE0001".into();
    log(dir.path(), "d.jsonl", &[whole[0].clone(), whole[1].clone(), elsewhere]);
    let flags = ["--from", "human", "--input", path(dir.path()), "--catalog", CORNER_SHOP, "--split", "all"];
    let (made, printed) = data(&[&flags[..], &["--terminate-share", "0"]].concat());
    let expected = [
        "human-10-0 search green tea",
        "human-10-1 b0tea00001",
        "human-10-2 features",
        "human-10-3 < prev",
        "human-10-4 crème brûlée",
        "human-10-5 buy now",
    ];
    assert_eq!(all_done(&made), expected);
    let printed = printed.replace(path(dir.path()), "DIR");
    in_area("cli", || insta::assert_snapshot!("shop_r1_data_of_logs", printed));
}

#[test]
fn recordings_at_other_shops_keep_their_own_pages() {
    let dir = temporary();
    let file = dir.path().join("people.jsonl");
    let kite = "Instruction:\nfind me a red kite, and price lower than 30.00 dollars\n";
    let imitation = json!({
        "states": [
            format!("Amazon Shopping Game\n{kite}[button] Search [button_]\n"),
            format!("{kite}[button] Back to Search [button_]\nPage 1 (Total results: 50)\n[button] Next > [button_]\n\n\
                     [button] B07KITE001 [button_]\nKite, Red\n$20.00\n"),
            format!("{kite}[button] Back to Search [button_]\n[button] < Prev [button_]\ncolor\n  [button] red [button_]\n\
                     Kite, Red\nPrice: $20.00\nRating: N.A.\n[button] Buy Now [button_]\n"),
            "Thank you for shopping with us!",
        ],
        "actions": ["search[red kite]", "click[item - kite, red]", "click[red]"],
        "available_actions": [[], [], []],
    });
    fs::write(&file, imitation.to_string()).expect("a written file");
    let flags = |file| ["--from", "human", "--input", file, "--split", "all", "--terminate-share", "0"];
    let (made, _) = data(&flags(path(&file)));
    let expected =
        ["human-people:1-0 search red kite", "human-people:1-1 b07kite001", "human-people:1-2 red"];
    assert_eq!(all_done(&made), expected);
    assert_eq!((made[2].goal, made[2].rationale.as_str()), (None, "I choose red."));
    let option = "<p>color</p>\n<option name=\"red\">\n<p>Kite, Red</p>\n";
    assert!(made[2].page.contains(option), "{}", made[2].page);

    let head = "Instruction: [SEP] find me a red kite [SEP] Back to Search";
    let said = |from: &str, value: &str| json!({ "from": from, "loss": null, "value": value });
    let chat = json!([{ "item_id": "webshop_6", "conversations": [
        said("human", "You are web shopping."),
        said("gpt", "Ok."),
        said("human", "WebShop [SEP] Instruction: [SEP] find me a red kite [SEP] Search"),
        said("gpt", "Thought:\nI need a kite.\n\nAction:\nsearch[red kite]"),
        said("human", &format!("{head} [SEP] Page 1 (Total results: 50) [SEP] Next > [SEP] B07KITE001 [SEP] Kite [SEP] $9")),
        said("gpt", "Thought:\n\n\nAction:\nclick[B07KITE001]"),
    ] }]);
    let list = dir.path().join("list.json");
    fs::write(&list, serde_json::to_string_pretty(&chat).expect("JSON")).expect("a written file");
    let (chatted, _) = data(&flags(path(&list)));
    assert_eq!(all_done(&chatted), ["human-list:1-0 search red kite", "human-list:1-1 b07kite001"]);
    let reasons: Vec<&str> = chatted.iter().map(|sample| sample.rationale.as_str()).collect();
    assert_eq!(reasons, ["I need a kite.", "I look at this one."]);
    assert_eq!(chatted[0].split, made[0].split, "one instruction is in one split, whatever its price limit");
}

#[test]
fn chats_about_this_shop_are_replayed_in_it() {
    let dir = temporary();
    let [episodes, chats] = ["episodes.jsonl", "chats.jsonl"].map(|name| dir.path().join(name));
    let shop = ["--catalog", CORNER_SHOP];
    let rollout = ["rollout", "--policy", "oracle", "--split", "all", "--out", path(&episodes)];
    answer(&[&rollout, &shop[..]].concat());
    let convert = ["--to", "agenttraj", "--prompt-format", "agentgym-react", "--out", path(&chats)];
    answer(&[&["convert", path(&episodes)], &convert[..], &shop].concat());
    let flags = ["--split", "all", "--terminate-share", "0", "--catalog", CORNER_SHOP];
    let (there, _) = data(&[&["--from", "episodes", "--input", path(&episodes)], &flags[..]].concat());
    let (back, _) = data(&[&["--from", "human", "--input", path(&chats)], &flags[..]].concat());
    let as_human = |sample: &Example| Example {
        id: sample.id.replacen("policy", "human", 1),
        source: ExampleSource::Human,
        ..sample.clone()
    };
    assert_eq!(back, there.iter().map(as_human).collect::<Vec<_>>());
}
