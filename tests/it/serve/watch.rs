//! `/watch`: training runs as they go, and their episodes in the viewer.

use std::fs;
use std::path::Path;

use serde_json::Value;
use webshop_agent::{Episode, OraclePolicy, RandomPolicy};
use webshop_env::{Session, read_html};
use webshop_lm::BpeTokenizer;
use webshop_products::Seed;
use webshop_training::metrics::{Metric, MetricsPosition, MetricsWriter, Phase, Record, Timing};
use webshop_training::{RunFolder, RunSummary};

use super::command::{Running, start};
use super::pages::{check_document, tags};
use crate::common::client::{SHOP, config, served};
use crate::common::command::{path, refusal, temporary};
use crate::common::model::{local_episodes, tasks};
use crate::watch::record_run;

fn watching(folders: &[&Path]) -> Running {
    let flags: Vec<&str> = folders.iter().flat_map(|folder| ["--watch", path(folder)]).collect();
    start(&flags, &[])
}

/// The page at an address, with this status.
fn page(running: &Running, path: &str, status: u16) -> String {
    let reply = running.server.get(path);
    check_document(&reply, path);
    assert_eq!(reply.status, status, "{path}: {reply:?}");
    reply.body
}

/// Whether a page loads itself again, by the script and without it.
fn is_live(page: &str) -> bool {
    let by_script = page.contains("<main class=\"watch\" data-live>");
    let alone = page.contains("<noscript><meta http-equiv=\"refresh\" content=\"10\"></noscript>");
    assert_eq!(by_script, alone, "{page}");
    by_script
}

/// Writes episodes of the configured shop, and half of one more.
fn write_episodes(run: &RunFolder, name: &str) -> Vec<Episode> {
    let mut episodes = local_episodes(&tasks(&SHOP, 3), &mut OraclePolicy);
    episodes.extend(local_episodes(&tasks(&SHOP, 12), &mut RandomPolicy::new(Seed(5))));
    let lines: Vec<String> =
        episodes.iter().map(|episode| serde_json::to_string(episode).expect("JSON")).collect();
    let text = format!("{}\n{}", lines.join("\n"), &lines[0][..99]);
    fs::write(run.episodes().join(name), text).expect("a written file");
    episodes
}

#[test]
fn a_run_is_shown_before_it_begins_while_it_goes_and_when_it_has_ended() {
    let dir = temporary();
    let root = dir.path().join("runs/<b> & \"one\"");
    let running = watching(&[&root]);
    let waiting = page(&running, "/watch", 200);
    assert!(is_live(&waiting) && waiting.contains("The run has not begun"), "{waiting}");
    assert!(waiting.contains("&lt;b&gt; &amp; &#34;one&#34;</h1>"), "{waiting}");

    // 20 steps of warm start, and 30 of 40 of RL.
    let run = record_run(&root, 50);
    let mut half = fs::read_to_string(run.metrics()).expect("records");
    half.push_str("{\"step\":51,\"phase\":\"le");
    fs::write(run.metrics(), half).expect("a written file");
    let going = page(&running, "/watch", 200);
    assert!(is_live(&going) && going.contains("A*-PO, seed 0 · in progress"), "{going}");
    for text in [
        "<progress max=\"20\" value=\"20\" aria-label=\"warm start\">",
        "<progress max=\"40\" value=\"30\" aria-label=\"A*-PO\">",
        "<dt>Phase</dt><dd><b>A*-PO</b> <span class=\"muted\">step 50 of 60</span></dd>",
        // (50 / 60)²
        "<dt>Success, held out</dt><dd><b>69.4 %</b>",
        "<dt>Score, held out</dt><dd><b>83.3 %</b>",
        "<dt>Success in training</dt><dd><b>83.3 %</b> <span class=\"muted\">step 50</span></dd>",
        "<dt>Time</dt><dd><b>50 s</b> <span class=\"muted\">last record ",
        // A step a second.
        "<dt>Time left</dt><dd><b>10 s</b>",
        "aria-label=\"Success and score over time\"",
        "aria-label=\"KL to the reference\"",
        "No held-out episode is recorded yet.",
    ] {
        assert!(going.contains(text), "{text} in {going}");
    }
    assert_eq!(page(&running, "/watch/0", 200).matches("<svg").count(), going.matches("<svg").count());
    let style = running.server.get("/assets/charts.css");
    assert_eq!((style.status, style.header("content-type")), (200, Some("text/css; charset=utf-8")));
    assert!(style.body.contains("svg .l0 {"), "{style:?}");
    assert!(page(&running, "/", 200).contains("href=\"/watch\""));

    fs::write(run.summary(), serde_json::to_string(&RunSummary::default()).expect("JSON")).expect("a file");
    let ended = page(&running, "/watch", 200);
    assert!(!is_live(&ended) && ended.contains("A*-PO, seed 0 · finished"), "{ended}");
    assert!(!ended.contains("Time left") && !ended.contains("last record"), "{ended}");
}

