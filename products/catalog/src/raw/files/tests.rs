//! Reading, writing and error messages.

use std::fs::File;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use super::*;
use crate::{Seed, generate};

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

/// One product record.
fn item(asin: &str) -> String {
    format!(
        r#"{{"asin":"{asin}","name":"","category":"","query":"","product_category":"",
        "small_description":"","full_description":"","customization_options":"","images":["a"]}}"#
    )
}

/// Reads a folder that is whole but for its products, and gives the message without the path.
fn failure(items: &str) -> String {
    let dir =
        folder(&[("items_shuffle.json", items), ("items_ins_v2.json", "{}"), ("items_human_ins.json", "{}")]);
    let message = RawData::read_dir(dir.path(), None).unwrap_err().to_string();
    message.replace(&dir.path().display().to_string(), "")
}

#[test]
fn what_was_written_reads_back_equal() {
    for seed in 0..20 {
        let data = generate(Seed(seed), 3 * seed as usize);
        let dir = tempfile::tempdir().unwrap();
        data.write_dir(dir.path()).unwrap();
        assert_eq!(RawData::read_dir(dir.path(), None).unwrap(), data);
        let mut one = Vec::new();
        data.write_one(&mut one).unwrap();
        assert_eq!(serde_json::from_slice::<RawData>(&one).unwrap(), data);
    }
}

#[test]
fn gzipped_files_read_like_plain_ones() {
    let data = generate(Seed(0), 5);
    let dir = tempfile::tempdir().unwrap();
    data.write_dir(dir.path()).unwrap();
    for stem in [ITEMS, INSTRUCTIONS, HUMAN] {
        let uncompressed = dir.path().join(format!("{stem}.json"));
        let mut out = GzEncoder::new(
            File::create(uncompressed.with_extension("json.gz")).unwrap(),
            Compression::fast(),
        );
        out.write_all(&fs::read(&uncompressed).unwrap()).unwrap();
        out.finish().unwrap();
        fs::remove_file(uncompressed).unwrap();
    }
    assert_eq!(RawData::read_dir(dir.path(), None).unwrap(), data);
}

#[test]
fn a_limit_keeps_the_first_products_and_their_instructions() {
    let data = generate(Seed(0), 9);
    let dir = tempfile::tempdir().unwrap();
    data.write_dir(dir.path()).unwrap();
    let some = RawData::read_dir(dir.path(), Some(4)).unwrap();
    assert_eq!(some.items, data.items[..4]);
    assert!(some.human.keys().eq(some.items.iter().map(|item| &item.asin)));
    assert!(some.instructions.keys().eq(some.items.iter().map(|item| &item.asin)));
}

#[test]
fn of_the_originals_two_files_the_limit_chooses() {
    let (one, two) = (format!("[{}]", item("SHORT")), format!("[{}]", item("LONG")));
    let dir = folder(&[
        ("items_shuffle_1000.json", &one),
        ("items_shuffle.json", &two),
        ("items_ins_v2_1000.json", "{}"),
        ("items_ins_v2.json", "{}"),
        ("items_human_ins.json", "{}"),
    ]);
    for (limit, asin) in [(None, "LONG"), (Some(1_000), "SHORT"), (Some(1_001), "LONG")] {
        assert_eq!(RawData::read_dir(dir.path(), limit).unwrap().items[0].asin, asin);
    }
}

#[test]
fn writing_replaces_nothing() {
    let data = generate(Seed(0), 1);
    let dir = folder(&[("items_ins_v2.json", "mine")]);
    assert!(matches!(data.write_dir(dir.path()), Err(DataError::Exists { .. })));
    assert_eq!(fs::read(dir.path().join("items_ins_v2.json")).unwrap(), b"mine");
    assert!(!dir.path().join("items_shuffle.json").exists());
}

