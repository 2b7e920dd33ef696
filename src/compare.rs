//! `webshop compare`: two results side by side, or learners on one task over several seeds.

mod learners;
mod results;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::cache::CacheArgs;

/// Flags of `webshop compare`.
#[derive(clap::Args)]
pub struct CompareArgs {
    /// What `rollout --json` or `eval --json` printed
    #[arg(value_name = "A.json", required_unless_present = "config")]
    before: Option<PathBuf>,
    /// The same of another policy, checkpoint or seed
    #[arg(value_name = "B.json", required_unless_present = "config")]
    after: Option<PathBuf>,
    /// Compare even if the two are about different goals, prices, splits or rules
    #[arg(long)]
    force: bool,
    /// Instead, make the runs of a comparison of learners and report what came of them; what is there already is not
    /// made again
    #[arg(long, value_name = "FILE", conflicts_with_all = ["before", "after", "force"])]
    config: Option<PathBuf>,
    /// Change a value of all arms, over those that FILE sets for them; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "config")]
    set: Vec<String>,
    /// The folder of that comparison [default: runs/NAME of FILE]
    #[arg(long, value_name = "DIR", requires = "config")]
    out: Option<PathBuf>,
    /// Runs made at the same time, each on its share of the threads; results do not depend on it
    #[arg(long, value_name = "N", default_value_t = 1, requires = "config",
          value_parser = clap::value_parser!(u8).range(1..=2))]
    jobs: u8,
    #[command(flatten)]
    cache: CacheArgs,
}

/// Compares what the flags name.
pub fn run(args: CompareArgs) -> Result<ExitCode> {
    match (args.config, args.before, args.after) {
        (Some(file), ..) => {
            let name = file.file_stem().unwrap_or(file.as_os_str());
            let out = args.out.unwrap_or_else(|| PathBuf::from("runs").join(name));
            learners::compare(&file, &args.set, &out, usize::from(args.jobs), args.cache)
        }
        (None, Some(before), Some(after)) => {
            results::compare(&before, &after, args.force)?;
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!("name two results, or a comparison with `--config`"),
    }
}
