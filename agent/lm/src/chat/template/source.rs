//! Finding the chat templates of a model folder, and rewriting syntax that minijinja does not support.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use crate::chat::template::DEFAULT;
use crate::checkpoint::{ADDITIONAL_TEMPLATES, invalid, jinja_files, read_json, special_token, unreadable};
use crate::error::LmError;

const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const TEMPLATE: &str = "chat_template.jinja";

/// Names and sources of the templates, and the special tokens.
type Sources = (Vec<(String, String)>, Map<String, Value>);

/// Reads the templates and the special tokens of a model folder.
pub(super) fn read(folder: &Path) -> Result<Sources, LmError> {
    let config_path = folder.join(TOKENIZER_CONFIG);
    let config: Map<String, Value> = if config_path.exists() { read_json(&config_path)? } else { Map::new() };
    let mut sources = files(folder)?;
    if sources.is_empty()
        && let Some(templates) = config.get("chat_template").filter(|templates| !templates.is_null())
    {
        sources = listed(templates).ok_or_else(|| {
            invalid(&config_path, "`chat_template` is neither a string nor a list of named strings")
        })?;
    }
    if sources.is_empty() {
        let reason = format!(
            "the folder has no chat template: no `{TEMPLATE}`, and no `chat_template` in `{TOKENIZER_CONFIG}`; a \
             model without chat training has none"
        );
        return Err(invalid(folder, reason));
    }
    Ok((sources, special_tokens(&config)))
}

/// `chat_template.jinja` and the files in `additional_chat_templates`.
fn files(folder: &Path) -> Result<Vec<(String, String)>, LmError> {
    let mut sources = Vec::new();
    let path = folder.join(TEMPLATE);
    if path.exists() {
        sources.push((DEFAULT.to_owned(), text(&path)?));
    }
    for path in jinja_files(&folder.join(ADDITIONAL_TEMPLATES))? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        sources.push((name, text(&path)?));
    }
    Ok(sources)
}

fn text(path: &Path) -> Result<String, LmError> {
    fs::read_to_string(path).map_err(|error| unreadable(path, error))
}

/// `chat_template` in `tokenizer_config.json`: a string, or objects with a `name` and a `template`.
fn listed(templates: &Value) -> Option<Vec<(String, String)>> {
    let owned = |value: &Value| value.as_str().map(ToOwned::to_owned);
    match templates {
        Value::String(source) => Some(vec![(DEFAULT.to_owned(), source.clone())]),
        Value::Array(named) => {
            let pair = |entry: &Value| Some((owned(entry.get("name")?)?, owned(entry.get("template")?)?));
            named.iter().map(pair).collect()
        }
        _ => None,
    }
}

/// The texts of all fields `…_token` and of `extra_special_tokens`, by field name.
fn special_tokens(config: &Map<String, Value>) -> Map<String, Value> {
    let mut tokens = Map::new();
    let named = config.get("extra_special_tokens").and_then(Value::as_object);
    for fields in std::iter::once(config).chain(named) {
        for name in fields.keys().filter(|name| name.ends_with("_token") || named == Some(fields)) {
            if let Some(token) = special_token(fields, name) {
                tokens.insert(name.clone(), token.into());
            }
        }
    }
    tokens
}

/// Replaces `{% generation %}` blocks by `{% with %}` blocks. The former mark the model's tokens for training
/// and print nothing; minijinja supports only the latter. Both open a scope.
///
/// Line endings become `\n`, as in Jinja2.
pub(super) fn without_generation_blocks(source: &str) -> String {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(source.len());
    let mut rest = source.as_str();
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let n_taken = match rest.as_bytes().get(1) {
            Some(b'#') => rest.find("#}").map_or(rest.len(), |end| end + 2),
            Some(b'{') => end_of_code(rest, "}}"),
            Some(b'%') => end_of_code(rest, "%}"),
            _ => 1,
        };
        let (taken, after) = rest.split_at(n_taken);
        rest = after;
        match tag_name(taken) {
            Some("generation") => out.push_str(&taken.replacen("generation", "with", 1)),
            Some("endgeneration") => out.push_str(&taken.replacen("endgeneration", "endwith", 1)),
            Some("raw") => {
                // Inside a raw block only `endraw` is a tag.
                let end = raw_end(rest);
                out.push_str(taken);
                out.push_str(&rest[..end]);
                rest = &rest[end..];
            }
            _ => out.push_str(taken),
        }
    }
    out.push_str(rest);
    out
}

/// The end of a code block that begins with two characters; skips quoted strings.
fn end_of_code(code: &str, end: &str) -> usize {
    let mut quote = None;
    let mut chars = code.char_indices().skip(2);
    while let Some((at, c)) = chars.next() {
        match quote {
            Some(_) if c == '\\' => {
                chars.next();
            }
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if code[at..].starts_with(end) => return at + end.len(),
            None => {}
        }
    }
    code.len()
}

/// The first word of `{%- tag … -%}`.
fn tag_name(code: &str) -> Option<&str> {
    let inner = code.strip_prefix("{%")?.trim_start_matches(['-', '+']).trim_start();
    let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
    Some(&inner[..end])
}

/// The start of the `endraw` tag.
fn raw_end(text: &str) -> usize {
    text.match_indices("{%")
        .map(|(at, _)| at)
        .find(|&at| tag_name(&text[at..]) == Some("endraw"))
        .unwrap_or(text.len())
}
