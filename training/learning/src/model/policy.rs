//! The model that a run trains, with its tokenizer and prompt format: creation, saving, resuming.
//!
//! A [`PolicyModel`] starts with random weights of the configured shape and a tokenizer trained for the shop,
//! or from a model folder (`model.from`), with an adapter if `model.lora_rank` is not 0. A checkpoint stores
//! it as a model folder. Of a model with an adapter only the adapter is written, in PEFT's layout; the base
//! weights stay in their folder. [`Qwen2::learnable`] are the trained parameters; the optimizer updates them.

use std::path::Path;

use webshop_agent::{
    ChatFormat, CompletionSampler, DemonstrationRenderer, Layout, LmConfig, LmPolicy, ModelFormat,
    PromptFormat, SingleStepEncoder,
};
use webshop_lm::checkpoint;
use webshop_lm::checkpoint::Companions;
use webshop_lm::lora::{Lora, LoraConfig};
use webshop_lm::{BpeTokenizer, Engine, Qwen2};
use webshop_products::Seed;

use crate::config::{Config, ModelConfig, PromptConfig};
use crate::data::few_shot::worked_examples;
use crate::data::step_format::{LayoutSteps, StepFormat};
use crate::data::task_set::TaskSet;
use crate::error::{Result, TrainingError};
use crate::model::load::{TrainedModel, knows_layouts, load_weights};
use crate::setup::limits::{lm_config, qwen2_config};
use crate::setup::tokenizer::train_tokenizer;

/// A model in training.
#[derive(Debug)]
pub(crate) struct PolicyModel {
    /// The weights, with the adapter if there is one.
    pub(crate) model: Qwen2,
    /// The tokenizer.
    pub(crate) tokenizer: BpeTokenizer,
    /// How it is prompted.
    format: ModelFormat,
    /// Other files of the folder it was loaded from.
    companions: Option<Companions>,
}

/// Renders demonstrations.
#[derive(Clone, Debug)]
pub(crate) enum Demonstrator<'a> {
    /// In a layout.
    Layout(Layout),
    /// In a chat format.
    Chat(DemonstrationRenderer<'a>),
}

impl Demonstrator<'_> {
    /// The layout; `None` of a chat format.
    pub(crate) fn layout(&self) -> Option<Layout> {
        match self {
            Self::Layout(layout) => Some(*layout),
            Self::Chat(_) => None,
        }
    }
}

impl PolicyModel {
    /// The model of a new run.
    pub(crate) fn begin(config: &Config, task_set: &TaskSet) -> Result<Self> {
        let seed = Seed(config.seed);
        if config.model.from.is_empty() {
            let tokenizer = train_tokenizer(task_set, config)?;
            let shape = qwen2_config(&config.model, tokenizer.vocab_size(), config.prompt.max_context);
            let model = Qwen2::random(&shape, seed)?;
            if !config.prompt.format.is_chat() {
                return Self::new(config, model, tokenizer, None);
            }
            // A chat format is loaded from the files of a model folder, so random weights get a temporary
            // one.
            let folder =
                tempfile::tempdir().map_err(|e| TrainingError::io("create", &std::env::temp_dir(), e))?;
            tokenizer.save(folder.path())?;
            return Self::new(config, model, tokenizer, Some(folder.path()))?.prompted(config, task_set);
        }
        let TrainedModel { model, tokenizer, folder, .. } =
            TrainedModel::load(Path::new(&config.model.from))?;
        // An adapter of the loaded model is merged into the base weights.
        let model = model.merged()?;
        let model = match lora_config(&config.model) {
            Some(lora) => model.adapted(Lora::random(&model.matrices(), &lora, seed)?)?,
            None => model,
        };
        Self::new(config, model, tokenizer, Some(folder.path()))?.prompted(config, task_set)
    }

    /// The same with the configured few-shot examples in its prompts.
    fn prompted(mut self, config: &Config, task_set: &TaskSet) -> Result<Self> {
        if let Some(format) = self.format.chat_mut().filter(|_| config.prompt.few_shot > 0) {
            format.few_shot = worked_examples(config, task_set, format.prompt_format)?;
        }
        let (n_examples, limits) = (self.n_example_tokens()?, &config.prompt);
        if n_examples + limits.max_turn_tokens < limits.max_context {
            return Ok(self);
        }
        let problem = format!(
            "must leave room for a page: the examples have {n_examples} tokens, a completion up to {}, and \
             `prompt.max_context` is {}",
            limits.max_turn_tokens, limits.max_context
        );
        Err(TrainingError::InvalidValue { key: "prompt.few_shot".into(), problem })
    }

    /// Tokens of the few-shot examples in front of every prompt.
    pub(crate) fn n_example_tokens(&self) -> Result<usize> {
        let format = self.format.chat();
        Ok(format.map(|format| format.n_example_tokens(&self.tokenizer)).transpose()?.unwrap_or_default())
    }

    /// The model that a checkpoint of the run saved in `folder`.
    pub(crate) fn resume(config: &Config, folder: &Path) -> Result<Self> {
        let tokenizer = BpeTokenizer::load(folder)?;
        Self::new(config, load_weights(folder)?, tokenizer, Some(folder))
    }