#[test]
fn an_evaluation_has_its_interval() {
    let dir = temporary();
    let run = record_run(dir.path(), 0);
    let position = MetricsPosition { records: 1, timings: 1, events: 0 };
    let mut writer = MetricsWriter::open(run.root(), "validation", position).expect("a run");
    let mut record = Record::new(Phase::WarmStart, 10);
    record
        .set(Metric::EvalSuccessRate, 0.5)
        .set(Metric::EvalSuccessLow, 0.25)
        .set(Metric::EvalSuccessHigh, 0.755);
    writer.write(&record, &Timing::new(record.phase, record.step, 3661.0)).expect("written lines");
    let shown = page(&watching(&[dir.path()]), "/watch", 200);
    let figure = "<b>50.0 %</b> <span class=\"muted\">25.0 to 75.5 %, step 10</span>";
    assert!(shown.contains(figure) && shown.contains("<b>1 h 1 min</b>"), "{shown}");
}

#[test]
fn the_episodes_of_a_run_lead_into_the_viewer() {
    let dir = temporary();
    let run = record_run(dir.path(), 10);
    write_episodes(&run, "step-000000.jsonl");
    let mut episodes = write_episodes(&run, "step-000010.jsonl");
    let running = watching(&[dir.path()]);
    let shown = page(&running, "/watch", 200);
    let links = |document: &str, begin: &str| -> Vec<String> {
        let anchors = tags(document).filter(|tag| tag.starts_with("a "));
        let links = anchors.filter_map(|tag| tag.split_once("href=\"")?.1.split('"').next());
        links.filter_map(|link| link.strip_prefix(begin)).map(str::to_owned).collect()
    };
    let base = "/watch/0/episodes/step-000010";
    let first: Vec<String> = (0..10).map(|index| index.to_string()).collect();
    assert_eq!(links(&shown, &format!("{base}/")), first, "the newest file's first ones");
    assert!(links(&shown, "/watch/0/episodes/").contains(&"step-000000".to_owned()), "{shown}");
    // What is half written is left out.
    let listed = |query: &str| links(&page(&running, &format!("{base}{query}"), 200), &format!("{base}/"));
    assert_eq!(listed("").len(), episodes.len());
    assert_eq!(listed("?success=yes").len(), episodes.iter().filter(|episode| episode.reward == 1.0).count());
    assert_eq!(listed("?goal=2&policy=oracle"), ["2"]);
    for (index, episode) in episodes.iter().enumerate().step_by(4) {
        let mut session = Session::start(episode.goal);
        for step in 0..=episode.turns.len() {
            let path = format!("{base}/{index}?step={step}");
            let shown = page(&running, &path, 200);
            let text = session.page(&SHOP).text();
            assert!(read_html(&shown).text().contains(&text), "{path}: {text} in {shown}");
            let frame = format!("{base}/{index}/page/{step}");
            assert!(shown.contains(&format!("src=\"{frame}\"")), "{path}");
            assert!(read_html(&page(&running, &frame, 200)).text().starts_with(&text), "{path}");
            let Some(turn) = episode.turns.get(step) else { break };
            session.act(&SHOP, &turn.action);
        }
        let recorded: Value = running.server.get(&format!("{base}/{index}.json")).json();
        assert_eq!(recorded, serde_json::to_value(episode).expect("JSON"));
    }
    let last = episodes.len() - 1;
    let beside = |index: usize| {
        let mut links = links(&page(&running, &format!("{base}/{index}"), 200), &format!("{base}/"));
        // Those to the episode's own steps.
        links.retain(|link| !link.contains("?step="));
        links
    };
    assert_eq!(beside(0), ["1".to_owned(), "0.json".to_owned()]);
    assert_eq!(beside(last), [(last - 1).to_string(), format!("{last}.json")]);
    for missing in [
        format!("{base}/{}", last + 1),
        format!("{base}/x"),
        format!("{base}/-1"),
        format!("{base}/0?step=99"),
        format!("{base}/0/page/99"),
        "/watch/0/episodes/step-000020".to_owned(),
        "/watch/0/episodes/..%2Fmetrics".to_owned(),
        "/watch/0/episodes/..%2Fmetrics/0".to_owned(),
        "/watch/1".to_owned(),
        "/watch/x".to_owned(),
    ] {
        page(&running, &missing, 404);
    }
    // Texts come with the tokenizer of a checkpoint.
    let tokenizer = BpeTokenizer::train_like_qwen(["a lamp", "the lamp"], 300).expect("it trains");
    let ids = tokenizer.encode_text("a lamp").expect("a text");
    let turn = &mut episodes[0].turns[0].agent;
    turn.completion = Some("a lamp".to_owned());
    let n_tokens = ids.len();
    let tokens = serde_json::json!({
        "context": "fresh", "prompt_ids": [1],
        "completion": {"ids": ids, "log_probs": vec![-1.0; n_tokens], "entropy": vec![0.0; n_tokens], "stop": "end_of_turn"},
    });
    turn.tokens = Some(serde_json::from_value(tokens).expect("tokens"));
    let line = serde_json::to_string(&episodes[0]).expect("JSON") + "\n";
    fs::write(run.episodes().join("step-000020.jsonl"), line).expect("a written file");
    let newest = "/watch/0/episodes/step-000020/0";
    assert!(page(&running, newest, 200).contains("Their texts are unknown"));
    fs::create_dir_all(run.last_model()).expect("a folder");
    tokenizer.save(&run.last_model()).expect("a written file");
    let texts = page(&running, newest, 200);
    assert!(texts.contains("<span class=\"text\"> lamp</span> <b>−1.000</b>"), "{texts}");
}

