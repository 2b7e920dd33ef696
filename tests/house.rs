//! The house keeps its order: no crate looks up, and what the README says to run is what is run.

use std::fs;
use std::path::Path;

use toml::{Table, Value};

/// The crates from the ground up. Each may use those before it.
const ROOMS: [(&str, &str); 5] = [
    ("webshop-products", "products"),
    ("webshop-env", "env"),
    ("webshop-agent", "agent"),
    ("webshop-training", "training"),
    ("webshop", "."),
];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names of everything a manifest depends on, for whatever purpose and target.
fn dependencies(table: &Table) -> Vec<String> {
    let mut names = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) if key.ends_with("dependencies") => names.extend(inner.keys().cloned()),
            Value::Table(inner) if key != "workspace" => names.extend(dependencies(inner)),
            _ => (),
        }
    }
    names
}

#[test]
fn no_crate_looks_up() {
    for (rank, (name, folder)) in ROOMS.iter().enumerate() {
        let manifest: Table = read(&format!("{folder}/Cargo.toml")).parse().expect("a manifest");
        assert_eq!(manifest["package"]["name"].as_str(), Some(*name));
        let used = dependencies(&manifest);
        assert!(used.iter().any(|used| used == "serde"), "the dependencies of `{name}` were read");
        for (above, _) in &ROOMS[rank..] {
            assert!(!used.iter().any(|used| used == above), "`{name}` looks up to `{above}`");
        }
    }
}

#[test]
fn every_room_is_ranked() {
    let manifest: Table = read("Cargo.toml").parse().expect("a manifest");
    let members = manifest["workspace"]["members"].as_array().expect("a workspace");
    let members: Vec<&str> = members.iter().filter_map(Value::as_str).collect();
    let ranked: Vec<&str> = ROOMS.iter().map(|(_, folder)| *folder).filter(|folder| *folder != ".").collect();
    assert_eq!(members, ranked);
}

#[test]
fn the_readme_tests_as_ci_does() {
    let script = read(".ci/run");
    let mut commands = script.lines().filter_map(|line| line.find("cargo test").map(|at| &line[at..]));
    let command = commands.next().expect("the script runs the tests");
    assert_eq!(commands.next(), None, "and does so once");
    let readme = read("README.md");
    assert!(readme.lines().any(|line| line.trim() == command), "the README does not say `{command}`");
}
