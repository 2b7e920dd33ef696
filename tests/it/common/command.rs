//! Runs the built `webshop` and reads what it prints.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use serde_json::Value;
use tempfile::TempDir;
use webshop_agent::compact::marks;
use webshop_lm::{BpeTokenizer, Qwen2, Qwen2Config, checkpoint};
use webshop_products::Seed;

/// A catalog of eleven products, relative to the repository.
pub(crate) const CORNER_SHOP: &str = "tests/data/corner-shop";

/// What a command printed, and its exit code.
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The cache folder of all commands.
pub(crate) static CACHE: LazyLock<TempDir> = LazyLock::new(temporary);

/// Runs `webshop` in the repository with `input` on stdin.
pub(crate) fn webshop(args: &[&str], input: &str) -> Output {
    webshop_into(args, input, Stdio::piped())
}

/// As [`webshop`], with `stdout` as its standard output.
pub(crate) fn webshop_into(args: &[&str], input: &str, stdout: impl Into<Stdio>) -> Output {
    let mut child = command(args).stdout(stdout).spawn().expect("the binary starts");
    // A command may end without reading its input.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    answered(child)
}

/// The command, to be run in the repository with all its streams piped.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_webshop"));
    command
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .env("WEBSHOP_CACHE", CACHE.path())
        .env_remove("RUST_LOG")
        .env_remove("RUST_BACKTRACE")
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The output of a command once it has ended.
pub(crate) fn answered(child: Child) -> Output {
    let output = child.wait_with_output().expect("the binary ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Output { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The stdout of a command that succeeds.
pub(crate) fn answer(args: &[&str]) -> String {
    let answer = webshop(args, "");
    assert_eq!(answer.code, Some(0), "{args:?}: {}", answer.stderr);
    answer.stdout
}

/// As [`answer`], of a command that prints one JSON object.
pub(crate) fn json(args: &[&str]) -> Value {
    serde_json::from_str(&answer(args)).expect("one JSON object")
}

/// The table of commands that a command refuses, each with its message.
pub(crate) struct Refusals(String);

/// Collects refusals and snapshots them as one table, `snapshots/cli/refused_<name>.snap`.
pub(crate) fn refusals(name: &str, collect: impl FnOnce(&mut Refusals)) {
    let mut refusals = Refusals(String::new());
    collect(&mut refusals);
    super::in_area("cli", || insta::assert_snapshot!(format!("refused_{name}"), refusals.0));
}

impl Refusals {
    /// Adds a command that is refused; `dir` is the temporary folder in its arguments and its message.
    pub(crate) fn row(&mut self, dir: &Path, args: &[&str]) {
        self.row_with_input(dir, args, "");
    }

    /// As [`Refusals::row`], with `input` on stdin.
    pub(crate) fn row_with_input(&mut self, dir: &Path, args: &[&str], input: &str) {
        let message = refusal(dir, args, input);
        let command = args.join(" ").replace(path(dir), "DIR");
        let stdin = if input.is_empty() { String::new() } else { format!(" <<< '{input}'") };
        let stdin = stdin.replace('\n', "\\n");
        let lines = message.lines().filter(|line| !line.is_empty());
        let message: String = lines.map(|line| format!("    {line}\n")).collect();
        self.0 += &format!("{command}{stdin}\n{message}\n");
    }
}

/// The message of a command that is refused with exit code 2; `dir` in it is written `DIR`.
pub(crate) fn refusal(dir: &Path, args: &[&str], input: &str) -> String {
    let answer = webshop(args, input);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(2), ""), "{args:?}: {}", answer.stderr);
    // The progress that is shown before depends on the time it takes.
    let lines = answer.stderr.split_inclusive('\n').filter(|line| !is_progress(line));
    let message = lines.collect::<String>().replace(path(dir), "DIR");
    assert_eq!(message.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{message}");
    message
}

/// Whether a line of stderr shows progress, as `steps: 2/5`.
fn is_progress(line: &str) -> bool {
    let is_count = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (_, counts) = line.trim().rsplit_once(": ").unwrap_or_default();
    counts.split_once('/').is_some_and(|(done, total)| is_count(done) && is_count(total))
}

/// A path as an argument.
pub(crate) fn path(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

pub(crate) fn temporary() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// A copy of a folder of files.
pub(crate) fn copy(from: &Path) -> TempDir {
    let to = temporary();
    for entry in fs::read_dir(from).expect("a folder") {
        let file = entry.expect("an entry").path();
        fs::copy(&file, to.path().join(file.file_name().expect("a name"))).expect("a copy");
    }
    to
}

/// Replaces `from` by `to` in a file that contains it.
pub(crate) fn edit(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).expect("a text file");
    assert!(text.contains(from), "`{}` does not hold `{from}`", file.display());
    fs::write(file, text.replacen(from, to, 1)).expect("a written file");
}

/// A model folder with random weights.
pub(crate) static MODEL: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = temporary();
    let marks = marks();
    let marks: Vec<&str> = marks.iter().map(String::as_str).collect();
    let tokenizer = BpeTokenizer::train(["a lamp"], 300, &marks).expect("room for all bytes and marks");
    let shape = Qwen2Config {
        hidden_size: 16,
        intermediate_size: 16,
        num_hidden_layers: 1,
        num_attention_heads: 2,
        num_key_value_heads: Some(1),
        max_position_embeddings: 512,
        ..Qwen2Config::small(tokenizer.vocab_size())
    };
    let model = Qwen2::random(&shape, Seed(0)).expect("a valid shape");
    checkpoint::save(&model, folder.path()).expect("a written model");
    tokenizer.save(folder.path()).expect("a written tokenizer");
    folder
});
