//! `webshop search`: runs the shop's search engine.

use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use webshop_env::{Hit, Shop, analyze};

use crate::args::rules::RulesArgs;
use crate::jsonl;
use crate::output::outln;

/// Flags of `webshop search`.
#[derive(clap::Args)]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    rules: RulesArgs,
    /// Search query
    #[arg(required_unless_present = "batch", conflicts_with = "batch")]
    query: Option<String>,
    /// Read one JSON object `{"q": QUERY}` per line of standard input; print one per line with query terms,
    /// product ids and exact BM25 scores
    #[arg(long, conflicts_with_all = ["explain", "top", "json"])]
    batch: bool,
    /// Print the BM25 score of each hit term by term
    #[arg(long)]
    explain: bool,
    /// Maximum number of hits to print; a search returns at most 50
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// One query of a batch.
#[derive(Deserialize)]
struct Query {
    q: String,
}

/// The hits of a query of a batch.
#[derive(Serialize)]
struct Found {
    q: String,
    tokens: Vec<String>,
    ids: Vec<String>,
    /// 32-bit floats, without rounding.
    scores: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Searches and prints.
pub(crate) fn run(args: SearchArgs) -> Result<ExitCode> {
    let shop = args.rules.open()?;
    if args.batch {
        jsonl::for_each_in_stdin(|Query { q }| outln!("{}", serde_json::to_string(&find(&shop, q))?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let query = args.query.as_deref().context("no query is given")?;
    let hits = shop.try_search(query)?;
    let shown = &hits[..hits.len().min(args.top)];
    if args.json {
        let rows: Vec<Value> = shown.iter().map(|hit| hit_json(&shop, hit)).collect();
        outln!("{}", json!({"query": query, "total": hits.len(), "hits": rows}))?;
        return Ok(ExitCode::SUCCESS);
    }
    outln!("{} hits for `{query}`", hits.len())?;
    for (rank, hit) in shown.iter().enumerate() {
        let product = shop.catalog().get(hit.product);
        outln!(
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
                outln!("     {line}")?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn hit_json(shop: &Shop, hit: &Hit) -> Value {
    let product = shop.catalog().get(hit.product);
    json!({
        "asin": product.id.as_str(),
        "score": hit.score,
        "title": product.title,
        "price": product.price.tag,
    })
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
