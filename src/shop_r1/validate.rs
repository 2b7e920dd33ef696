//! `webshop shop-r1 validate`: whether a file holds samples to learn from.

use std::io::BufRead;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use webshop_agent::shop_r1::Checker;
use webshop_products::open_text;

use crate::answer::answer;

/// What is checked, for `--help`.
const CHECKS: &str = "A line is a JSON object with
  id         by which no other line is told
  source     demonstration, oracle, policy, human or dead_end
  split      train, validation or test; all steps for a goal in one
  goal       the goal's number, if it is known
  step       how many steps were before, from 0
  context    those steps: [{\"page\", \"action\"}], whole or without the first ones
  page       the page in HTML, where what can be used has a `name`
  rationale  why, in one sentence; may be empty
  action     {\"type\": \"click\", \"name\"}, {\"type\": \"type_and_submit\", \"name\", \"text\"} or {\"type\": \"terminate\"}; \
the page has what it uses
Prints a line `FILE:LINE: field: problem` for each problem, or how many samples there are.

Exit codes: 0 no problems, 1 some, 2 the file cannot be read or is empty.";

/// Flags of `webshop shop-r1 validate`.
#[derive(clap::Args)]
#[command(after_help = CHECKS)]
pub struct ValidateArgs {
    /// Samples, a line each; may be gzipped
    #[arg(value_name = "FILE.jsonl")]
    file: PathBuf,
}

/// Checks and prints.
pub fn run(args: ValidateArgs) -> Result<ExitCode> {
    let name = args.file.display();
    let (mut checker, mut n_problems) = (Checker::default(), 0);
    for (at, text) in open_text(&args.file)?.lines().enumerate() {
        let line = at + 1;
        let text = text.with_context(|| format!("cannot read `{name}`, line {line}"))?;
        for problem in checker.check(line, &text) {
            answer!("{name}:{line}: {problem}")?;
            n_problems += 1;
        }
    }
    if n_problems > 0 {
        return Ok(ExitCode::from(1));
    }
    if checker.census().n_samples() == 0 {
        bail!("there is no sample in `{name}`");
    }
    answer!("{}", checker.census())?;
    match checker.n_without_rationale() {
        0 => (),
        n => answer!("{n} without rationale: they teach the action alone")?,
    }
    Ok(ExitCode::SUCCESS)
}
