//! `webshop validate`: checks that the environment on a catalog is sound for training.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use serde::Serialize;
use webshop_env::ENVIRONMENT_ID;
use webshop_evaluation::{Check, validate};

use crate::args::shop::ShopArgs;
use crate::output::outln;

/// Flags of `webshop validate`.
#[derive(clap::Args)]
#[command(
    after_help = "Prints PASS or FAIL and the measured value for each of fourteen checks: episodes are \
                  deterministic, independent of each other and replayable; only purchases are rewarded, the \
                  parts of a reward sum to it, and 1 can be reached; pages do not reveal the hidden goal; \
                  policies that do not read pages earn little; a search misses nothing.\n\n\
                  Exit codes: 0 all passed, 1 some failed, 2 the shop cannot be opened."
)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    shop: ShopArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    environment: &'static str,
    goal_fingerprint: &'a str,
    passed: bool,
    checks: &'a [Check],
}

/// Runs the checks and prints their results.
pub(crate) fn run(args: ValidateArgs) -> anyhow::Result<ExitCode> {
    let shop = Arc::new(args.shop.open()?);
    let checks = validate(&shop).context("the checks cannot be run")?;
    let n_passed = checks.iter().filter(|check| check.passed).count();
    let passed = n_passed == checks.len();
    let goal_fingerprint = shop.goals().fingerprint();
    if args.json {
        let report = Report { environment: ENVIRONMENT_ID, goal_fingerprint, passed, checks: &checks };
        outln!("{}", serde_json::to_string(&report)?)?;
    } else {
        for check in &checks {
            outln!("{check}")?;
        }
        outln!("{n_passed} of {} passed; goals {goal_fingerprint}", checks.len())?;
    }
    Ok(ExitCode::from(u8::from(!passed)))
}
