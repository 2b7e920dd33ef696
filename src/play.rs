//! `webshop play`: a person shops in the terminal.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use webshop_env::{Action, EnvConfig, ShopEnv};
use webshop_products::GoalId;

use crate::answer::answer;
use crate::shop::RuledShopArgs;

/// Flags of `webshop play`.
#[derive(clap::Args)]
pub struct PlayArgs {
    #[command(flatten)]
    shop: RuledShopArgs,
    /// Which goal to shop for, by its number
    #[arg(long, default_value_t = 0, value_name = "N")]
    goal: u32,
    /// Actions before the trip is cut
    #[arg(long, default_value_t = 15, value_name = "N")]
    max_steps: u32,
}

const HELP: &str = "type search[words], click[label], a number from the list, or quit";

/// Shows pages and carries out what is typed until the purchase, the step limit or the end of input.
pub fn run(args: PlayArgs) -> anyhow::Result<ExitCode> {
    let shop = Arc::new(args.shop.open()?);
    let compat = shop.config().compat;
    let n_goals = shop.goals().goals().len();
    if args.goal as usize >= n_goals {
        bail!("there is no goal `{}`: the goals are numbered 0 to {}", args.goal, n_goals - 1);
    }
    let mut env = ShopEnv::new(shop, EnvConfig { max_steps: args.max_steps, ..EnvConfig::default() });
    env.reset(GoalId(args.goal));
    let prompt = std::io::stdin().is_terminal();
    let mut lines = std::io::stdin().lock().lines();
    answer!("{HELP}\n")?;
    loop {
        let page = env.page();
        answer!("{}\n", page.text_rich().trim_end())?;
        let clicks: Vec<Action> = page.available_actions().clicks().collect();
        for (number, click) in clicks.iter().enumerate() {
            answer!("  {:>2}  {click}", number + 1)?;
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
        answer!("\n{action}")?;
        if let Some(reason) = step.info.noop {
            answer!("nothing happens: {reason}\n{HELP}")?;
        }
        if let Some(breakdown) = step.info.breakdown.filter(|_| step.terminated) {
            answer!("\nbought. {breakdown}")?;
            return Ok(ExitCode::SUCCESS);
        }
        if step.truncated {
            answer!("\nthe shop closes: {} actions without a purchase, reward 0", args.max_steps)?;
            return Ok(ExitCode::SUCCESS);
        }
    }
}
