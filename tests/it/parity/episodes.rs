//! Episodes: sessions, goals, pages and rewards after every action, and the commands that compute them line by line.

use std::io::{Seek, Write};
use std::process::Command;

use super::*;

#[test]
fn sessions_are_named_and_get_goals_as_in_the_original() {
    everywhere(|recordings| {
        for name in recordings.set("reset_sequence_") {
            let world = world(recordings, catalog_of(&name), style(&name));
            let (n_goals, random) = (world.goals.goals().len(), world.random);
            let shop = recordings.shop(catalog_of(&name), world.catalog, world.goals, false);
            let mut tracer = Tracer::new(&shop, n_goals, random, 0);
            for row in list(&recordings.whole_file(&name).expect("just found")["rows"]) {
                let traced =
                    tracer.trace(&serde_json::from_value(json!({})).expect("an episode")).expect("a goal");
                assert_eq!(json!([traced.session, traced.goal_idx]), *row, "{name}");
            }
        }
    });
}

#[test]
fn episodes_are_those_of_the_original() {
    everywhere(|recordings| {
        for name in recordings.set("episodes_") {
            let catalog = catalog_of(&name);
            let records = recordings.records(&name);
            let options =
                serde_json::from_value(records[0]["goal"]["goal_options"].clone()).expect("options");
            let is_human = matches!(options, RecordedOptions::Values(_));
            let style = if is_human { GoalStyle::Human } else { GoalStyle::Synthetic };
            let world = world(recordings, catalog, style);
            let (n_goals, random) = (world.goals.goals().len(), world.random);
            let shop = recordings.shop(catalog, world.catalog, world.goals, name.ends_with("showattrs"));
            let n_previous = if name.ends_with("prev2") { 2 } else { 0 };
            let mut tracer = Tracer::new(&shop, n_goals, random, n_previous);
            for record in records {
                let actions: Vec<&Value> =
                    list(&record["steps"]).iter().map(|step| &step["action"]).collect();
                let request = serde_json::from_value(request_of(&record, &actions)).expect("an episode");
                let traced = json!(tracer.trace(&request).expect("a goal"));
                for field in ["session", "goal", "instruction_text"] {
                    assert_eq!(traced[field], record[field], "{name}");
                }
                same_page(&traced["reset"], &record["reset"], &name);
                assert_eq!(list(&traced["steps"]).len(), actions.len(), "{name}");
                for (ours, theirs) in list(&traced["steps"]).iter().zip(list(&record["steps"])) {
                    // Where the original failed, the recording of the episode ends.
                    match theirs.get("error") {
                        Some(error) => {
                            assert!(ours["noop"].is_string(), "{name}: {error} after {}", theirs["action"])
                        }
                        None => same_page(ours, theirs, &name),
                    }
                }
            }
        }
    });
}

/// The request of a recorded episode: its session, its goal and its actions.
fn request_of(record: &Value, actions: &[&Value]) -> Value {
    let number = record["goal_idx"].to_string();
    let mut request = match record.get("asked") {
        Some(asked) => asked.clone(),
        // A session that is not named by a goal's number has its goal drawn.
        None if text(&record["session"]) == number => {
            json!({"session": record["session"], "goal_idx": record["goal_idx"]})
        }
        None => json!({"session": record["session"]}),
    };
    request["actions"] = json!(actions);
    request
}

