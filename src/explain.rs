//! `webshop explain`: what a purchase is worth, and why.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Number;
use webshop_env::{Shop, VerboseInfo};
use webshop_products::{GoalRecord, Product, ProductIdx, RecordedOptions, Selection};

use crate::answer::answer;
use crate::lines;
use crate::rules::RulesArgs;

/// Flags of `webshop explain`.
#[derive(clap::Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    rules: RulesArgs,
    /// The goal, by its number
    #[arg(long, value_name = "N", required_unless_present = "batch", conflicts_with = "batch")]
    goal: Option<u32>,
    /// The product that is bought [default: the goal's own]
    #[arg(long, value_name = "ASIN", conflicts_with = "batch")]
    buy: Option<String>,
    /// A choice that is made of it; may be repeated
    #[arg(long = "option", value_name = "NAME=VALUE", conflicts_with = "batch")]
    options: Vec<String>,
    /// Judge the purchases on standard input, a JSON object a line, as the original records its rewards
    #[arg(long)]
    batch: bool,
}

/// One purchase of a batch; the names are those of the original's recorded rewards.
#[derive(Deserialize)]
struct Bought {
    purchased_asin: String,
    #[serde(default)]
    options: Selection,
    /// What was paid, in dollars, if not what the catalog says.
    price: Option<f64>,
    attributes: Vec<String>,
    goal_options: RecordedOptions,
    price_upper: Number,
    goal_query: String,
    goal_name: String,
    goal_product_category: String,
}

/// What a purchase of a batch is worth.
#[derive(Serialize)]
struct Judged {
    purchased_asin: String,
    reward: f64,
    num_attr_matches: u32,
    num_option_matches: u32,
    info: VerboseInfo,
}

/// Explains one purchase, or judges many.
pub fn run(args: ExplainArgs) -> Result<ExitCode> {
    let shop = args.rules.open()?;
    if args.batch {
        lines::each_in_stdin(|bought| answer!("{}", serde_json::to_string(&judge(&shop, bought)?)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let number = args.goal.context("no goal is named")?;
    let goals = shop.goals().goals();
    let Some(goal) = goals.get(number as usize) else {
        bail!("there is no goal `{number}`: the goals are numbered 0 to {}", goals.len().saturating_sub(1));
    };
    let at = args.buy.as_deref().map_or(Ok(goal.product), |asin| sold(&shop, asin))?;
    let product = shop.catalog().get(at);
    let selection = chosen(product, &args.options)?;
    let explanation = shop.explain_reward(goal, at, &selection);
    answer!("goal {}: {}", goal.id.0, goal.instruction)?;
    answer!("bought: {} {}, {}", product.id, product.title, product.price.tag)?;
    for (name, value) in selection.iter() {
        answer!("  {name}: {value}")?;
    }
    answer!("\n{}", explanation.to_string().trim_end())?;
    Ok(ExitCode::SUCCESS)
}

fn judge(shop: &Shop, bought: Bought) -> Result<Judged> {
    let product = sold(shop, &bought.purchased_asin)?;
    let goal = GoalRecord {
        asin: bought.purchased_asin.clone(),
        category: String::new(),
        query: bought.goal_query,
        name: bought.goal_name,
        product_category: bought.goal_product_category,
        instruction_text: String::new(),
        attributes: bought.attributes,
        price_upper: bought.price_upper,
        goal_options: bought.goal_options,
        weight: 1.into(),
    };
    let limit = goal.price_upper.as_f64().context("`price_upper` is no number")?;
    let goal = goal.to_goal_for(product, shop.catalog());
    let mut counts = shop.reward(&goal, product, &bought.options);
    if let Some(price) = bought.price {
        counts.price_ok = price <= limit;
    }
    Ok(Judged {
        purchased_asin: bought.purchased_asin,
        reward: counts.total(),
        num_attr_matches: counts.attribute_matches,
        num_option_matches: counts.option_matches,
        info: VerboseInfo::from(&counts),
    })
}

fn sold(shop: &Shop, asin: &str) -> Result<ProductIdx> {
    shop.catalog().find(asin).with_context(|| format!("the catalog does not sell `{asin}`"))
}

/// The choices `name=value`, which the product must offer.
fn chosen(product: &Product, options: &[String]) -> Result<Selection> {
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

fn listed<'a>(offered: impl Iterator<Item = &'a str>) -> String {
    let offered: Vec<String> = offered.map(|text| format!("`{text}`")).collect();
    if offered.is_empty() { "none".into() } else { offered.join(", ") }
}
