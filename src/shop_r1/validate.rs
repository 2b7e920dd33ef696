//! `webshop shop-r1 validate`: checks the format of a file of single-step examples.

use std::io::BufRead;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use webshop_agent::next_action::ExampleValidator;
use webshop_products::open_text;

use crate::output::outln;

/// The format, for `--help`.
const FORMAT: &str = "Each line is a JSON object with
  id         unique in the file
  source     demonstration, oracle, policy, human or terminate_example
  split      train, validation or test; the same for all examples of a goal
  goal       number of the goal, if known
  step       number of steps before this one
  context    the steps before: [{\"page\", \"action\"}]; the oldest may be left out
  page       HTML in which each element that can be used has a `name`
  rationale  one sentence, or empty
  action     the correct action: {\"type\": \"click\", \"name\"},
             {\"type\": \"type_and_submit\", \"name\", \"text\"} or {\"type\": \"terminate\"};
             `name` must be on the page
Prints `FILE:LINE: field: problem` for each problem, else the number of examples by source and action type.

Exit codes: 0 no problems, 1 problems found, 2 the file cannot be read or is empty.";

/// Flags of `webshop shop-r1 validate`.
#[derive(clap::Args)]
#[command(after_help = FORMAT)]
pub(crate) struct ValidateArgs {
    /// Examples, one per line; may be gzipped
    #[arg(value_name = "FILE.jsonl")]
    file: PathBuf,
}

/// Checks every line and prints problems or counts.
pub(crate) fn run(args: ValidateArgs) -> Result<ExitCode> {
    let name = args.file.display();
    let (mut checker, mut n_problems) = (ExampleValidator::default(), 0);
    for (idx, text) in open_text(&args.file)?.lines().enumerate() {
        let line = idx + 1;
        let text = text.with_context(|| format!("cannot read `{name}`, line {line}"))?;
        for problem in checker.check(line, &text) {
            outln!("{name}:{line}: {problem}")?;
            n_problems += 1;
        }
    }
    if n_problems > 0 {
        return Ok(ExitCode::from(1));
    }
    if checker.counts().n_examples() == 0 {
        bail!("there is no example in `{name}`");
    }
    outln!("{}", checker.counts())?;
    let n = checker.n_without_rationale();
    if n > 0 {
        outln!("{n} without rationale: training on these covers the action only")?;
    }
    Ok(ExitCode::SUCCESS)
}
