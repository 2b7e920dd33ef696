//! `webshop merge`: puts the files of `webshop rollout --shard` together.

use std::path::PathBuf;
use std::process::ExitCode;

use webshop_training::write_atomically;

use crate::args::episodes::TasksArgs;
use crate::output::{ensure_new, outln};
use crate::rollout::{Tasks, order_lines};

/// Flags of `webshop merge`.
#[derive(clap::Args)]
#[command(
    after_help = "Flags of the shop, the split and the number of episodes must be those of the rollout. Episodes are put in \
                  its order, each line as it is; an episode that is missing, that is there twice and differs, or that was \
                  made with other settings is an error, and nothing is written.\n\n\
                  Example:\n  \
                  webshop merge 1.jsonl 2.jsonl 3.jsonl 4.jsonl --out all.jsonl\n\n\
                  Exit codes: 0 done, 2 error."
)]
pub(crate) struct MergeArgs {
    /// Files of `webshop rollout --shard I/N --out`, in any order
    #[arg(required = true, value_name = "SHARD.jsonl")]
    shards: Vec<PathBuf>,
    /// Write the episodes to this new file
    #[arg(long, value_name = "FILE.jsonl")]
    out: PathBuf,
    #[command(flatten)]
    tasks: TasksArgs,
}

/// Reads the shards, checks them, and writes their episodes in the order of the rollout.
pub(crate) fn run(args: MergeArgs) -> anyhow::Result<ExitCode> {
    ensure_new(&args.out, "name another file with `--out`")?;
    let lines = order_lines(&args.shards, &Tasks::open(&args.tasks)?)?;
    write_atomically(&args.out, lines.concat().as_bytes())?;
    outln!("{} episodes of {} files", lines.len(), args.shards.len())?;
    Ok(ExitCode::SUCCESS)
}
