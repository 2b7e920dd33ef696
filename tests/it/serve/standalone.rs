//! `webshop replay --html`: the episodes as one document without a server.

use std::collections::BTreeSet;
use std::fs;

use webshop_agent::{Episode, OraclePolicy, RandomPolicy};
use webshop_env::{Session, read_html};
use webshop_products::Seed;
use webshop_serve::Recordings;

use super::pages::tags;
use crate::common::client::SHOP;
use crate::common::command::{CORNER_SHOP, MODEL, answer, edit, path, refusal, temporary, webshop};
use crate::common::model::{local_episodes, tasks};

/// The document of episodes.
fn document(episodes: &[Episode]) -> String {
    let lines: String =
        episodes.iter().map(|episode| serde_json::to_string(episode).expect("JSON") + "\n").collect();
    let mut recordings = Recordings::default();
    recordings.read(lines.as_bytes(), |_| Ok(SHOP.clone())).expect("episodes of this shop");
    recordings.to_html(None)
}

/// Episodes of two policies, one with a text that looks like tags.
fn episodes() -> Vec<Episode> {
    let mut episodes = local_episodes(&tasks(&SHOP, 4), &mut OraclePolicy);
    episodes.extend(local_episodes(&tasks(&SHOP, 4), &mut RandomPolicy::new(Seed(5))));
    episodes[0].turns[0].agent.thought = Some("</script></template><b>cheap</b>?".into());
    episodes
}

/// The part of a document that the fragment `#/number?step=step` shows.
fn section(document: &str, number: usize, step: usize) -> &str {
    let begin = format!("<section class=\"replay\" id=\"/{number}?step={step}\"");
    let (_, rest) = document.split_once(&begin).unwrap_or_else(|| panic!("no step {step} of {number}"));
    rest.split("<section class=\"replay\"").next().expect("a part")
}

#[test]
fn every_step_is_there_without_a_server_or_a_script() {
    let episodes = episodes();
    let document = document(&episodes);
    for (number, episode) in episodes.iter().enumerate() {
        let mut session = Session::start(episode.goal);
        for step in 0..=episode.turns.len() {
            let section = section(&document, number, step);
            let page = session.page(&SHOP).text();
            let (before, rest) = section.split_once("<template ").expect("a page");
            let (template, after) = rest.split_once("</template>").expect("an end");
            let (_, shown) = template.split_once('>').expect("the end of a tag");
            assert!(read_html(shown).text().starts_with(&page), "{page}: {shown}");
            // Without scripts a template is not shown; what the agent read is.
            assert!(read_html(after).text().contains(&page), "{page} in {after}");
            assert!(
                before.contains(&format!("href=\"#/{number}?step={step}\" aria-current=\"step\"")),
                "{before}"
            );
            let Some(turn) = episode.turns.get(step) else { break };
            assert!(read_html(before).text().contains(&turn.action.to_string()), "{before}");
            session.act(&SHOP, &turn.action);
        }
    }
    assert!(document.contains("&lt;/script&gt;&lt;/template&gt;&lt;b&gt;cheap&lt;/b&gt;?"));
}

#[test]
fn every_link_leads_to_a_part_of_the_document() {
    let document = document(&episodes());
    let ids: BTreeSet<&str> =
        tags(&document).filter_map(|tag| tag.split(" id=\"").nth(1)?.split('"').next()).collect();
    let mut n_links = 0;
    for tag in tags(&document).filter(|tag| tag.starts_with("a ")) {
        // The products of a page that is shown have no links.
        let Some(address) = tag.split("href=\"").nth(1).and_then(|rest| rest.split('"').next()) else {
            continue;
        };
        let fragment = address.strip_prefix('#').unwrap_or_else(|| panic!("{address} leads elsewhere"));
        assert!(fragment.is_empty() || ids.contains(fragment), "{address}");
        n_links += 1;
    }
    assert!(n_links > 100, "{n_links}");
}

