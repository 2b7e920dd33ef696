//! `webshop validate`: whether a catalog makes a shop that is fit to learn in.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use serde::Serialize;
use webshop_env::ENVIRONMENT_ID;
use webshop_training::{Check, validate};

use crate::answer::answer;
use crate::shop::ShopArgs;

/// Flags of `webshop validate`.
#[derive(clap::Args)]
#[command(
    after_help = "Prints PASS or FAIL for each of thirteen checks, with what was measured: that trips repeat \
                  exactly, do not touch each other and can be replayed; that rewards are for purchases only, add up, \
                  and reach 1; that pages do not tell the hidden goal; and that who does not read earns little.\n\n\
                  Exit codes: 0 all passed, 1 some failed, 2 the shop cannot be opened."
)]
pub struct ValidateArgs {
    #[command(flatten)]
    shop: ShopArgs,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Answer<'a> {
    environment: &'static str,
    goal_fingerprint: &'a str,
    passed: bool,
    checks: &'a [Check],
}

/// Checks and prints.
pub fn run(args: ValidateArgs) -> anyhow::Result<ExitCode> {
    let shop = Arc::new(args.shop.open()?);
    let checks = validate(&shop).context("the checks could not be made")?;
    let n_passed = checks.iter().filter(|check| check.passed).count();
    let passed = n_passed == checks.len();
    let goal_fingerprint = shop.goals().fingerprint();
    if args.json {
        let answer = Answer { environment: ENVIRONMENT_ID, goal_fingerprint, passed, checks: &checks };
        answer!("{}", serde_json::to_string(&answer)?)?;
    } else {
        for check in &checks {
            answer!("{check}")?;
        }
        answer!("{n_passed} of {} passed; goals {goal_fingerprint}", checks.len())?;
    }
    Ok(ExitCode::from(u8::from(!passed)))
}
