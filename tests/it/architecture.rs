//! The house keeps its order: no crate looks up, and what the README says to run is what is run.

use std::fs;
use std::path::{Path, PathBuf};

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

/// The Rust files below `folder`.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files = Vec::new();
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        match path.extension() {
            _ if path.is_dir() => files.extend(sources(&path)),
            Some(extension) if extension == "rs" => files.push(path),
            _ => (),
        }
    }
    files
}

#[test]
fn only_the_kernels_are_unsafe() {
    let manifest: Table = read("Cargo.toml").parse().expect("a manifest");
    // The lint by its name, which stands nowhere else in this file, so that this file passes too.
    let lint = ["unsafe", "code"].join("_");
    assert_eq!(manifest["workspace"]["lints"]["rust"][&lint].as_str(), Some("deny"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kernels = root.join("agent/src/kernels");
    let (mut n_read, mut lifted) = (0, Vec::new());
    for (name, folder) in ROOMS {
        let manifest: Table = read(&format!("{folder}/Cargo.toml")).parse().expect("a manifest");
        assert_eq!(manifest["lints"]["workspace"].as_bool(), Some(true), "`{name}` has lints of its own");
        let parts = ["src", "tests", "benches", "examples"].map(|part| root.join(folder).join(part));
        for file in parts.iter().filter(|part| part.is_dir()).flat_map(|part| sources(part)) {
            n_read += 1;
            let lifts = fs::read_to_string(&file).expect("a source").contains(&lint);
            lifted.extend(lifts.then_some(file));
        }
    }
    let stray: Vec<_> = lifted.iter().filter(|file| !file.starts_with(&kernels)).collect();
    assert!(stray.is_empty(), "the lint is lifted in {stray:?}");
    assert!(n_read > 200 && lifted.len() > 2, "{n_read} files were read, {lifted:?} lift the lint");
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
