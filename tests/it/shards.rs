//! A rollout in parts, merged, is the rollout: byte for byte, whatever the order of the parts and their number.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use webshop_agent::Episode;

use crate::common::command::{MODEL, answer, command, path, refusal, temporary};

/// Runs a rollout with further flags into `file`.
fn rollout(flags: &[&str], file: &Path) {
    answer(&[&["rollout", "--episodes", "11", "--json", "--out", path(file)], flags].concat());
}

/// The files of the parts, the last one first.
fn parts(flags: &[&str], n: usize, dir: &Path) -> Vec<PathBuf> {
    let part = |number: usize| {
        let file = dir.join(format!("{number}-of-{n}.jsonl"));
        rollout(&[flags, &["--shard", &format!("{number}/{n}")]].concat(), &file);
        file
    };
    (1..=n).rev().map(part).collect()
}

/// The command that merges `files` into `out`.
fn merge<'a>(files: &'a [PathBuf], out: &'a Path) -> Vec<&'a str> {
    let files = files.iter().map(|file| path(file));
    ["merge", "--episodes", "11", "--out", path(out)].into_iter().chain(files).collect()
}

#[test]
fn merged_parts_are_the_bytes_of_the_whole() {
    let model = ["--policy", "lm", "--checkpoint", path(MODEL.path()), "--constrained", "--max-steps", "3"];
    for flags in [&["--policy", "random", "--seed", "3"][..], &model] {
        let dir = temporary();
        let whole = dir.path().join("whole.jsonl");
        rollout(flags, &whole);
        let whole = fs::read(whole).expect("a file");
        for n in [1, 2, 4] {
            let files = parts(flags, n, dir.path());
            let out = dir.path().join(format!("merged-{n}.jsonl"));
            assert_eq!(answer(&merge(&files, &out)), format!("11 episodes of {n} files\n"));
            assert!(fs::read(&out).expect("a file") == whole, "{n} parts of {flags:?}");
            let in_order: Vec<u8> =
                files.iter().rev().flat_map(|file| fs::read(file).expect("a file")).collect();
            assert!(in_order == whole, "{n} parts one after another, {flags:?}");
        }
    }
}

#[test]
fn compressed_files_are_read_too() {
    let dir = temporary();
    let files = parts(&["--policy", "rule"], 2, dir.path());
    let compressed = |file: &PathBuf| {
        let to = file.with_extension("jsonl.gz");
        let mut encoder = GzEncoder::new(fs::File::create(&to).expect("a new file"), Compression::fast());
        encoder.write_all(&fs::read(file).expect("a file")).expect("a written file");
        encoder.finish().expect("a written file");
        to
    };
    let small: Vec<PathBuf> = files.iter().map(compressed).collect();
    let [whole, of_small] = ["whole.jsonl", "of-small.jsonl"].map(|name| dir.path().join(name));
    answer(&merge(&files, &whole));
    answer(&merge(&small, &of_small));
    assert!(fs::read(&whole).expect("a file") == fs::read(&of_small).expect("a file"));
    assert_eq!(answer(&["replay", path(&small[0])]), answer(&["replay", path(&files[0])]));
}

/// The file may have 25 KiB, which is the middle of an episode.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_whole_episodes() {
    let dir = temporary();
    let out = dir.path().join("out.jsonl");
    let rollout = command(&["rollout", "--policy", "rule", "--episodes", "50", "--out", path(&out)]);
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 50; exec \"$0\" \"$@\""]);
    limited.arg(rollout.get_program()).args(rollout.get_args());
    let output = limited.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("a shell");
    let message = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success() && message.contains("cannot write"), "{message}");
    let written = fs::read_to_string(&out).expect("a file");
    assert!(written.ends_with('\n') && written.lines().count() < 50, "{} bytes", written.len());
    for line in written.lines() {
        Episode::read(line).expect("a whole episode");
    }
}

#[test]
fn a_part_that_was_made_twice_counts_once() {
    let dir = temporary();
    let mut files = parts(&["--policy", "rule"], 2, dir.path());
    files.push(files[0].clone());
    let out = dir.path().join("out.jsonl");
    assert_eq!(answer(&merge(&files, &out)), "11 episodes of 3 files\n");
}