#[test]
fn a_bad_record_is_named_with_its_file_number_and_field() {
    let bad = item("B2").replace(r#""name":"""#, r#""name":7"#);
    assert_eq!(
        failure(&format!("[{},{bad}]", item("B1"))),
        "`/items_shuffle.json`, record 2 (`B2`): field `name`: invalid type: integer `7`, expected a string"
    );
}

#[test]
fn many_records_keep_their_order_and_their_numbers() {
    let mut items: Vec<String> = (0..600).map(|at| item(&format!("B{at}"))).collect();
    let dir = folder(&[
        ("items_shuffle.json", &format!("[{}]", items.join(","))),
        ("items_ins_v2.json", "{}"),
        ("items_human_ins.json", "{}"),
    ]);
    let read = RawData::read_dir(dir.path(), None).unwrap().items;
    assert!(read.iter().map(|item| item.asin.clone()).eq((0..600).map(|at| format!("B{at}"))));
    // The first error of the file is the one that is named, though the list is not closed either.
    items[519] = items[519].replace(r#""name":"""#, r#""name":7"#);
    let message = failure(&format!("[{}", items.join(",")));
    assert!(message.starts_with("`/items_shuffle.json`, record 520 (`B519`): field `name`"), "{message}");
}

#[test]
fn broken_json_is_named_with_its_line() {
    let message = failure("[\n{");
    assert!(message.starts_with("`/items_shuffle.json` is not valid JSON: EOF"), "{message}");
    assert!(message.ends_with("line 2 column 1"), "{message}");
    let message = failure(&format!("[\n{},\n{{\"asin\": tru}}]", item("B1")));
    assert!(message.contains("expected ident at line 4 column"), "{message}");
    let message = failure("7");
    assert!(message.contains("expected a list or an object of records"), "{message}");
}

#[test]
fn a_missing_file_is_named() {
    let dir = folder(&[("items_shuffle.json", "[]")]);
    let message = RawData::read_dir(dir.path(), None).unwrap_err().to_string();
    assert!(message.contains("holds no file `items_ins_v2*.json` or `items_ins_v2*.json.gz`; "), "{message}");
    let nowhere = dir.path().join("nowhere");
    assert!(matches!(RawData::read_dir(&nowhere, None), Err(DataError::Io { action: "read", .. })));
}

#[test]
fn a_bad_human_entry_is_named_with_its_place() {
    let human = r#"{"B1":[{"instruction":"i","instruction_attributes":[],"instruction_options":[3]}]}"#;
    let dir =
        folder(&[("items_shuffle.json", "[]"), ("items_ins_v2.json", "{}"), ("items_human_ins.json", human)]);
    let message = RawData::read_dir(dir.path(), None).unwrap_err().to_string();
    assert!(
        message.ends_with(
            "record 1 (`B1`): field `[0].instruction_options[0]`: invalid type: integer `3`, expected a string"
        ),
        "{message}"
    );
}

#[test]
fn dropped_records_are_counted_and_the_first_five_are_reported() {
    let priced =
        |asin: &str, price: &str| item(asin).replacen('{', &format!("{{\"pricing\":\"{price}\","), 1);
    // Sound: the first and the last, whose name the original skips before it looks at a price.
    let items = [
        priced("B1", "$5.00"),
        priced("B2", "cheap"),
        item("B3").replace("\"name\"", "\"title\""),
        item("B4").replace("\"images\":[\"a\"]", "\"images\":[]"),
        "7".to_owned(),
        priced("nan", "cheap"),
    ];
    let instructions =
        r#"{"B1":{"instruction":"a lamp","instruction_attributes":[]},"B2":{"attributes":["dim"]}}"#;
    let human = r#"{"B1":[{"instruction":"i","instruction_attributes":["dim"],"instruction_options":[3]}]}"#;
    let dir = folder(&[
        ("items_shuffle.json", &format!("[{}]", items.join(","))),
        ("items_ins_v2.json", instructions),
        ("items_human_ins.json", human),
    ]);
    let (data, skipped) = RawData::read_dir_skipping(dir.path(), None).unwrap();
    let names: Vec<_> = data.items.iter().map(|item| item.asin.as_str()).collect();
    assert_eq!((names, data.instructions.len(), data.human.len()), (vec!["B1", "nan"], 1, 0));
    let message = skipped.to_string().replace(&dir.path().display().to_string(), "");
    insta::assert_snapshot!(message, @"
    malformed records dropped: 6
      `/items_shuffle.json`, record 2 (`B2`): field `pricing`: `cheap` has no amount in dollars
      `/items_shuffle.json`, record 3 (`B3`): missing field `name`
      `/items_shuffle.json`, record 4 (`B4`): field `images`: invalid length 0, expected at least one image
      `/items_shuffle.json`, record 5 (`?`): invalid type: integer `7`, expected an object
      `/items_ins_v2.json`, record 1 (`B1`): field `instruction_attributes`: must not be empty
      and 1 more
    ");
    let catalog = crate::Catalog::from_raw(&data, Seed(0)).unwrap();
    crate::GoalSet::from_raw(&data, &catalog, crate::GoalKind::Both, Seed(0)).unwrap();
}
