//! `webshop search`: what the shop's search engine finds, and why.

use std::process::ExitCode;

use anyhow::anyhow;
use serde_json::json;

use crate::answer::answer;
use crate::shop::ShopArgs;

/// Flags of `webshop search`.
#[derive(clap::Args)]
pub struct SearchArgs {
    #[command(flatten)]
    shop: ShopArgs,
    /// The words to search for
    query: String,
    /// Print the BM25 formula of each hit with its numbers
    #[arg(long)]
    explain: bool,
    /// Show at most N hits; the shop never returns more than 50
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Searches and prints.
pub fn run(args: SearchArgs) -> anyhow::Result<ExitCode> {
    let shop = args.shop.open()?;
    let hits = shop.search(&args.query);
    let shown = &hits[..hits.len().min(args.top)];
    if args.json {
        let rows: Vec<_> = shown
            .iter()
            .map(|hit| {
                let product = shop.catalog().get(hit.product);
                json!({"asin": product.id.as_str(), "score": hit.score, "title": product.title, "price": product.price.tag})
            })
            .collect();
        answer!("{}", json!({"query": args.query, "total": hits.len(), "hits": rows}))?;
        return Ok(ExitCode::SUCCESS);
    }
    answer!("{} hits for `{}`", hits.len(), args.query)?;
    for (rank, hit) in shown.iter().enumerate() {
        let product = shop.catalog().get(hit.product);
        answer!(
            "{:>3}  {:>9.5}  {}  {}  {}",
            rank + 1,
            hit.score,
            product.id,
            product.title,
            product.price.tag
        )?;
        if args.explain {
            let explanation = shop.explain(&args.query, hit.product).map_err(|error| anyhow!("{error:?}"))?;
            for line in explanation.to_string().lines() {
                answer!("     {line}")?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
