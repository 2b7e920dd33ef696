//! Files and functions have a bounded length.

use std::fs;

use super::source::{functions, production_files, production_tokens, rust_files};
use super::{CRATES, root};

/// Lines of a file, tests included.
const MAX_FILE: usize = 400;

/// Lines of a function from its name to the end of its body, comments included.
const MAX_FUNCTION: usize = 60;

#[test]
fn no_file_is_longer_than_400_lines() {
    let mut files = Vec::new();
    for krate in CRATES {
        for part in ["src", "tests", "benches", "examples"] {
            files.extend(rust_files(&root().join(krate.folder).join(part)));
        }
    }
    assert!(files.len() > 300, "only {} files were read", files.len());
    let lines = |file: &_| fs::read_to_string(file).expect("a source file").lines().count();
    let long: Vec<String> = files
        .iter()
        .map(|file| (lines(file), file))
        .filter(|(n_lines, _)| *n_lines > MAX_FILE)
        .map(|(n_lines, file)| format!("{n_lines} {}", file.strip_prefix(root()).expect("below").display()))
        .collect();
    assert!(long.is_empty(), "files of more than {MAX_FILE} lines:\n{}", long.join("\n"));
}

#[test]
fn no_function_is_longer_than_60_lines() {
    let (mut n_functions, mut long) = (0, Vec::new());
    for krate in CRATES {
        for file in production_files(&root().join(krate.folder)) {
            for function in functions(&production_tokens(&file)) {
                n_functions += 1;
                let place =
                    format!("{}:{}", file.strip_prefix(root()).expect("below").display(), function.line);
                let row = format!("{} {place} `{}`", function.n_lines, function.name);
                long.extend((function.n_lines > MAX_FUNCTION).then_some(row));
            }
        }
    }
    assert!(n_functions > 2000, "only {n_functions} functions were read");
    assert!(long.is_empty(), "functions of more than {MAX_FUNCTION} lines:\n{}", long.join("\n"));
}