    fn new(config: &Config, model: Qwen2, tokenizer: BpeTokenizer, folder: Option<&Path>) -> Result<Self> {
        let PromptConfig { format, max_context, .. } = config.prompt;
        let (model, format) = match (format.layout(config.prompt.compact()), folder) {
            (Some(_), _) if !knows_layouts(&tokenizer) => {
                let problem = format!(
                    "must be a chat format such as `{}`: the vocabulary of `{}` was not made for `{format}`",
                    PromptFormat::VerlAgent,
                    config.model.from
                );
                return Err(TrainingError::InvalidValue { key: "prompt.format".into(), problem });
            }
            (Some(layout), _) => (model.with_positions(max_context), ModelFormat::Layout(layout)),
            (None, folder) => {
                let folder = folder.expect("a chat model has a folder");
                let chat = ChatFormat::load(folder, format, model.config(), &tokenizer)?;
                (model, ModelFormat::Chat(chat.into()))
            }
        };
        let positions = model.config().max_position_embeddings;
        if max_context > positions {
            let problem = format!("must be at most the model's {positions} positions, not {max_context}");
            return Err(TrainingError::InvalidValue { key: "prompt.max_context".into(), problem });
        }
        let model = if config.rl.recompute { model.recomputing() } else { model };
        let companions = folder.map(Companions::read).transpose()?;
        Ok(Self { model, tokenizer, format, companions })
    }

    /// The policy that `engine` computes.
    pub(crate) fn policy(&self, engine: impl Into<Engine>, lm: LmConfig, seed: Seed) -> Result<LmPolicy<'_>> {
        Ok(self.format.policy(engine, &self.tokenizer, lm, seed)?)
    }

    /// How single steps become tokens. The prompt format must be a layout or one of Shop-R1's.
    pub(crate) fn step_format(&self, lm: &LmConfig) -> Result<StepFormat<'_>> {
        let tokenizer = &self.tokenizer;
        Ok(match &self.format {
            ModelFormat::Chat(format) => StepFormat::ShopR1(SingleStepEncoder::new(tokenizer, format, lm)?),
            ModelFormat::Layout(layout) => {
                let sampler = CompletionSampler::of_layout(tokenizer, lm)?;
                StepFormat::Layout(LayoutSteps { layout: *layout, tokenizer, sampler })
            }
        })
    }

    /// Renders demonstrations as the model is prompted.
    pub(crate) fn demonstrator(&self, config: &Config) -> Result<Demonstrator<'_>> {
        let format = match &self.format {
            ModelFormat::Layout(layout) => return Ok(Demonstrator::Layout(*layout)),
            ModelFormat::Chat(format) => format,
        };
        let (lm, max_steps) = (lm_config(config, 1.0, 1.0)?, config.run.max_steps);
        Ok(Demonstrator::Chat(DemonstrationRenderer::new(&self.tokenizer, format, &lm, max_steps)?))
    }

    /// Version of the prompt format.
    pub(crate) fn prompt_version(&self) -> Result<String> {
        Ok(self.format.version()?)
    }

    /// Digest of the frozen base weights below an adapter; empty without an adapter.
    pub(crate) fn base(&self) -> Result<String> {
        Ok(match self.model.adapter() {
            Some(_) => self.model.base().fingerprint()?,
            None => String::new(),
        })
    }

    /// Writes the model to a folder, which [`PolicyModel::resume`] reads.
    pub(crate) fn save(&self, folder: &Path) -> Result<()> {
        self.save_weights(&self.model, folder)
    }

    /// The same with other weights of the same shape.
    pub(crate) fn save_weights(&self, model: &Qwen2, folder: &Path) -> Result<()> {
        match model.adapter() {
            Some(adapter) => {
                adapter.save(folder)?;
                checkpoint::save_config(model.config(), folder)?;
            }
            None => checkpoint::save(model, folder)?,
        }
        match &self.companions {
            Some(companions) => companions.write(folder)?,
            None => self.tokenizer.save(folder)?,
        }
        if let Some(format) = self.format.chat() {
            format.few_shot.save(folder, format.prompt_format)?;
        }
        Ok(())
    }

    /// A frozen copy of the model that [`PolicyModel::save`] wrote to `folder`. Frozen base weights are
    /// shared.
    pub(crate) fn frozen(&self, folder: &Path) -> Result<Qwen2> {
        Ok(match self.model.adapter() {
            Some(_) => self.model.adapted(Lora::load(folder, &self.model.matrices())?)?,
            None => checkpoint::load(folder)?,
        })
    }
}

/// The configured adapter; `None` if `lora_rank` is 0.
fn lora_config(config: &ModelConfig) -> Option<LoraConfig> {
    let targets: Vec<&str> = config.lora_targets.iter().map(String::as_str).collect();
    let lora = || LoraConfig::new(config.lora_rank, config.lora_alpha, &targets).with_base(&config.from);
    (config.lora_rank > 0).then(lora)
}
