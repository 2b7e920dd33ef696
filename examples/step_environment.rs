//! Steps the environment by hand: one goal, from the search to the purchase.
//!
//! ```text
//! cargo run --example step_environment
//! ```

use std::error::Error;
use std::sync::Arc;

use webshop_env::{Action, Compat, EnvConfig, Shop, ShopEnv};
use webshop_products::{CatalogSource, GoalId, SourceConfig};

fn main() -> Result<(), Box<dyn Error>> {
    // The embedded catalog of 100 products and its goals.
    let (catalog, goals) = CatalogSource::open("100", SourceConfig::default())?.into_goals()?;
    let shop = Arc::new(Shop::new(catalog, goals)?);
    let goal = shop.goals().get(GoalId(3)).clone();
    println!("instruction: {}", goal.instruction);

    let mut env = ShopEnv::new(shop, EnvConfig::default());
    let mut observation = env.reset(GoalId(3));
    let mut n_steps = 0;
    loop {
        println!("\n{}", observation.content());
        // Search for the instruction, open the first result, buy it. Actions are parsed from text.
        let available = observation.available_actions();
        let has = |label: &str| available.clickables.iter().any(|clickable| clickable == label);
        let text = if available.has_search_bar {
            format!("search[{}]", goal.instruction)
        } else if has("buy now") {
            "click[buy now]".to_owned()
        } else {
            let is_product = |label: &&String| label.starts_with('b') && label.len() == 10;
            let product = available.clickables.iter().find(is_product).ok_or("no product is listed")?;
            format!("click[{product}]")
        };
        println!("> {text}");
        let step = env.step(&Action::parse(&text, Compat::default()));
        n_steps += 1;
        if step.terminated || step.truncated {
            println!("\nreward {:.3} after {n_steps} steps", step.reward);
            assert!((0.0..=1.0).contains(&step.reward));
            return Ok(());
        }
        observation = step.observation;
    }
}
