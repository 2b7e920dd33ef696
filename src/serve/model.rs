//! Flags of the language model that `webshop serve` serves beside the shop.

use std::path::PathBuf;

use anyhow::bail;
use webshop_agent::PromptFormat;
use webshop_products::Seed;
use webshop_serve::ModelConfig;
use webshop_training::{GenerationOptions, TrainedModel};

use crate::args::compute::ComputeArgs;

/// Requests that wait for the model; more are refused, and a client may try again.
const MAX_WAITING: usize = 256;

/// The model and how it generates.
#[derive(clap::Args)]
#[command(next_help_heading = "Language model")]
pub(crate) struct ModelArgs {
    /// Model to serve at `/v1`, with OpenAI's interface: `base`, a run folder, a checkpoint in it, or a
    /// model folder
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Name of the model in requests
    #[arg(long, value_name = "NAME", default_value = "webshop", requires = "model")]
    model_name: String,
    /// Layout of chats: `compact` and `text` as in training, any other format by the checkpoint's chat template [default:
    /// as for `rollout --checkpoint`]
    #[arg(long, value_name = "NAME", requires = "model")]
    prompt_format: Option<PromptFormat>,
    /// Maximum context in tokens: prompt and completion together [default: the checkpoint's; 8192 for a chat
    /// model]
    #[arg(long, value_name = "N", requires = "model", value_parser = clap::value_parser!(u32).range(1..))]
    max_context: Option<u32>,
    /// Completions that are generated together, if there is memory for them
    #[arg(long, value_name = "N", default_value_t = 16, requires = "model",
          value_parser = clap::value_parser!(u16).range(1..))]
    lanes: u16,
    #[command(flatten)]
    compute: ComputeArgs,
}

impl ModelArgs {
    /// Loads the model; `None` without `--model`. `seed` is that of completions that name none.
    pub(crate) fn load(&self, seed: Seed) -> anyhow::Result<Option<ModelConfig>> {
        let Some(folder) = &self.model else {
            if let Some(flag) = self.compute.given() {
                bail!("`{flag}` is of the model that is served, and needs `--model`");
            }
            return Ok(None);
        };
        let options = GenerationOptions {
            prompt_format: self.prompt_format,
            max_context: self.max_context.map(|n| n as usize),
            ..GenerationOptions::default()
        };
        let loaded = TrainedModel::load(folder)?.into_policy(options, &self.compute.choose()?)?;
        let lanes = loaded.lanes().min(usize::from(self.lanes));
        Ok(Some(ModelConfig {
            name: self.model_name.clone(),
            max_context: loaded.config.max_context,
            engine: loaded.engine,
            tokenizer: loaded.tokenizer,
            format: loaded.format.into_chat(),
            lanes,
            max_waiting: MAX_WAITING,
            fingerprint: loaded.fingerprint,
            seed,
        }))
    }
}
