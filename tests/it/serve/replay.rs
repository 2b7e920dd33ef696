//! `/replay`: recorded episodes in a list with filters, and step by step.

use serde_json::{Value, json};
use webshop_agent::{Episode, EpisodeExt, FailureKind, OraclePolicy, RandomPolicy};
use webshop_env::{Session, read_html};
use webshop_products::Seed;
use webshop_serve::Recordings;

use super::openai::{MODEL, TOKENIZER, model_config};
use super::pages::{check_document, tags};
use crate::common::client::{SHOP, Served, config, served, served_with};
use crate::common::model::{local_episodes, tasks};

/// Episodes of two policies, with tokens in the first turn of the first.
fn episodes() -> Vec<Value> {
    let mut episodes = local_episodes(&tasks(&SHOP, 6), &mut OraclePolicy);
    episodes.extend(local_episodes(&tasks(&SHOP, 60), &mut RandomPolicy::new(Seed(5))));
    let mut lines: Vec<Value> =
        episodes.iter().map(|episode| serde_json::to_value(episode).expect("JSON")).collect();
    let turn = &mut lines[0]["turns"][0];
    turn["thought"] = "is <b>cheap</b>?".into();
    turn["tokens"] = json!({
        "context": "fresh", "prompt_ids": [1],
        "completion": {"ids": [41, 42], "log_probs": [0.0, -2.0], "entropy": [0.0, 1.0], "stop": "end_of_turn"},
    });
    lines
}

fn read(lines: &[Value]) -> Result<Recordings, String> {
    let text: String = lines.iter().map(|line| format!("{line}\n\n")).collect();
    let mut recordings = Recordings::default();
    let read = recordings.read(text.as_bytes(), |_| Ok(SHOP.clone()));
    read.map(|()| recordings).map_err(|error| error.to_string())
}

/// The numbers of the listed episodes, over all pages of the list.
fn listed(server: &Served, query: &str) -> Vec<usize> {
    let (mut path, mut numbers) = (format!("/replay{query}"), Vec::new());
    loop {
        let reply = server.get(&path);
        check_document(&reply, &path);
        let links = tags(&reply.body).filter_map(|tag| tag.strip_prefix("a href=\"/replay/"));
        numbers.extend(links.filter_map(|rest| rest.trim_end_matches('"').parse::<usize>().ok()));
        let Some(next) = tags(&reply.body).find(|tag| tag.contains("rel=\"next\"")) else { return numbers };
        let query = next.split('"').find(|part| part.starts_with('?')).expect("an address");
        path = format!("/replay{}", query.replace("&amp;", "&"));
    }
}

#[test]
fn the_list_is_newest_first_and_filtered() {
    let lines = episodes();
    let recordings = read(&lines).expect("episodes of this shop");
    let server = served_with(config(), |server| server.showing(recordings));
    let numbers = |admits: &dyn Fn(&Value) -> bool| -> Vec<usize> {
        lines.iter().enumerate().rev().filter(|(_, line)| admits(line)).map(|(number, _)| number).collect()
    };
    let reward = |line: &Value| line["reward"].as_f64().expect("a number");
    assert_eq!(listed(&server, ""), numbers(&|_| true));
    assert_eq!(listed(&server, "?policy=random"), numbers(&|line| line["policy"] == "random"));
    assert_eq!(listed(&server, "?success=no&policy="), numbers(&|line| reward(line) < 1.0));
    assert_eq!(listed(&server, "?success=yes&least=0.5"), numbers(&|line| reward(line) == 1.0));
    assert_eq!(listed(&server, "?least=0.25&success="), numbers(&|line| reward(line) >= 0.25));
    assert!(listed(&server, "?policy=nobody").is_empty());
    let kind = |line: &Value| FailureKind::of(&serde_json::from_value(line.clone()).expect("an episode"));
    let (mut n_kinds, mut n_failed) = (0, 0);
    for of in FailureKind::IN_SHOP {
        let name = serde_json::to_value(of).expect("JSON");
        let expected = numbers(&|line| kind(line) == Some(of));
        n_kinds += usize::from(!expected.is_empty());
        n_failed += expected.len();
        let name = name.as_str().expect("a name");
        assert_eq!(listed(&server, &format!("?failure={name}&least=0")), expected, "{name}");
    }
    assert!(n_kinds > 1, "the random policy fails in several ways");
    assert_eq!(n_failed, listed(&server, "?success=no").len());
    assert_eq!(listed(&server, "?goal=3"), numbers(&|line| line["goal"] == 3));
    let instruction = lines[4]["instruction"].as_str().expect("a text").to_uppercase();
    let words: Vec<&str> = instruction.split(' ').take(3).collect();
    let query = words.join("+").replace('\'', "%27").replace(',', "%2C");
    assert!(listed(&server, &format!("?goal={query}&failure=")).contains(&4), "{query}");
    assert!(listed(&server, "?goal=%3Cscript%3E").is_empty());
    for wrong in ["?success=perhaps", "?least=much", "?from=-1", "?failure=bad+luck"] {
        assert_eq!(server.get(&format!("/replay{wrong}")).status, 400, "{wrong}");
    }
    assert!(server.get("/").body.contains("Look at 66 recorded episodes"));
}

