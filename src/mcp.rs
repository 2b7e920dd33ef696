//! `webshop mcp`: serves one episode to an MCP client over standard input and output.

use std::process::ExitCode;
use std::sync::Arc;

use webshop_products::Seed;
use webshop_serve::{Defaults, GoalRequest, ResetRequest, ToolNames, serve_stdio};

use crate::args::observation::ObservationArg;
use crate::args::shop::{RuledShopArgs, SplitArg, SplitRuleArgs};

/// Printed below the flags.
const EXAMPLES: &str = "Examples:
  webshop mcp --goal 3
  webshop mcp --catalog 1000 --split test --seed 7 --tools agentgym

An MCP client starts this command and speaks with it over its standard input and output. Many
sessions, and HTTP, are with `webshop serve`. Exit codes: 0 the client closed standard input, 2 error.";

/// Flags of `webshop mcp`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    shop: RuledShopArgs,
    #[command(flatten)]
    split_rule: SplitRuleArgs,
    /// Number of the goal, of all goals
    #[arg(long, value_name = "N", conflicts_with_all = ["seed", "split"])]
    goal: Option<u64>,
    /// Seed that draws the goal from the split
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Split from which the seed draws the goal
    #[arg(long, value_enum, default_value = "train")]
    split: SplitArg,
    /// Actions after which the episode is truncated
    #[arg(long, default_value_t = 15, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: u32,
    /// Form of observations
    #[arg(long, value_enum, default_value = "text", value_name = "FORM")]
    observation: ObservationArg,
    /// Names of the tools and of their arguments
    #[arg(long, value_enum, default_value = "webshop", value_name = "NAMES")]
    tools: ToolNamesArg,
}

/// [`ToolNames`] as a flag.
#[derive(clap::ValueEnum, Clone, Copy)]
enum ToolNamesArg {
    /// search(query), click(target), view_page()
    Webshop,
    /// search(keywords), click(item), view_page()
    Agentgym,
    /// search_action(keywords), click_action(value), view_page()
    Agentbench,
}

impl From<ToolNamesArg> for ToolNames {
    fn from(names: ToolNamesArg) -> ToolNames {
        match names {
            ToolNamesArg::Webshop => ToolNames::WebShop,
            ToolNamesArg::Agentgym => ToolNames::AgentGym,
            ToolNamesArg::Agentbench => ToolNames::AgentBench,
        }
    }
}

/// Serves until the client leaves.
pub(crate) fn run(args: McpArgs) -> anyhow::Result<ExitCode> {
    let goal = match args.goal {
        Some(goal) => GoalRequest::Goal(goal),
        None => GoalRequest::Seed { split: None, seed: args.seed },
    };
    let defaults = Defaults {
        split: args.split.into(),
        max_steps: args.max_steps,
        observation: args.observation.into(),
        seed: Seed(args.seed),
    };
    let shop = Arc::new(args.shop.open_split_by(args.split_rule)?);
    serve_stdio(shop, defaults, &ResetRequest::new(goal), args.tools.into())?;
    Ok(ExitCode::SUCCESS)
}
