//! `webshop trace`: given trips, told as the original WebShop shows them.

use std::fs::File;
use std::io::{self, BufReader, Seek, stdin};
use std::process::ExitCode;

use anyhow::{Result, bail};
use webshop_env::{Compat, GivenTrip, Tracer};
use webshop_products::GoalRecord;

use crate::answer::answer;
use crate::lines;
use crate::rules::RulesArgs;

/// What is read and written, for `--help`.
const LINES: &str = "Standard input holds a trip a line, as a JSON object with
  session   the customer's name; a number names the goal too
  goal_idx  the goal's number; a name too, if there is no session
  goal      a goal of the trip's own, in the original's form
  seed      to seed the generator anew
  actions   what the customer says
Name and goal are drawn where nothing says them. Each is answered by a line with `reset` and `steps`. A customer who comes again keeps the goal.";

/// Flags of `webshop trace`.
#[derive(clap::Args)]
#[command(after_help = LINES)]
pub struct TraceArgs {
    #[command(flatten)]
    rules: RulesArgs,
    /// Give item pages their button to the attributes
    #[arg(long)]
    show_attrs: bool,
    /// Also give observations behind N earlier observations and actions, as `ret_obs`
    #[arg(long, default_value_t = 0, value_name = "N")]
    prev: usize,
}

/// Tells one trip after the other.
pub fn run(args: TraceArgs) -> Result<ExitCode> {
    if args.rules.compat() != Compat::Original {
        bail!("trips are told in the original's words only; give `--compat original`");
    }
    // The shop is built with the goals that trips bring along, so the trips are read twice. There may be more of
    // them than fit into memory.
    let (trips, own_goals) = kept()?;
    let opened = args.rules.open_original(&own_goals, args.show_attrs)?;
    let mut tracer = Tracer::new(&opened.shop, opened.n_goals, opened.random, args.prev);
    lines::each(BufReader::new(trips), lines::STDIN, |trip| {
        answer!("{}", serde_json::to_string(&tracer.trace(&trip)?)?)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Standard input in a file that vanishes when it is closed, and the goals that stand in it.
fn kept() -> Result<(File, Vec<GoalRecord>)> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut stdin().lock(), &mut file)?;
    file.rewind()?;
    let mut own_goals = Vec::new();
    lines::each(BufReader::new(&file), lines::STDIN, |trip: GivenTrip| {
        own_goals.extend(trip.goal);
        Ok(())
    })?;
    file.rewind()?;
    Ok((file, own_goals))
}
