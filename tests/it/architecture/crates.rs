//! Crates use each other in one direction, and some libraries in one place.

use toml::{Table, Value};

use super::source::{production_files, production_tokens};
use super::{CRATES, Crate, read, root};

/// Libraries that few crates may use in their own code: HTTP is for one on each side, tensors are for those that
/// compute.
const CONFINED: [(&str, &[&str]); 5] = [
    ("reqwest", &["webshop-remote"]),
    ("axum", &["webshop-serve"]),
    ("rmcp", &["webshop-serve"]),
    ("tokio", &["webshop-remote", "webshop-serve"]),
    ("candle-core", &["webshop-kernels", "webshop-lm", "webshop-agent", "webshop-training"]),
];

fn manifest(folder: &str) -> Table {
    read(&format!("{folder}/Cargo.toml")).parse().expect("a manifest")
}

/// Names of what the tables called `kind` of a manifest list, those of single targets too.
fn dependencies(manifest: &Table, kind: &str) -> Vec<String> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let of_targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let tables = std::iter::once(manifest).chain(of_targets);
    tables.filter_map(|table| table.get(kind)?.as_table()).flat_map(Table::keys).cloned().collect()
}

#[test]
fn crates_use_those_below_them_only() {
    for (rank, Crate { name, folder, uses }) in CRATES.iter().enumerate() {
        let manifest = manifest(folder);
        assert_eq!(manifest["package"]["name"].as_str(), Some(*name));
        let own = dependencies(&manifest, "dependencies");
        for used in own.iter().filter(|used| used.starts_with("webshop")) {
            assert!(uses.contains(&used.as_str()), "`{name}` uses `{used}`");
        }
        for (library, users) in CONFINED {
            let is_used = own.iter().any(|used| used == library);
            assert!(!is_used || users.contains(name), "`{name}` uses `{library}`");
        }
        let all = [own, dependencies(&manifest, "dev-dependencies")].concat();
        assert!(!all.is_empty() || rank == 0, "the dependencies of `{name}` were read");
        for above in &CRATES[rank..] {
            assert!(!all.iter().any(|used| used == above.name), "`{name}` uses `{}`", above.name);
        }
    }
}

#[test]
fn every_member_of_the_workspace_is_ranked() {
    let manifest = manifest(".");
    let members = manifest["workspace"]["members"].as_array().expect("a workspace");
    let mut members: Vec<&str> = members.iter().filter_map(Value::as_str).collect();
    let mut ranked: Vec<&str> =
        CRATES.iter().map(|krate| krate.folder).filter(|folder| *folder != ".").collect();
    members.sort_unstable();
    ranked.sort_unstable();
    assert_eq!(members, ranked);
}

#[test]
fn only_the_kernels_may_be_unsafe() {
    let lint = ["unsafe", "code"].join("_");
    let workspace = manifest(".");
    assert_eq!(workspace["workspace"]["lints"]["rust"][&lint].as_str(), Some("deny"));
    for Crate { name, folder, .. } in CRATES {
        let inherits = manifest(folder)["lints"]["workspace"].as_bool();
        assert_eq!(inherits, Some(true), "`{name}` has lints of its own");
        let forbids = read(&format!("{folder}/src/lib.rs")).contains(&format!("#![forbid({lint})]"));
        // The macros of PyO3 allow it for what they write, which a `forbid` would refuse.
        assert_eq!(forbids, !["webshop-kernels", "webshop-python"].contains(&name), "`{name}`");
    }
    let kernels = CRATES.iter().find(|krate| krate.name == "webshop-kernels").expect("ranked");
    let files = production_files(&root().join(kernels.folder));
    let is_unsafe = |token: &super::source::Token| token.text == "unsafe";
    assert!(
        files.iter().any(|file| production_tokens(file).iter().any(is_unsafe)),
        "a crate without a reason"
    );
}
