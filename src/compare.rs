//! `webshop compare`: compares two results, or trains several losses over several seeds and compares them.

mod results;
mod sweep;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};

use webshop_training::sweep::{Changes, Variation};

use crate::args::cache::CacheArgs;
use crate::args::compute::ComputeArgs;

/// Printed below the flags.
const EXAMPLES: &str = "Examples:
  webshop compare before.json after.json
  webshop compare --config comparison.toml --jobs 2";

/// Flags of `webshop compare`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    /// First result: the output of `rollout --json` or `eval --json`
    #[arg(value_name = "A.json", required_unless_present = "config")]
    before: Option<PathBuf>,
    /// Second result, of another policy, checkpoint or seed
    #[arg(value_name = "B.json", required_unless_present = "config")]
    after: Option<PathBuf>,
    /// Compare the results even if they are over different goals, prices, splits or rules
    #[arg(long)]
    force: bool,
    /// Train every arm of this comparison file with every seed, then report. Finished runs are kept and
    /// interrupted ones continued, so the same command can be repeated
    #[arg(long, value_name = "FILE", conflicts_with_all = ["before", "after", "force"])]
    config: Option<PathBuf>,
    /// Override a configuration value in all arms of the comparison; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "config")]
    set: Vec<String>,
    /// Use these seeds instead of the file's, separated by commas
    #[arg(long, value_name = "N,N", value_delimiter = ',', requires = "config")]
    seeds: Vec<u64>,
    /// Make an arm of every arm with each of these values, separated by commas, such as `rl.lr=1e-4,1e-3`
    #[arg(long, value_name = "KEY=V,V", requires = "config")]
    vary: Option<Variation>,
    /// Folder of the comparison [default: runs/NAME for a file NAME.toml]
    #[arg(long, value_name = "DIR", requires = "config")]
    out: Option<PathBuf>,
    /// Number of runs at the same time, which share the threads; results do not depend on it
    #[arg(long, value_name = "N", default_value_t = 1, requires = "config",
          value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
    #[command(flatten)]
    compute: ComputeArgs,
    #[command(flatten)]
    cache: CacheArgs,
}

/// Compares two results, or runs a comparison.
pub(crate) fn run(args: CompareArgs) -> Result<ExitCode> {
    match (args.config, args.before, args.after) {
        (Some(file), ..) => {
            let name = file.file_stem().unwrap_or(file.as_os_str());
            let out = args.out.unwrap_or_else(|| PathBuf::from("runs").join(name));
            let device_flags = args.compute.flags();
            let changes = Changes { set: args.set, seeds: args.seeds, vary: args.vary, device_flags };
            let n_jobs = NonZeroUsize::new(args.jobs.into()).expect("the flag is at least 1");
            sweep::compare(&file, &changes, &out, n_jobs, &args.compute.choose()?, args.cache)
        }
        (None, Some(before), Some(after)) => {
            let flags = args.compute.flags();
            ensure!(flags.is_empty(), "{}: two results need no device; leave it out", flags.trim());
            ensure!(!args.cache.is_given(), "--no-cache: two results open no catalog; leave it out");
            results::compare(&before, &after, args.force)?;
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!("name two result files, or a comparison file with `--config`"),
    }
}
