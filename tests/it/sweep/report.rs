//! The report of a comparison has the figures of its runs, and is made of whole runs only.

use std::fs;
use std::path::Path;

use serde_json::Value;
use webshop_report::write_comparison;
use webshop_training::sweep::ComparisonFolder;

use super::{REFERENCE, TWO, begin};
use crate::common::experiment::copy_folder;

#[test]
fn a_report_shows_the_measured_rates() {
    let root = REFERENCE.folder.root();
    let table = fs::read_to_string(root.join("table.md")).expect("the tables");
    let rows = |section: &str| -> Vec<Vec<&str>> {
        let (_, section) = table.split_once(section).unwrap_or_else(|| panic!("no {section}: {table}"));
        let lines = section.lines().skip(4).take_while(|line| line.starts_with('|'));
        lines.map(|line| line.trim_matches(['|', ' ']).split(" | ").collect()).collect()
    };
    let (results, failures) = (rows("## Held-out goals"), rows("## Outcomes of held-out episodes"));
    assert_eq!([results.len(), failures.len()], [2, 2], "two arms in two tables: {table}");
    // Success, then the four ways to fail: all episodes end in one of five ways.
    for row in &failures {
        let shares: Vec<f64> = row[1..].iter().map(|share| share.parse().expect("a number")).collect();
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 0.3, "{shares:?}");
    }
    assert_eq!((results[0][3], results[0].len()), ("baseline", 11));
    // The table has the success rates of the runs' own evaluations.
    let success = |arm: &str| {
        let of_run = |seed| {
            let summary =
                fs::read_to_string(REFERENCE.folder.run(arm, seed).join("summary.json")).expect("a summary");
            let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
            summary["learned"]["summary"]["success_rate"].as_f64().expect("a share")
        };
        format!("{:.1}", 50.0 * (of_run(0) + of_run(1)))
    };
    // An interval follows unless both seeds have the same.
    let shown = |row: &[&str]| row[1].split(' ').next().map(String::from);
    assert_eq!([shown(&results[0]), shown(&results[1])], ["apo", "wsft"].map(|arm| Some(success(arm))));
    assert!(table.contains("Judgements were made once"), "{table}");
    // Every run was judged on test goals and on goals of a shop of its own: two policies of each arm, two of their warm
    // start, nine without a model.
    for set in ["## Judgement on 6 test goals of the catalog", "## Judgement on 6 goals of a fresh shop"] {
        let judged = rows(set);
        let names: Vec<&str> = judged.iter().map(|row| row[0]).collect();
        assert_eq!(
            names[..6],
            ["apo", "apo (greedy)", "wsft", "wsft (greedy)", "warm start", "warm start (greedy)"]
        );
        assert_eq!((names.len(), names[14], judged[14][2]), (15, "oracle", "100.0, 100.0"));
    }
}

#[test]
fn a_report_is_of_whole_runs_that_began_alike() {
    let refusal = |change: &dyn Fn(&Path)| {
        let (keep, comparison, _) = begin(TWO);
        let folder = ComparisonFolder::new(&keep.path().join("copy"));
        copy_folder(REFERENCE.folder.root(), folder.root());
        change(&folder.run("wsft", 1));
        let error = write_comparison(&comparison, &folder).expect_err("refused").to_string();
        error.replace(&folder.root().display().to_string(), "OUT")
    };
    let reference = |seed| REFERENCE.folder.run("apo", seed).join("reference/model.safetensors");
    assert_eq!(
        refusal(&|run| {
            let file = run.join("judgement.json");
            let text = fs::read_to_string(&file).expect("a judgement");
            fs::write(&file, text.replace("\"shops\": 1", "\"shops\": 2")).expect("a written file");
        }),
        "`OUT/runs/wsft/seed-1` cannot be used: it was not judged on the goals of the other runs of its seed; set \
         `judgement` for all arms alike"
    );
    assert_eq!(
        refusal(&|run| fs::remove_file(run.join("summary.json")).expect("it was there")),
        "`OUT/runs/wsft/seed-1` cannot be used: the run has not come to its end"
    );
    assert_eq!(
        refusal(&|run| {
            fs::copy(reference(0), run.join("reference/model.safetensors")).expect("a copy");
        }),
        "`OUT/runs/wsft/seed-1` cannot be used: its warm start is not that of the other runs of its seed; remove it and \
         compare again"
    );
}

#[test]
fn the_first_arm_may_have_a_warm_start_of_its_own() {
    let apo = "[[arm]]\n    name = \"apo\"\n";
    assert!(TWO.contains(apo), "`{apo}` is there to be moved");
    let lone = TWO.replace(apo, "").replace("name = \"wsft\"", "name = \"wsft\"\n    alone = true");
    let (keep, comparison, _) = begin(&format!("{lone}\n    {apo}"));
    let folder = ComparisonFolder::new(&keep.path().join("copy"));
    copy_folder(REFERENCE.folder.root(), folder.root());
    // Of another seed, in a folder that has a folder.
    let reference = |arm, seed| folder.run(arm, seed).join("reference");
    fs::copy(reference("apo", 0).join("model.safetensors"), reference("wsft", 1).join("model.safetensors"))
        .expect("a copy");
    fs::create_dir(reference("wsft", 1).join("additional_chat_templates")).expect("a new folder");
    write_comparison(&comparison, &folder).expect("a report");
}

/// The lines of a file of JSON.
fn json_lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("a file");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Writes values as a file of JSON lines.
fn write_json_lines(file: &Path, values: &[Value]) {
    let lines: Vec<String> = values.iter().map(|value| format!("{value}\n")).collect();
    fs::write(file, lines.concat()).expect("a written file");
}

#[test]
fn the_table_of_seconds_has_the_success_when_the_shortest_run_ended() {
    let (keep, comparison, _) = begin(TWO);
    let folder = ComparisonFolder::new(&keep.path().join("copy"));
    copy_folder(REFERENCE.folder.root(), folder.root());
    // After a warm start of 100 seconds the runs take these, evenly, and gain one percent of success in each.
    let runs = [("apo", 0, 10.0, 0.0), ("apo", 1, 20.0, 0.0), ("wsft", 0, 30.0, 0.5), ("wsft", 1, 40.0, 0.5)];
    for (arm, seed, duration, at_first) in runs {
        let run = folder.run(arm, seed);
        let (mut timings, mut records) =
            (json_lines(&run.join("timings.jsonl")), json_lines(&run.join("metrics.jsonl")));
        let n_learning = timings.iter().filter(|timing| timing["phase"] == "learn").count();
        let n_before = timings.len() - n_learning;
        for (place, (timing, record)) in timings.iter_mut().zip(&mut records).enumerate() {
            let n_done = (place + 1).saturating_sub(n_before);
            let seconds = duration * n_done as f64 / n_learning as f64;
            timing["seconds"] = (100.0 + seconds).into();
            if let Some(success) = record.get_mut("eval/test/success_rate") {
                *success = (at_first + seconds / 100.0).into();
            }
        }
        write_json_lines(&run.join("timings.jsonl"), &timings);
        write_json_lines(&run.join("metrics.jsonl"), &records);
    }
    write_comparison(&comparison, &folder).expect("a report");
    let table = fs::read_to_string(folder.root().join("seconds.md")).expect("a table");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "| arm | seconds | success after 10 s, % |", "{table}");
    assert_eq!(lines[2..], ["| apo | 15 [10, 20] | 10.0 |", "| wsft | 35 [30, 40] | 60.0 |"], "{table}");
}
