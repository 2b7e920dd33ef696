//! `webshop trace`: runs scripted episodes and prints what the original WebShop's environment returns.

use std::fs::File;
use std::io::{self, BufReader, Seek, stdin};
use std::process::ExitCode;

use anyhow::{Result, bail};
use webshop_env::{Compat, ScriptedEpisode, Tracer};
use webshop_products::GoalRecord;

use crate::args::rules::RulesArgs;
use crate::jsonl;
use crate::output::outln;

/// Input and output formats, for `--help`.
const LINES: &str = "Reads one episode per line of standard input, a JSON object with
  session   session name, as for the original's `reset`; a number is also the goal's index
  goal_idx  index of the goal, if the session does not name it
  goal      a goal of its own for this episode, in the original's form
  seed      seeds Python's generator again before the episode
  actions   the actions, as text
All but `actions` may be absent; session name and goal are then drawn as the original draws them. Prints one \
line per episode, with the results of `reset` and of all `steps`. A session name that occurs again keeps its \
goal.";

/// Flags of `webshop trace`.
#[derive(clap::Args)]
#[command(after_help = LINES)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    rules: RulesArgs,
    /// Show the `Attributes` button on item pages, as the original's `show_attrs=True`
    #[arg(long)]
    show_attrs: bool,
    /// Also print `ret_obs`: the observation preceded by the N previous observations and actions, as the
    /// original's `num_prev_obs` and `num_prev_actions`
    #[arg(long, default_value_t = 0, value_name = "N")]
    prev: usize,
}

/// Runs one episode after the other.
pub(crate) fn run(args: TraceArgs) -> Result<ExitCode> {
    if args.rules.compat() != Compat::Original {
        bail!("only the original rules can be traced; give `--compat original`");
    }
    // The shop is built with the goals in the input, so the input is read twice. It may not fit into memory.
    let (input, own_goals) = buffer_stdin()?;
    let opened = args.rules.open_original(&own_goals, args.show_attrs)?;
    let mut tracer = Tracer::new(&opened.shop, opened.n_goals, opened.random, args.prev);
    jsonl::for_each(BufReader::new(input), jsonl::STDIN, |episode| {
        outln!("{}", serde_json::to_string(&tracer.trace(&episode)?)?)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Copies standard input into an unnamed temporary file, and collects the goals in it.
fn buffer_stdin() -> Result<(File, Vec<GoalRecord>)> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut stdin().lock(), &mut file)?;
    file.rewind()?;
    let mut own_goals = Vec::new();
    jsonl::for_each(BufReader::new(&file), jsonl::STDIN, |episode: ScriptedEpisode| {
        own_goals.extend(episode.goal);
        Ok(())
    })?;
    file.rewind()?;
    Ok((file, own_goals))
}