#[test]
fn odd_actions_end_as_in_the_original() {
    let Some(whole) = Recordings::whole() else { return };
    let world = world(&whole, "real", GoalStyle::Synthetic);
    let (n_goals, random) = (world.goals.goals().len(), world.random);
    let shop = whole.shop("real", world.catalog, world.goals, false);
    let mut tracer = Tracer::new(&shop, n_goals, random, 0);
    let mut trace = |session: &str, seed: Option<u64>, actions: &[Value]| {
        let request = json!({"session": session, "seed": seed, "actions": actions});
        json!(tracer.trace(&serde_json::from_value(request).expect("an episode")).expect("a goal"))
    };
    // The first sessions, `c1` and `c2`, failed, and so did the first `c6`; each had drawn a goal.
    let failing = |action: &str| vec![json!(action)];
    trace("c1", None, &failing("search[<a> x]"));
    trace("c2", None, &failing("search[<c>]"));
    let probes = whole.whole_file("edge_behaviours").expect("recorded");
    for probe in list(&probes) {
        let recorded = probe["result"].as_array().filter(|steps| steps[0].is_object());
        let Some(recorded) = recorded else { continue };
        let session = text(&recorded[0]["url"]).split('/').nth(4).expect("an address names the session");
        if session == "c6b" {
            trace("c6", None, &[]);
        }
        let seed = text(&probe["case"]).contains("seeded 5").then_some(5);
        let actions: Vec<Value> = recorded.iter().map(|step| step["action"].clone()).collect();
        let traced = trace(session, seed, &actions);
        assert_eq!(list(&traced["steps"]).len(), recorded.len(), "{}", probe["case"]);
        for (ours, theirs) in list(&traced["steps"]).iter().zip(recorded) {
            for (field, recorded) in [("url", "url"), ("reward", "r"), ("done", "d")] {
                assert_eq!(ours[field], theirs[recorded], "{}: {}", probe["case"], theirs["action"]);
            }
            // The recording of these holds the beginnings of lists and texts only.
            let labels = list(&theirs["clickables"]);
            assert_eq!(list(&ours["clickables"])[..labels.len()], *labels, "{}", probe["case"]);
            let beginning: String = text(&ours["text"]).chars().take(300).collect();
            assert!([&json!(beginning), &ours["url"]].contains(&&theirs["obs"]), "{}: {ours}", probe["case"]);
        }
    }
}

/// The rows that a command of `webshop` writes for lines on standard input, under the original's rules over the committed catalog.
fn answers(command: &str, flags: &[&str], lines: &[Value]) -> Vec<Value> {
    let mut input = tempfile::tempfile().expect("a temporary file");
    for line in lines {
        writeln!(input, "{line}").expect("a written line");
    }
    input.rewind().expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_webshop"))
        .args([command, "--catalog", "tests/data/parity", "--compat", "original", "--no-cache"])
        .args(["--nouns", "tests/data/parity/title_nouns_synth.jsonl.gz"])
        .args(flags)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(input)
        .output()
        .expect("the binary starts");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    let answers = output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    answers.map(|line| serde_json::from_slice(line).expect("JSON")).collect()
}

#[test]
fn batches_of_lines_are_those_of_the_original() {
    let recordings = Recordings::committed();
    let queries = recordings.records("search_synth1k");
    let found = answers("search", &["--batch"], &queries);
    assert_eq!(found.len(), queries.len());
    for (ours, theirs) in found.iter().zip(&queries) {
        assert_eq!([&ours["q"], &ours["tokens"]], [&theirs["q"], &theirs["tokens"]]);
        assert_eq!([&ours["ids"], &ours["scores"]], [&theirs["ids"], &theirs["raw_scores"]]);
    }
    let purchases = recordings.records("rewards_synth");
    let explained = answers("explain", &["--batch"], &purchases);
    assert_eq!(explained.len(), purchases.len());
    for (ours, theirs) in explained.iter().zip(&purchases) {
        for (field, ours) in ours.as_object().expect("an object") {
            assert_eq!(*ours, theirs[field], "{field} of {theirs}");
        }
    }
    // Traced with the goals of the recorded episodes, instead of goals drawn here.
    let episodes = recordings.records("episodes_synth_prev2");
    let asked = episodes.iter().map(|episode| {
        let actions: Vec<&Value> = list(&episode["steps"]).iter().map(|step| &step["action"]).collect();
        json!({"session": episode["session"], "goal": episode["goal"], "actions": actions})
    });
    let traced = answers("trace", &["--prev", "2"], &asked.collect::<Vec<_>>());
    assert_eq!(traced.len(), episodes.len());
    for (ours, theirs) in traced.iter().zip(&episodes) {
        assert_eq!(list(&ours["steps"]).len(), list(&theirs["steps"]).len());
        for (ours, theirs) in list(&ours["steps"]).iter().zip(list(&theirs["steps"])) {
            same_page(ours, theirs, "episodes_synth_prev2");
        }
    }
}

/// Compares field by field, so that a difference is seen in the field that has it; the order of what is
/// chosen counts. Markup is left out, as ours is our own.
fn same_page(ours: &Value, theirs: &Value, name: &str) {
    let fields = theirs.as_object().expect("a page").iter();
    for (field, recorded) in fields.filter(|(field, _)| !field.starts_with("html")) {
        assert_eq!(ours[field], *recorded, "{name}: {field} after {}", theirs["action"]);
    }
    let order = |page: &Value| page["session"]["options"].to_string();
    assert_eq!(order(ours), order(theirs), "{name}");
}