#[test]
fn every_step_shows_the_page_that_the_agent_read_and_what_it_did() {
    let lines = episodes();
    let recordings = read(&lines).expect("episodes of this shop");
    let server = served_with(config(), |server| server.showing(recordings));
    for (number, line) in lines.iter().enumerate().step_by(5) {
        let episode: Episode = serde_json::from_value(line.clone()).expect("an episode");
        let mut session = Session::start(episode.goal);
        for step in 0..=episode.turns.len() {
            let path = format!("/replay/{number}?step={step}");
            let reply = server.get(&path);
            check_document(&reply, &path);
            let current: Vec<&str> =
                tags(&reply.body).filter(|tag| tag.contains("aria-current=\"step\"")).collect();
            assert_eq!(current, [format!("a href=\"{path}\" aria-current=\"step\"")], "{path}");
            let texts = read_html(&reply.body).text();
            let page = session.page(&SHOP).text();
            assert!(texts.contains(&page), "{path}: {page} in {texts}");
            let frame = server.get(&format!("/replay/{number}/page/{step}"));
            check_document(&frame, &path);
            assert!(!frame.body.contains("<script") && !frame.body.contains("autofocus"), "{path}");
            assert!(read_html(&frame.body).text().starts_with(&page), "{path}");
            let Some(turn) = episode.turns.get(step) else { break };
            assert!(texts.contains(&turn.action.to_string()), "{path}");
            session.act(&SHOP, &turn.action);
        }
        let last = server.get(&format!("/replay/{number}?step={}", episode.turns.len())).body;
        let formula = episode.breakdown.map(|breakdown| format!("<code>{breakdown}</code>"));
        assert_eq!(formula.is_some_and(|formula| last.contains(&formula)), episode.terminated, "{last}");
        assert_eq!(episode.is_success(), last.contains("reward 1.0000"));
        assert_eq!(server.get(&format!("/replay/{number}.json")).json(), *line);
    }
    let first = server.get("/replay/0").body;
    assert!(first.contains("is &lt;b&gt;cheap&lt;/b&gt;?"), "{first}");
    // e^0 is 1, and e^-2 is 0.14.
    assert!(first.contains("<li class=\"shade-9\"><span>41</span> <b>0.000</b></li>"), "{first}");
    assert!(first.contains("<li class=\"shade-1\"><span>42</span> <b>−2.000</b></li>"), "{first}");
    assert!(first.contains("2 sampled tokens, log-probability −2.000"), "{first}");
    assert!(first.contains("Their texts are unknown") && first.contains("--model DIR"), "{first}");
}

#[test]
fn what_is_not_recorded_is_not_found() {
    let recordings = read(&episodes()[..1]).expect("an episode of this shop");
    let server = served_with(config(), |server| server.showing(recordings));
    for path in ["/replay/1", "/replay/x", "/replay/1.json", "/replay/0?step=99", "/replay/0/page/99"] {
        let reply = server.get(path);
        check_document(&reply, path);
        assert_eq!(reply.status, 404, "{path}");
    }
    let empty = served(config());
    let reply = empty.get("/replay");
    assert!(reply.status == 200 && reply.body.contains("--replay FILE"), "{reply:?}");
}

#[test]
fn a_line_that_cannot_be_shown_is_named() {
    let lines = episodes();
    let mut other = lines[1].clone();
    other["turns"][0]["action"] = "search[something else]".into();
    // Every second line is blank.
    let difference = read(&[lines[0].clone(), other.clone()]).expect_err("a difference");
    assert!(difference.starts_with("line 3: turn 1: `observation` is"), "{difference}");
    other["goal_fingerprint"] = "of another shop".into();
    let shop = read(&[other]).expect_err("another shop");
    assert!(shop.starts_with("line 1: the episode was recorded with the goals `of another shop`"), "{shop}");
}

#[test]
fn tokens_have_texts_if_the_served_model_spells_the_completion_with_them() {
    let mut lines = vec![episodes().swap_remove(0); 2];
    let mut ids = TOKENIZER.encode_text("<b>tea\n").expect("a text");
    ids.push(TOKENIZER.special_id("<|im_end|>").expect("a token of ChatML"));
    for (line, completion) in lines.iter_mut().zip(["<b>tea\n", "coffee"]) {
        let turn = &mut line["turns"][0];
        turn["completion"] = completion.into();
        let sampled = &mut turn["tokens"]["completion"];
        sampled["ids"] = ids.clone().into();
        sampled["log_probs"] = vec![-0.25; ids.len()].into();
        sampled["entropy"] = vec![0.0; ids.len()].into();
    }
    let recordings = read(&lines).expect("episodes of this shop");
    let model = model_config(&MODEL, &TOKENIZER);
    let server = served_with(config(), |server| {
        server.showing(recordings).serving(model).expect("a model that is served")
    });
    let shown = server.get("/replay/0");
    check_document(&shown, "/replay/0");
    let texts = tags(&shown.body).filter(|tag| *tag == "span class=\"text\"").count();
    assert_eq!(texts, ids.len(), "{}", shown.body);
    for text in ["&lt;", "↵", "&lt;|im_end|&gt;"] {
        assert!(shown.body.contains(&format!("{text}</span> <b>−0.250</b>")), "{text} in {}", shown.body);
    }
    let of_another = server.get("/replay/1").body;
    assert!(of_another.contains("Their texts are unknown"), "{of_another}");
}
