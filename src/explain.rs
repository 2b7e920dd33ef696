//! `webshop explain`: how the reward of a purchase is computed.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Number;
use webshop_env::{Shop, VerboseInfo};
use webshop_products::{GoalRecord, Product, ProductIdx, RecordedOptions, Selection};

use crate::args::rules::RulesArgs;
use crate::jsonl;
use crate::output::outln;

/// Flags of `webshop explain`.
#[derive(clap::Args)]
#[command(after_help = "Example: webshop explain --goal 3 --buy ASIN --option color=red")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    rules: RulesArgs,
    /// Number of the goal, from 0
    #[arg(long, value_name = "N", required_unless_present = "batch", conflicts_with = "batch")]
    goal: Option<u32>,
    /// Product to buy [default: the goal's own product]
    #[arg(long, value_name = "ASIN", conflicts_with = "batch")]
    buy: Option<String>,
    /// Selected value of an option of the product, such as `--option color=red`; repeatable
    #[arg(long = "option", value_name = "NAME=VALUE", conflicts_with = "batch")]
    options: Vec<String>,
    /// Read one purchase per line of standard input, a JSON object with the goal's fields and the choices as
    /// the original names them; print one JSON object with the reward per line
    #[arg(long)]
    batch: bool,
}

/// One purchase of a batch; the names are those of the original program.
#[derive(Deserialize)]
struct Purchase {
    purchased_asin: String,
    #[serde(default)]
    options: Selection,
    /// Price in dollars, if not the catalog's.
    price: Option<f64>,
    attributes: Vec<String>,
    goal_options: RecordedOptions,
    price_upper: Number,
    goal_query: String,
    goal_name: String,
    goal_product_category: String,
}

/// The reward of a purchase of a batch.
#[derive(Serialize)]
struct Rewarded {
    purchased_asin: String,
    reward: f64,
    num_attr_matches: u32,
    num_option_matches: u32,
    info: VerboseInfo,
}

/// Explains the reward of one purchase, or computes those of a batch.
pub(crate) fn run(args: ExplainArgs) -> Result<ExitCode> {
    let shop = args.rules.open()?;
    if args.batch {
        jsonl::for_each_in_stdin(|purchase| outln!("{}", serde_json::to_string(&reward(&shop, purchase)?)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let number = args.goal.context("no goal is given")?;
    let goals = shop.goals();
    let goal = goals.get(goals.find(number.into())?);
    let product_idx = args.buy.as_deref().map_or(Ok(goal.product), |asin| find(&shop, asin))?;
    let product = shop.catalog().get(product_idx);
    let selection = select(product, &args.options)?;
    let explanation = shop.explain_reward(goal, product_idx, &selection);
    outln!("goal {}: {}", goal.id.0, goal.instruction)?;
    outln!("product: {} {}, {}", product.id, product.title, product.price.tag)?;
    for (name, value) in selection.iter() {
        outln!("  {name}: {value}")?;
    }
    outln!("\n{}", explanation.to_string().trim_end())?;
    Ok(ExitCode::SUCCESS)
}

fn reward(shop: &Shop, purchase: Purchase) -> Result<Rewarded> {
    let product = find(shop, &purchase.purchased_asin)?;
    let goal = GoalRecord {
        asin: purchase.purchased_asin.clone(),
        category: String::new(),
        query: purchase.goal_query,
        name: purchase.goal_name,
        product_category: purchase.goal_product_category,
        instruction_text: String::new(),
        attributes: purchase.attributes,
        price_upper: purchase.price_upper,
        goal_options: purchase.goal_options,
        weight: 1.into(),
    };
    let limit = goal.price_upper.as_f64().context("`price_upper` is not a number")?;
    let goal = goal.to_goal_for(product, shop.catalog());
    let mut counts = shop.reward(&goal, product, &purchase.options);
    if let Some(price) = purchase.price {
        counts.price_ok = price <= limit;
    }
    Ok(Rewarded {
        purchased_asin: purchase.purchased_asin,
        reward: counts.total(),
        num_attr_matches: counts.attribute_matches,
        num_option_matches: counts.option_matches,
        info: VerboseInfo::from(&counts),
    })
}

fn find(shop: &Shop, asin: &str) -> Result<ProductIdx> {
    shop.catalog().find(asin).with_context(|| format!("the catalog has no product `{asin}`"))
}

/// Parses `NAME=VALUE` options; the product must have them.
fn select(product: &Product, options: &[String]) -> Result<Selection> {
    let mut selection = Selection::new();
    for option in options {
        let (name, value) =
            option.split_once('=').with_context(|| format!("`{option}` is not of the form `NAME=VALUE`"))?;
        let Some(group) = product.options.iter().find(|group| *group.name == *name) else {
            let names = product.options.iter().map(|group| &*group.name);
            bail!("`{}` has no option `{name}`; it has {}", product.id, listed(names));
        };
        let values = group.values.iter().map(|value| &*value.text);
        if !values.clone().any(|offered| offered == value) {
            bail!(
                "the option `{name}` of `{}` has no value `{value}`; it has {}",
                product.id,
                listed(values)
            );
        }
        selection.choose(name, value);
    }
    Ok(selection)
}

/// Quoted and joined by commas, or `none`.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
