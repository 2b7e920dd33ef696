//! The model that a run trains, with all it needs to shop: where it comes from, how it is kept, who it once was.
//!
//! An [`PolicyModel`] begins as random weights of the configured shape with a tokenizer made for the shop, or as a model
//! folder (`[model] from`), with an adapter on it if `[model] lora_rank` asks for one. In a checkpoint it is a model
//! folder; of an adapted one only the adapter is written, in PEFT's layout, and the weights stay where they came from.
//!
//! It takes no step: who learns is [`Qwen2::learnable`], how is the optimizer's.

use std::path::Path;

use webshop_lm::checkpoint;
use webshop_lm::checkpoint::Companions;
use webshop_lm::lora::{Lora, LoraConfig};
use webshop_agent::compact::PROMPT_VERSION;
use webshop_agent::{DemonstrationRenderer, ChatFormat, PromptFormat, SingleStepSampler, LmConfig, LmPolicy};
use webshop_lm::{Engine, Qwen2, BpeTokenizer};
use webshop_products::Seed;

use crate::config::{Config, ModelConfig};
use crate::error::{Result, TrainingError};
use crate::data::task_set::TaskSet;
use crate::setup::limits::{lm_config, qwen2_config};
use crate::setup::tokenizer::train_tokenizer;
use crate::model::load::{TrainedModel, knows_compact, load_weights};

/// A model in training.
#[derive(Debug)]
pub(crate) struct PolicyModel {
    /// The weights, and the adapter if it is one that learns.
    pub model: Qwen2,
    /// What text becomes.
    pub tokenizer: BpeTokenizer,
    /// How it chats; `None` in the plain prompt format.
    format: Option<ChatFormat>,
    /// Files of the folder it comes from.
    companions: Option<Companions>,
}

impl PolicyModel {
    /// As a new run begins with it.
    pub fn begin(config: &Config, task_set: &TaskSet) -> Result<Self> {
        let seed = Seed(config.seed);
        if config.model.from.is_empty() {
            let tokenizer = train_tokenizer(task_set, config)?;
            let shape = qwen2_config(&config.model, tokenizer.vocab_size(), config.prompt.max_context);
            if config.prompt.format == PromptFormat::Compact {
                return Self::new(config, Qwen2::random(&shape, seed)?, tokenizer, None);
            }
            // A chat is read from the files of a model folder, also where there is none yet.
            let folder =
                tempfile::tempdir().map_err(|e| TrainingError::io("create", &std::env::temp_dir(), e))?;
            tokenizer.save(folder.path())?;
            return Self::new(config, Qwen2::random(&shape, seed)?, tokenizer, Some(folder.path()));
        }
        let TrainedModel { model, tokenizer, folder, .. } = TrainedModel::load(Path::new(&config.model.from))?;
        // Weights that have an adapter are, with it, the base of what is learned now.
        let model = model.merged()?;
        let model = match lora_config(&config.model) {
            Some(lora) => model.adapted(Lora::random(&model.matrices(), &lora, seed)?)?,
            None => model,
        };
        Self::new(config, model, tokenizer, Some(&folder))
    }

    /// As a checkpoint of the run left it in `folder`.
    pub fn resume(config: &Config, folder: &Path) -> Result<Self> {
        let tokenizer = BpeTokenizer::load(folder)?;
        Self::new(config, load_weights(folder)?, tokenizer, Some(folder))
    }

    fn new(config: &Config, model: Qwen2, tokenizer: BpeTokenizer, folder: Option<&Path>) -> Result<Self> {
        let positions = model.config().max_position_embeddings;
        let context = config.prompt.max_context;
        if context > positions {
            let problem = format!("must be at most the model's {positions} positions, not {context}");
            return Err(TrainingError::InvalidValue { key: "prompt.max_context".into(), problem });
        }
        let format = match (config.prompt.format, folder) {
            (PromptFormat::Compact, _) if !knows_compact(&tokenizer) => {
                let problem = format!(
                    "must be a chat's, such as `{}`: the vocabulary of `{}` was not made for `plain`",
                    PromptFormat::VerlAgent,
                    config.model.from
                );
                return Err(TrainingError::InvalidValue { key: "prompt.format".into(), problem });
            }
            (PromptFormat::Compact, _) | (_, None) => None,
            (dialect, Some(folder)) => Some(ChatFormat::load(folder, dialect, model.config(), &tokenizer)?),
        };
        let model = if config.rl.recompute { model.recomputing() } else { model };
        let companions = folder.map(Companions::read).transpose()?;
        Ok(Self { model, tokenizer, format, companions })
    }

    /// A customer who is computed by `engine`.
    pub fn policy(&self, engine: impl Into<Engine>, lm: LmConfig, seed: Seed) -> Result<LmPolicy<'_>> {
        Ok(match &self.format {
            None => LmPolicy::compact(engine, &self.tokenizer, lm, seed)?,
            Some(format) => LmPolicy::chat(engine, &self.tokenizer, format, lm, seed)?,
        })
    }

    /// Who asks about single steps, and draws completions so; `None` where they cannot be judged one by one.
    pub fn single_step_sampler(&self, lm: &LmConfig) -> Result<Option<SingleStepSampler<'_>>> {
        let format = self.format.as_ref().filter(|format| format.prompt_format.is_shop_r1());
        Ok(format.map(|format| SingleStepSampler::new(&self.tokenizer, format, lm)).transpose()?)
    }

    /// Who puts demonstrations into the tokens of a chat; `None` in the plain prompt format.
    pub fn demonstrator(&self, config: &Config) -> Result<Option<DemonstrationRenderer<'_>>> {
        let Some(format) = &self.format else { return Ok(None) };
        let (lm, max_steps) = (lm_config(config, 1.0, 1.0)?, config.run.max_steps as u32);
        Ok(Some(DemonstrationRenderer::new(&self.tokenizer, format, &lm, max_steps)?))
    }

    /// Version of how pages are told.
    pub fn prompt_version(&self) -> Result<String> {
        Ok(match &self.format {
            None => PROMPT_VERSION.into(),
            Some(format) => format.version()?,
        })
    }

    /// Digest of the weights that stay, where an adapter learns; else empty.
    pub fn base(&self) -> Result<String> {
        Ok(match self.model.adapter() {
            Some(_) => self.model.base().fingerprint()?,
            None => String::new(),
        })
    }

    /// Writes it into a folder, from which [`PolicyModel::resume`] has it back.
    pub fn save(&self, folder: &Path) -> Result<()> {
        match self.model.adapter() {
            Some(adapter) => {
                adapter.save(folder)?;
                checkpoint::save_config(self.model.config(), folder)?;
            }
            None => checkpoint::save(&self.model, folder)?,
        }
        match &self.companions {
            Some(companions) => companions.write(folder)?,
            None => self.tokenizer.save(folder)?,
        }
        Ok(())
    }

    /// The model that [`PolicyModel::save`] left in `folder`, which no step moves. Weights that do not learn are shared.
    pub fn frozen(&self, folder: &Path) -> Result<Qwen2> {
        Ok(match self.model.adapter() {
            Some(_) => self.model.adapted(Lora::load(folder, &self.model.matrices())?)?,
            None => checkpoint::load(folder)?,
        })
    }
}

/// The adapter that is asked for.
fn lora_config(config: &ModelConfig) -> Option<LoraConfig> {
    let targets: Vec<&str> = config.lora_targets.iter().map(String::as_str).collect();
    let lora = || LoraConfig::new(config.lora_rank, config.lora_alpha, &targets).with_base(&config.from);
    (config.lora_rank > 0).then(lora)
}