#[test]
fn nothing_is_fetched() {
    let document = document(&episodes());
    let policy = "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                  base-uri 'none'; form-action 'none'\"";
    assert!(document.contains(policy));
    for tag in tags(&document) {
        let is_of_a_number = |rest: &str| {
            let value = rest.split('"').next().expect("a value");
            value.parse::<usize>().is_ok()
        };
        let is_inside = tag.split(" src=\"").skip(1).all(is_of_a_number);
        assert!(is_inside && !tag.starts_with("iframe") && !tag.contains(" on"), "{tag}");
        assert!(!tag.starts_with("link") || tag.contains(" href=\"data:image/svg+xml,"), "{tag}");
    }
    let (_, data) = document.split_once("<script type=\"application/json\" id=\"data\">").expect("data");
    let data = data.split("</script>").next().expect("an end");
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    let pictures = data["pictures"].as_array().expect("a list");
    assert!(pictures.iter().all(|picture| picture.as_str().is_some_and(|svg| svg.starts_with("<svg "))));
    let used: BTreeSet<&str> =
        document.split(" src=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(used.len(), pictures.len(), "each drawing is there once");
    assert_eq!(data["episodes"].as_array().map(Vec::len), Some(8));
}

#[test]
fn the_command_writes_the_page_of_a_recording_once() {
    let dir = temporary();
    let [file, page] = ["rule.jsonl", "page.html"].map(|name| dir.path().join(name));
    let shop = ["--catalog", CORNER_SHOP];
    let rollout = ["rollout", "--policy", "rule", "--split", "all", "--episodes", "3", "--out", path(&file)];
    answer(&[&rollout[..], &shop].concat());
    let replay = [&["replay", path(&file), "--html", path(&page)][..], &shop].concat();
    let with_model = [&replay[..], &["--model", path(MODEL.path())]].concat();
    let replayed = answer(&with_model);
    assert!(replayed.contains("no difference") && replayed.ends_with("page.html\n"), "{replayed}");
    let written = fs::read_to_string(&page).expect("a page");
    assert!(written.starts_with("<!doctype html>") && written.contains("id=\"/2?step=0\""), "{written}");
    let again = refusal(dir.path(), &replay, "");
    assert!(again.contains("`DIR/page.html` already exists; name another file with `--html`"), "{again}");
    assert_eq!(fs::read_to_string(&page).expect("a page"), written);
}

#[test]
fn nothing_is_written_of_what_cannot_be_shown() {
    let dir = temporary();
    let [file, page] = ["rule.jsonl", "page.html"].map(|name| dir.path().join(name));
    let shop = ["--catalog", CORNER_SHOP];
    let rollout = ["rollout", "--policy", "rule", "--split", "all", "--episodes", "2", "--out", path(&file)];
    answer(&[&rollout[..], &shop].concat());
    let refused = |file: &str, page: &str, shop: &[&str]| {
        refusal(dir.path(), &[&["replay", file, "--html", page], shop].concat(), "")
    };
    let missing = refused("missing.jsonl", path(&page), &shop);
    assert!(missing.contains("cannot open `missing.jsonl`"), "{missing}");
    let other_shop = refused(path(&file), path(&page), &["--catalog", "100"]);
    assert!(other_shop.contains("line 1: the episode was recorded with the goals"), "{other_shop}");
    let nowhere = dir.path().join("nowhere/page.html");
    let no_folder = refused(path(&file), path(&nowhere), &shop);
    assert!(no_folder.contains("DIR/nowhere/page.html"), "{no_folder}");
    let lines = fs::read_to_string(&file).expect("a text");
    fs::write(&file, format!("{lines}{{}}\n")).expect("written");
    let malformed = refused(path(&file), path(&page), &shop);
    assert!(malformed.contains("line 3: "), "{malformed}");
    fs::write(&file, "\n").expect("written");
    let empty = refused(path(&file), path(&page), &shop);
    assert!(empty.contains("`DIR/rule.jsonl`: the file has no episodes"), "{empty}");
    // A difference is exit code 1, and not shown.
    fs::write(&file, &lines).expect("written");
    edit(&file, "click[buy now]", "click[description]");
    let differs = webshop(&[&["replay", path(&file), "--html", path(&page)][..], &shop].concat(), "");
    assert_eq!(differs.code, Some(1), "{}", differs.stderr);
    let left: Vec<_> =
        fs::read_dir(dir.path()).expect("a folder").map(|entry| entry.expect("a file").file_name()).collect();
    assert_eq!(left, ["rule.jsonl"]);
}
