//! Every input that the fuzzers start from, or ever found, is still handled: the corpora of `fuzz/` are played through
//! the functions that the fuzzers call.

#[expect(unreachable_pub, reason = "public in the crate of the fuzzers")]
#[path = "../../fuzz/src/lib.rs"]
mod fuzz;

use std::fs;
use std::path::{Path, PathBuf};

use rand::Rng;
use webshop_products::{Purpose, Seed};

/// So many alterations of each file are played too: a taste of what a fuzzer does.
const N_NEARBY: u64 = 30;

fn corpus(target: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries = fs::read_dir(dir).expect("every target has a corpus");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

/// Plays a target's corpus, and what lies near it; a panic of the target fails the test.
fn play(target: &str, function: fn(&[u8])) {
    let files = corpus(target);
    assert!(files.len() >= 10, "the corpus of `{target}` lacks files");
    for (at, file) in files.iter().enumerate() {
        let bytes = fs::read(file).expect("a corpus holds files");
        eprintln!("{}", file.display());
        function(&bytes);
        for nearby in 0..N_NEARBY {
            let mut rng = Seed(0).rng(Purpose::new("policy"), &[at as u64, nearby]);
            let bytes = altered(bytes.clone(), &mut rng);
            eprintln!("near it: {}", bytes.escape_ascii());
            function(&bytes);
        }
    }
}

/// The bytes with a few of them changed, left out, put in or doubled.
fn altered(mut bytes: Vec<u8>, rng: &mut impl Rng) -> Vec<u8> {
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..=bytes.len());
        let end = (at + rng.random_range(0..6)).min(bytes.len());
        let telling = b"[]{}\",:<>&/\\\0\n 0-.eE\xff";
        match rng.random_range(0..4) {
            0 => drop(bytes.drain(at..end)),
            1 => bytes.insert(at, telling[rng.random_range(0..telling.len())]),
            2 => bytes.splice(at..at, bytes[at..end].to_vec()).for_each(drop),
            _ => bytes.splice(at..end, [rng.random()]).for_each(drop),
        }
    }
    bytes
}

#[test]
fn any_text_is_an_action() {
    play("action", fuzz::action);
}

#[test]
fn any_file_is_a_catalog_or_refused() {
    play("catalog", fuzz::catalog);
}

#[test]
fn any_document_has_texts_and_actions() {
    play("html", fuzz::html);
}

#[test]
fn any_file_of_episodes_is_replayed_or_refused() {
    play("replay", fuzz::replay);
}

#[test]
fn any_lines_of_episodes_are_traced_or_refused() {
    play("trace", fuzz::trace);
}

#[test]
fn every_target_is_a_function_with_a_corpus() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).expect("a manifest");
    let manifest: toml::Table = manifest.parse().expect("which is TOML");
    let targets = manifest["bin"].as_array().expect("a list of targets").iter();
    let targets: Vec<&str> = targets.filter_map(|target| target["name"].as_str()).collect();
    assert_eq!(targets, ["action", "catalog", "html", "replay", "trace"]);
    for target in targets {
        let file = fs::read_to_string(fuzz.join(format!("fuzz_targets/{target}.rs"))).expect("its entry");
        assert!(file.contains(&format!("webshop_fuzz::{target}(bytes)")), "{file}");
    }
}