#[test]
fn what_is_no_rollout_is_refused_and_nothing_is_written() {
    let dir = temporary();
    let out = dir.path().join("out.jsonl");
    let files = parts(&["--policy", "random"], 2, dir.path());
    let check = |files: &[PathBuf], flags: &[&str], expected: &str| {
        let message = refusal(dir.path(), &[merge(files, &out), flags.to_vec()].concat(), "");
        assert!(message.contains(expected), "`{message}` does not say `{expected}`");
        assert!(!out.exists(), "{expected}");
    };
    check(&files[..1], &[], "5 of 11 episodes are in no file; the first is number 1, for goal ");
    check(
        &files,
        &["--catalog", "1000"],
        "`DIR/2-of-2.jsonl`, line 1: the episode was recorded in another shop",
    );
    check(&files, &["--split", "train"], " is not among the 11 episodes that the flags name");

    let other = dir.path().join("other");
    fs::create_dir(&other).expect("a new folder");
    let other = |name: &str, flags: &[&str]| {
        let file = other.join(name);
        rollout(flags, &file);
        [files[0].clone(), file]
    };
    let rule = other("rule.jsonl", &["--policy", "rule", "--shard", "1/2"]);
    check(&rule, &[], "the episode was made with another policy than the one in `DIR/2-of-2.jsonl`, line 1");
    let short = other("short.jsonl", &["--policy", "random", "--max-steps", "3", "--shard", "1/2"]);
    check(&short, &[], "with another step limit or observation than");
    let seed = other("seed.jsonl", &["--policy", "random", "--seed", "1", "--shard", "2/2"]);
    check(&seed, &[], "another episode for goal ");

    let torn = dir.path().join("torn.jsonl");
    fs::write(&torn, "{\"format\":").expect("a written file");
    check(&[torn], &[], "`DIR/torn.jsonl`, line 1: not a recorded episode");
    check(&[dir.path().join("none.jsonl")], &[], "cannot open `DIR/none.jsonl`");
    fs::write(&out, "").expect("a written file");
    let message = refusal(dir.path(), &merge(&files, &out), "");
    assert!(message.contains("`DIR/out.jsonl` already exists; name another file"), "{message}");
}

#[test]
fn recorded_episodes_are_evaluated_as_if_they_were_run() {
    let dir = temporary();
    let of_model = ["--checkpoint", path(MODEL.path()), "--constrained"];
    let (seed, steps) = (["--seed", "2"], ["--max-steps", "3"]);
    let made = [&["--policy", "lm"], &of_model[..], &seed, &steps].concat();
    let files = parts(&made, 3, dir.path());
    let eval = |flags: &[&[&'static str]]| -> Vec<String> {
        let flags = flags.concat();
        ["eval", "--episodes", "11"]
            .iter()
            .chain(&of_model)
            .chain(&flags)
            .map(|flag| flag.to_string())
            .collect()
    };
    let recorded =
        ["--recorded".to_owned()].into_iter().chain(files.iter().map(|file| path(file).to_owned()));
    let recorded: Vec<String> = recorded.collect();
    let text_of = |flags: Vec<String>, more: &[String]| {
        let flags = [flags, more.to_vec()].concat();
        answer(&flags.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let result = |more: &[String]| {
        let text = text_of(eval(&[&seed, &steps, &["--json"]]), more);
        let mut fields: serde_json::Value = serde_json::from_str(&text).expect("a JSON object");
        let seconds = fields.as_object_mut().expect("an object").remove("seconds");
        (fields, seconds.is_some())
    };
    let ((run, was_timed), (read, is_timed)) = (result(&[]), result(&recorded));
    assert_eq!(run, read);
    assert_eq!((was_timed, is_timed), (true, false));
    assert!(!text_of(eval(&[&seed, &steps]), &recorded).contains("seconds"));

    let refused = |flags: Vec<String>, files: &[String]| {
        let flags = [flags, files.to_vec()].concat();
        refusal(dir.path(), &flags.iter().map(String::as_str).collect::<Vec<_>>(), "")
    };
    for (flags, setting) in [
        ([&["--seed", "3"][..], &steps], "sampling, seed included,"),
        ([&["--seed", "2", "--temperature", "0.5"], &steps], "sampling, seed included,"),
        ([&seed[..], &["--max-steps", "4"]], "step limit"),
    ] {
        let message = refused(eval(&flags), &recorded);
        let expected = format!("the episodes were made with another {setting} than the flags name");
        assert!(message.contains(&expected), "`{message}` does not say `{expected}`");
    }
    let message = refused(eval(&[&seed, &steps]), &recorded[..2]);
    assert!(message.contains("of 11 episodes are in no file"), "{message}");
}

#[test]
fn a_part_without_episodes_is_refused() {
    let args = |shard| ["rollout", "--policy", "rule", "--episodes", "2", "--shard", shard];
    let dir = temporary();
    let message = refusal(dir.path(), &args("1/3"), "");
    assert!(message.contains("there is no episode in this part of 2; take fewer parts"), "{message}");
    let message = refusal(dir.path(), &args("4/3"), "");
    assert!(message.contains("a part is written I/N with I from 1 to N, such as 2/8"), "{message}");
}
