//! Rust source as tokens: enough to see functions, paths and public names, not enough to compile.

use std::fs;
use std::path::{Path, PathBuf};

/// A word, `::` or one other character, with its line. Comments are left out; a text is one token in quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) line: usize,
}

/// The Rust files below `folder`, sorted; none if it does not exist.
pub(super) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return files };
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        match path.extension() {
            _ if path.is_dir() => files.extend(rust_files(&path)),
            Some(extension) if extension == "rs" => files.push(path),
            _ => (),
        }
    }
    files.sort();
    files
}

/// The files of a crate's own code: those below `src` that are not tests by their name.
pub(super) fn production_files(krate: &Path) -> Vec<PathBuf> {
    let is_test = |file: &PathBuf| file.iter().any(|part| part == "tests" || part == "tests.rs");
    let src = krate.join("src");
    let below = |file: &Path| file.strip_prefix(&src).expect("below").to_path_buf();
    rust_files(&src).into_iter().filter(|file| !is_test(&below(file))).collect()
}

/// The tokens of a file, without what is compiled for tests only.
pub(super) fn production_tokens(file: &Path) -> Vec<Token> {
    without_tests(&tokens(&fs::read_to_string(file).expect("a source file")))
}

/// The tokens of a source text.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let (mut tokens, mut at, mut line) = (Vec::new(), 0, 1);
    while at < chars.len() {
        let end = token_end(&chars, at);
        let text: String = chars[at..end].iter().collect();
        if !text.starts_with("//") && !text.starts_with("/*") && !text.trim().is_empty() {
            tokens.push(Token { text, line });
        }
        line += chars[at..end].iter().filter(|char| **char == '\n').count();
        at = end;
    }
    tokens
}

/// The end of the token, comment or space that begins at `at`.
fn token_end(chars: &[char], at: usize) -> usize {
    let next = |offset: usize| chars.get(at + offset).copied().unwrap_or('\0');
    let run = |is: &dyn Fn(char) -> bool| at + chars[at..].iter().take_while(|char| is(**char)).count();
    match (chars[at], next(1)) {
        ('/', '/') => run(&|char| char != '\n'),
        ('/', '*') => block_comment_end(chars, at),
        ('"', _) => text_end(chars, at + 1),
        ('b', '"') => text_end(chars, at + 2),
        ('r', '"' | '#') | ('b', 'r') => raw_text_end(chars, at).unwrap_or_else(|| run(&is_word)),
        ('\'', '\\') => at + 3 + chars[at + 3..].iter().take_while(|char| **char != '\'').count() + 1,
        ('\'', _) if next(2) == '\'' => at + 3,
        ('\'', _) => at + 1,
        (':', ':') => at + 2,
        (first, _) if is_word(first) => run(&is_word),
        (first, _) if first.is_whitespace() => run(&char::is_whitespace),
        _ => at + 1,
    }
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

fn block_comment_end(chars: &[char], at: usize) -> usize {
    let (mut depth, mut at) = (0, at);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn text_end(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// The end of `r"…"`, `r#"…"#` or the same with `b`; `None` if a word or a raw name begins here.
fn raw_text_end(chars: &[char], at: usize) -> Option<usize> {
    let after_r = at + chars[at..].iter().position(|char| *char == 'r').expect("the caller saw it") + 1;
    let hashes = chars[after_r..].iter().take_while(|char| **char == '#').count();
    let begin = after_r + hashes + 1;
    (chars.get(begin - 1) == Some(&'"')).then(|| {
        let closing: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
        let rest = chars[begin..].windows(closing.len());
        begin + rest.into_iter().position(|window| window == closing).expect("a closed text") + closing.len()
    })
}

/// The place behind the bracket that closes the one at `at`.
pub(super) fn closing(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0;
    for (place, token) in tokens.iter().enumerate().skip(at) {
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => (),
        }
        if depth == 0 {
            return place + 1;
        }
    }
    tokens.len()
}

/// The tokens without items under `#[cfg(test)]`.
fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let text = |at: usize| tokens.get(at).map_or("", |token| &token.text);
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let is_attribute = text(at) == "#" && text(at + 1) == "[";
        let end = if is_attribute { closing(tokens, at + 1) } else { at };
        let attribute = &tokens[at..end];
        if attribute.get(2).is_some_and(|token| token.text == "cfg")
            && attribute.iter().any(|t| t.text == "test")
        {
            at = item_end(tokens, end);
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// The end of the item that begins at `at`: behind its `;`, or behind its body.
fn item_end(tokens: &[Token], mut at: usize) -> usize {
    while tokens.get(at).is_some_and(|token| token.text == "#") {
        at = closing(tokens, at + 1);
    }
    let is_use = tokens[at..].iter().take(6).any(|token| token.text == "use");
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            ";" | "," => return at + 1,
            "{" if !is_use => return closing(tokens, at),
            "(" | "[" | "{" => at = closing(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// A function: its name, its first line, and how many lines it has from there to the end of its body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) n_lines: usize,
}

/// All functions with a body.
pub(super) fn functions(tokens: &[Token]) -> Vec<Function> {
    let named = |at: usize| tokens.get(at + 1).is_some_and(|name| name.text.starts_with(is_word));
    let begins = (0..tokens.len()).filter(|&at| tokens[at].text == "fn" && named(at));
    let function = |at: usize| {
        let mut body = at + 2;
        while let Some(token) = tokens.get(body) {
            match token.text.as_str() {
                ";" => return None,
                "{" => break,
                "(" | "[" => body = closing(tokens, body),
                _ => body += 1,
            }
        }
        let last = closing(tokens, body) - 1;
        let (line, end) = (tokens[at].line, tokens[last.min(tokens.len() - 1)].line);
        Some(Function { name: tokens[at + 1].text.clone(), line, n_lines: end - line + 1 })
    };
    begins.filter_map(function).collect()
}

#[test]
fn functions_are_measured_without_texts_comments_and_tests() {
    let source = r##"
        /// fn documented() { }
        fn one() -> [u8; 2] { ['{' as u8, b'}'] }
        trait T { fn declared(&self); }
        fn three<'a>(_: &'a str) {
            r#"} " {"#; /* } /* } */ */ "\"}"
        }
        #[cfg(test)]
        mod tests { fn hidden() {} }
    "##;
    let tokens = without_tests(&tokens(source));
    let found: Vec<(String, usize)> =
        functions(&tokens).into_iter().map(|function| (function.name, function.n_lines)).collect();
    assert_eq!(found, [("one".to_owned(), 1), ("three".to_owned(), 3)]);
}
