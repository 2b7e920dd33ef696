//! `webshop search`: what the shop's search engine finds, and why.

use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;
use webshop_env::{Shop, analyze};

use crate::answer::answer;
use crate::lines;
use crate::rules::RulesArgs;

/// Flags of `webshop search`.
#[derive(clap::Args)]
pub struct SearchArgs {
    #[command(flatten)]
    rules: RulesArgs,
    /// The words to search for
    #[arg(required_unless_present = "batch", conflicts_with = "batch")]
    query: Option<String>,
    /// Search for every `q` on standard input, a JSON object a line, and answer each with terms, products
    /// and exact scores
    #[arg(long, conflicts_with_all = ["explain", "top", "json"])]
    batch: bool,
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

/// One query of a batch.
#[derive(Deserialize)]
struct Query {
    q: String,
}

/// What a query of a batch finds.
#[derive(Serialize)]
struct Found {
    q: String,
    tokens: Vec<String>,
    ids: Vec<String>,
    /// Each an exact 32-bit float.
    scores: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Searches and prints.
pub fn run(args: SearchArgs) -> Result<ExitCode> {
    let shop = args.rules.open()?;
    if args.batch {
        lines::each_in_stdin(|Query { q }| answer!("{}", serde_json::to_string(&find(&shop, q))?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let query = args.query.as_deref().context("there are no words to search for")?;
    let hits = shop.search(query);
    let shown = &hits[..hits.len().min(args.top)];
    if args.json {
        let rows: Vec<_> = shown
            .iter()
            .map(|hit| {
                let product = shop.catalog().get(hit.product);
                json!({"asin": product.id.as_str(), "score": hit.score, "title": product.title, "price": product.price.tag})
            })
            .collect();
        answer!("{}", json!({"query": query, "total": hits.len(), "hits": rows}))?;
        return Ok(ExitCode::SUCCESS);
    }
    answer!("{} hits for `{query}`", hits.len())?;
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
            let explanation = shop.explain(query, hit.product)?;
            for line in explanation.to_string().lines() {
                answer!("     {line}")?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn find(shop: &Shop, q: String) -> Found {
    let tokens = analyze(&q);
    let (hits, error) = match shop.try_search(&q) {
        Ok(hits) => (hits, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    Found {
        q,
        tokens,
        ids: hits.iter().map(|hit| shop.catalog().get(hit.product).id.to_string()).collect(),
        scores: hits.iter().map(|hit| f64::from(hit.score)).collect(),
        error,
    }
}
