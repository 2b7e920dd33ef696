//! Opens a shop with products of one's own: two JSON records in the original's format, one goal.
//!
//! ```text
//! cargo run --example own_catalog
//! ```
//!
//! `--catalog DIR` of the command line reads the same folder.

use std::error::Error;
use std::fs;

use webshop_env::Shop;
use webshop_products::{CatalogSource, GoalId, GoalKind, SourceConfig};

const PRODUCTS: &str = r#"[
  {"asin": "B0LAMP0001", "name": "Brass Desk Lamp with Dimmer", "full_description": "A lamp for the desk.",
   "small_description": ["Dimmable"], "pricing": "$34.99", "images": ["lamp.jpg"], "category": "home",
   "query": "lamps", "product_category": "Home › Lighting › Lamps",
   "customization_options": {"Color": [{"value": "Brass", "image": null}, {"value": "Gold", "image": null}]}},
  {"asin": "B0LAMP0002", "name": "Paper Floor Lamp", "full_description": "A lamp for the corner.",
   "small_description": [], "pricing": "$21.00", "images": ["paper.jpg"], "category": "home",
   "query": "lamps", "product_category": "Home › Lighting › Lamps", "customization_options": {}}
]"#;
const ATTRIBUTES: &str = r#"{
  "B0LAMP0001": {"attributes": ["dimmable"], "instruction": "Find me a desk lamp that is dimmable",
                 "instruction_attributes": ["dimmable"]},
  "B0LAMP0002": {"attributes": ["foldable"]}
}"#;
const HUMAN_INSTRUCTIONS: &str = r#"{
  "B0LAMP0001": [{"asin": "B0LAMP0001", "instruction": "i want a dimmable brass desk lamp under 40 dollars",
                  "attributes": ["desk lamp"], "options": ["color: brass"],
                  "instruction_attributes": ["dimmable"], "instruction_options": ["brass"],
                  "assignment_id": "1", "worker_id": "1"}]
}"#;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("items_shuffle.json"), PRODUCTS)?;
    fs::write(folder.path().join("items_ins_v2.json"), ATTRIBUTES)?;
    fs::write(folder.path().join("items_human_ins.json"), HUMAN_INSTRUCTIONS)?;

    let config = SourceConfig { goals: GoalKind::Human, ..SourceConfig::default() };
    let path = folder.path().to_str().ok_or("a temporary folder has a plain name")?;
    let (catalog, goals) = CatalogSource::open(path, config)?.into_goals()?;
    let shop = Shop::new(catalog, goals)?;
    println!("{} products, goal 0: {}", shop.catalog().len(), shop.goals().get(GoalId(0)).instruction);
    for hit in shop.search("dimmable lamp") {
        let product = shop.catalog().get(hit.product);
        println!("{:.3}  {}  {}", hit.score, product.id, product.title);
    }
    Ok(())
}
