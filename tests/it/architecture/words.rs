//! Documentation, help, error messages and public names use the terms of the field.

use std::fs;
use std::path::{Path, PathBuf};

use super::source::{Token, production_files, production_tokens};
use super::{CRATES, root};

/// Words for which the field has a term: episode, agent or user, rendered, completion, terminate, rejects, is a no-op.
const FORBIDDEN: [&str; 14] = [
    "trip",
    "trips",
    "customer",
    "customers",
    "told",
    "whoever",
    "utterance",
    "utterances",
    "dead end",
    "dead ends",
    "as founded",
    "puts back",
    "put back",
    "passes the turn",
];

/// The forbidden words of a text. Any character that is no letter or digit separates words.
fn forbidden(text: &str) -> Vec<&'static str> {
    let words: Vec<String> = text
        .split(|char: char| !char.is_alphanumeric())
        .map(str::to_lowercase)
        .filter(|w| !w.is_empty())
        .collect();
    let text = format!(" {} ", words.join(" ")).replace(" round trip ", " ");
    FORBIDDEN.into_iter().filter(|word| text.contains(&format!(" {word} "))).collect()
}

/// The words of a name in Rust: `DeadEnd` and `dead_end` are both `dead end`.
fn words_of(name: &str) -> String {
    let mut words = String::new();
    for char in name.chars() {
        if char.is_uppercase() {
            words.push(' ');
        }
        words.push(if char == '_' { ' ' } else { char });
    }
    words
}

/// The files below a folder whose name ends so.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        match path.extension() {
            _ if path.is_dir() => found.extend(files(&path, extension)),
            Some(found_extension) if found_extension == extension => found.push(path),
            _ => (),
        }
    }
    found.sort();
    found
}

/// Asserts that no line of these files has a forbidden word.
fn check(files: &[PathBuf]) {
    assert!(!files.is_empty(), "nothing was read");
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(file).expect("a text");
        for (at, line) in text.lines().enumerate() {
            let place = file.strip_prefix(root()).expect("below").display();
            found.extend(forbidden(line).into_iter().map(|word| format!("{place}:{}: {word}", at + 1)));
        }
    }
    assert!(found.is_empty(), "{} times:\n{}", found.len(), found.join("\n"));
}

#[test]
fn the_documentation_uses_the_terms_of_the_field() {
    let mut texts = vec![root().join("README.md")];
    texts
        .extend(["docs/guide", "docs/reference"].iter().flat_map(|folder| files(&root().join(folder), "md")));
    check(&texts);
}

/// The snapshots hold all help texts and many refusals.
#[test]
fn the_command_line_uses_the_terms_of_the_field() {
    let is_text = |file: &PathBuf| {
        let name = file.file_name().expect("a name").to_string_lossy();
        name.starts_with("help") || name.starts_with("refused")
    };
    check(&files(&root().join("snapshots/cli"), "snap").into_iter().filter(is_text).collect::<Vec<_>>());
}

/// The messages of `#[error("…")]`.
fn error_messages(tokens: &[Token]) -> impl Iterator<Item = &Token> {
    let is_error = |window: &[Token]| window[0].text == "error" && window[1].text == "(";
    let messages = tokens.windows(3).filter(move |window| is_error(window)).map(|window| &window[2]);
    messages.filter(|token| token.text.starts_with('"'))
}

/// The names of public items, fields and methods.
fn public_names(tokens: &[Token]) -> impl Iterator<Item = &Token> {
    let kinds = ["fn", "struct", "enum", "trait", "type", "const", "static", "mod", "unsafe", "async"];
    let name = move |at: usize| {
        let mut rest = tokens[at + 1..].iter().skip_while(move |token| kinds.contains(&token.text.as_str()));
        rest.next()
    };
    let is_public =
        |at: &usize| tokens[*at].text == "pub" && tokens.get(at + 1).is_some_and(|t| t.text != "(");
    (0..tokens.len()).filter(is_public).filter_map(name).filter(|token| token.text != "use")
}

#[test]
fn errors_and_public_names_use_the_terms_of_the_field() {
    let (mut n_read, mut found) = (0, Vec::new());
    for krate in CRATES {
        for file in production_files(&root().join(krate.folder)) {
            let tokens = production_tokens(&file);
            let messages = error_messages(&tokens).map(|token| (token, token.text.clone()));
            let names = public_names(&tokens).map(|token| (token, words_of(&token.text)));
            for (token, text) in messages.chain(names) {
                n_read += 1;
                let place = format!("{}:{}", file.strip_prefix(root()).expect("below").display(), token.line);
                found.extend(
                    forbidden(&text).into_iter().map(|word| format!("{place}: {word}: {}", token.text)),
                );
            }
        }
    }
    assert!(n_read > 1000, "only {n_read} messages and names were read");
    assert!(found.is_empty(), "{} times:\n{}", found.len(), found.join("\n"));
}

#[test]
fn words_are_found_in_texts_and_names() {
    assert_eq!(forbidden("Two trips, as\nfounded; a round-trip"), ["trips", "as founded"]);
    assert_eq!(forbidden(&words_of("DeadEnds")), ["dead ends"]);
    assert_eq!(forbidden(&words_of("strip_told")), ["told"]);
    assert_eq!(forbidden("striped untold"), [""; 0]);
}
