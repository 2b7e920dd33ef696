//! `webshop play`: a person completes an episode in the terminal.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use webshop_env::{Action, EnvConfig, ShopEnv};

use crate::args::shop::RuledShopArgs;
use crate::output::outln;

/// Flags of `webshop play`.
#[derive(clap::Args)]
#[command(after_help = "Reads actions from standard input, one per line: search[words] or click[label].")]
pub(crate) struct PlayArgs {
    #[command(flatten)]
    shop: RuledShopArgs,
    /// Number of the goal, from 0
    #[arg(long, default_value_t = 0, value_name = "N")]
    goal: u32,
    /// Actions after which the episode is truncated
    #[arg(long, default_value_t = 15, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: u32,
}

const HELP: &str = "type search[words], click[label], the number of a button, or quit";

/// Prints pages and performs the typed actions until the purchase, the step limit or the end of input.
pub(crate) fn run(args: PlayArgs) -> anyhow::Result<ExitCode> {
    let shop = Arc::new(args.shop.open()?);
    let compat = shop.config().compat;
    let goal = shop.goals().find(args.goal.into())?;
    let mut env = ShopEnv::new(shop, EnvConfig { max_steps: args.max_steps, ..EnvConfig::default() });
    env.reset(goal);
    let prompt = std::io::stdin().is_terminal();
    let mut lines = std::io::stdin().lock().lines();
    outln!("{HELP}\n")?;
    loop {
        let page = env.page();
        outln!("{}\n", page.text_rich().trim_end())?;
        let clicks: Vec<Action> = page.available_actions().clicks().collect();
        for (number, click) in clicks.iter().enumerate() {
            outln!("  {:>2}  {click}", number + 1)?;
        }
        if prompt {
            write!(std::io::stdout(), "\n> ")?;
            std::io::stdout().flush()?;
        }
        let Some(line) = lines.next().transpose()? else {
            return Ok(ExitCode::SUCCESS);
        };
        let line = line.trim();
        if line == "quit" {
            return Ok(ExitCode::SUCCESS);
        }
        let numbered = line.parse().ok().and_then(|number: usize| clicks.get(number.wrapping_sub(1)));
        let action = numbered.cloned().unwrap_or_else(|| Action::parse(line, compat));
        let step = env.step(&action);
        outln!("\n{action}")?;
        if let Some(reason) = step.info.noop {
            outln!("no effect: {reason}\n{HELP}")?;
        }
        if let Some(breakdown) = step.info.breakdown.filter(|_| step.terminated) {
            outln!("\npurchase: {breakdown}")?;
            return Ok(ExitCode::SUCCESS);
        }
        if step.truncated {
            outln!("\ntruncated after {} actions without a purchase: reward 0", args.max_steps)?;
            return Ok(ExitCode::SUCCESS);
        }
    }
}