#[test]
fn a_file_that_is_broken_is_named_and_read_again() {
    let dir = temporary();
    let run = record_run(dir.path(), 10);
    let running = watching(&[dir.path()]);
    let records = fs::read_to_string(run.metrics()).expect("records");
    fs::write(run.metrics(), "no record\n".to_owned() + &records).expect("a written file");
    let broken = page(&running, "/watch", 500);
    assert!(is_live(&broken) && broken.contains("role=\"alert\""), "{broken}");
    assert!(broken.contains("metrics.jsonl` cannot be used"), "{broken}");
    fs::write(run.metrics(), &records).expect("a written file");
    page(&running, "/watch", 200);

    let episodes = write_episodes(&run, "step-000010.jsonl");
    let file = run.episodes().join("step-000010.jsonl");
    let base = "/watch/0/episodes/step-000010";
    let other =
        serde_json::to_string(&episodes[0]).expect("JSON").replace(SHOP.goals().fingerprint(), "another");
    fs::write(&file, format!("{other}\n<b>\n")).expect("a written file");
    let shown = page(&running, "/watch", 200);
    assert!(shown.contains("role=\"alert\"") && shown.contains("step-000010.jsonl`: line 2: "), "{shown}");
    assert!(page(&running, base, 500).contains("line 2: "));
    let of_another = page(&running, &format!("{base}/0"), 500);
    assert!(of_another.contains("line 1: the episode was recorded with the goals `another`"), "{of_another}");
}

#[test]
fn several_runs_and_those_of_comparisons_have_a_list() {
    let dir = temporary();
    let (one, to_come, comparison) =
        (dir.path().join("one"), dir.path().join("to come"), dir.path().join("comparison"));
    record_run(&one, 10);
    record_run(&comparison.join("runs/apo/seed-0"), 30);
    let running = watching(&[&one, &to_come, &comparison]);
    let listed = page(&running, "/watch", 200);
    assert!(is_live(&listed) && listed.contains("not begun"), "{listed}");
    let links = |listed: &str| tags(listed).filter(|tag| tag.starts_with("a href=\"/watch/")).count();
    assert_eq!(links(&listed), 3, "{listed}");
    assert!(page(&running, "/watch/2", 200).contains("step 30 of 60"));
    // A run keeps its number when others begin.
    record_run(&comparison.join("runs/a/seed-0"), 40);
    assert_eq!(links(&page(&running, "/watch", 200)), 4);
    assert!(page(&running, "/watch/2", 200).contains("step 30 of 60"));
    let newest = page(&running, "/watch/3", 200);
    assert!(newest.contains("step 40 of 60") && newest.contains("All 4 runs"), "{newest}");
}

#[test]
fn a_folder_of_other_things_is_refused_at_the_start() {
    let dir = temporary();
    fs::write(dir.path().join("notes.txt"), "").expect("a written file");
    let message = |folder: &str| refusal(dir.path(), &["serve", "--port", "0", "--watch", folder], "");
    let of_folder = message(path(dir.path()));
    assert!(of_folder.contains("holds neither a run of `webshop train` nor a comparison"), "{of_folder}");
    let of_file = message(path(&dir.path().join("notes.txt")));
    assert!(of_file.contains("notes.txt` cannot be used"), "{of_file}");
    fs::write(dir.path().join("config.toml"), "no_such_key = 1").expect("a written file");
    let of_config = message(path(dir.path()));
    assert!(of_config.contains("no_such_key"), "{of_config}");
}

#[test]
fn a_server_without_runs_says_how_to_watch_one() {
    let server = served(config());
    let reply = server.get("/watch");
    check_document(&reply, "/watch");
    assert!(reply.status == 200 && reply.body.contains("--watch DIR"), "{reply:?}");
    for missing in ["/watch/0", "/watch/0/episodes/step-000000", "/assets/charts.css"] {
        assert_eq!(server.get(missing).status, 404, "{missing}");
    }
    assert!(!server.get("/").body.contains("/watch"));
}
