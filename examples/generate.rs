//! Loads a model folder in the Hugging Face layout and continues a chat.
//!
//! ```text
//! cargo run --release --example generate -- Qwen2.5-0.5B-Instruct "What is a brass desk lamp?"
//! ```
//!
//! Without arguments it writes a tiny model with random weights into a temporary folder and loads that.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use webshop_lm::chat::{ChatTemplate, TemplateInput};
use webshop_lm::{BpeTokenizer, Context, Generator, GeneratorConfig, Qwen2, Qwen2Config, Request, Sampler};
use webshop_lm::{SamplingCoordinates, checkpoint};
use webshop_products::Seed;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let temporary = tempfile::tempdir()?;
    let folder = match arguments.next() {
        Some(folder) => Path::new(&folder).to_owned(),
        None => write_tiny_model(temporary.path())?,
    };
    let question = arguments.next().unwrap_or_else(|| "a black lamp".to_owned());
    let model = checkpoint::load(&folder)?;
    let tokenizer = BpeTokenizer::load(&folder)?;
    let stop_tokens = checkpoint::StopTokens::load(&folder, model.config(), &tokenizer)?;
    let messages = vec![json!({"role": "user", "content": question})];
    let input = TemplateInput { messages, add_generation_prompt: true, ..TemplateInput::default() };
    let prompt = ChatTemplate::load(&folder)?.render(&input)?;
    let config = GeneratorConfig {
        n_lanes: 1,
        capacity: 512,
        sampler: Sampler::new(0.7, 0.9)?,
        seed: Seed(0),
        stop_ids: stop_tokens.ids().to_vec(),
        certainty: None,
    };
    let request = Request {
        lane: 0,
        context: Context::Continue,
        prompt_ids: tokenizer.encode(&prompt)?,
        coordinates: SamplingCoordinates::default(),
        constraint: None,
        max_new_tokens: 64,
    };
    let mut generator = Generator::new(Arc::new(model.into_decoder()?), config)?;
    let completion = generator.generate(&[request])?.remove(0);
    println!("{prompt}{}", tokenizer.decode(&completion.ids));
    Ok(())
}

fn write_tiny_model(folder: &Path) -> Result<std::path::PathBuf, Box<dyn Error>> {
    let tokenizer = BpeTokenizer::train_like_qwen(["a black lamp", "the black lamp"], 300)?;
    let shape = tokenizer.save_like_qwen(folder, &Qwen2Config::small(tokenizer.vocab_size()))?;
    checkpoint::save(&Qwen2::random(&shape, Seed(0))?, folder)?;
    Ok(folder.to_owned())
}
