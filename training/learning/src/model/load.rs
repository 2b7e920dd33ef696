//! Loads a trained model as a policy, and samples its completions at single steps.

use std::path::Path;
use std::sync::Arc;

use webshop_agent::compact::{THINK, mark};
use webshop_agent::next_action::Example;
use webshop_agent::{
    AgentError, ChatFormat, LmConfig, LmPolicy, ModelFormat, PromptFormat, SampleOptions, SingleStepEncoder,
    SingleStepPrompt,
};
use webshop_lm::checkpoint;
use webshop_lm::checkpoint::StopTokens;
use webshop_lm::device::Compute;
use webshop_lm::lora::Lora;
use webshop_lm::{BpeTokenizer, Engine, Qwen2, Sampler, SamplingCoordinates};
use webshop_products::Seed;

use crate::config::{BASE_MODEL, Config};
use crate::error::{Result, TrainingError};
use crate::model::base::ModelFolder;
use crate::run::checkpoint::names::{CONFIG, MODEL};
use crate::run::folder::{RunFolder, TRAINER_STATE, find_checkpoint};
use crate::setup::limits::lanes_within;

/// A file that every model folder has.
const MODEL_CONFIG: &str = "config.json";
/// Tokens of a context in a chat format: enough for pages as text.
const CHAT_CONTEXT: usize = 8192;
/// Tokens of a completion in a chat format.
const CHAT_TURN: usize = 256;
/// Memory for the contexts of all lanes, in bytes.
const CACHE_BYTES: usize = 2 << 30;

/// A model with its tokenizer and the configuration it was trained under.
#[derive(Debug)]
pub struct TrainedModel {
    /// The configuration of the training; the defaults if the folder holds a model only.
    pub config: Config,
    /// Its tokenizer.
    pub tokenizer: BpeTokenizer,
    /// The weights.
    pub model: Qwen2,
    /// The folder of its files.
    pub(crate) folder: ModelFolder,
}

/// Overrides of the generation options; `None` keeps the value of training.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GenerationOptions {
    /// The format of prompts and completions.
    pub prompt_format: Option<PromptFormat>,
    /// Sampling temperature; 0 is greedy.
    pub temperature: Option<f64>,
    /// Nucleus of the samples, above 0 and at most 1.
    pub top_p: Option<f64>,
    /// Tokens of a context.
    pub max_context: Option<usize>,
    /// Tokens of a completion.
    pub max_turn_tokens: Option<usize>,
    /// Whether only admissible actions can be generated.
    pub constrained: bool,
}

/// A model on its device, ready to run as a policy.
#[derive(Debug)]
pub struct LoadedPolicy {
    /// The weights.
    pub engine: Engine,
    /// The tokenizer of the checkpoint.
    pub tokenizer: BpeTokenizer,
    /// Limits and sampling.
    pub config: LmConfig,
    /// How it is prompted.
    pub format: ModelFormat,
    /// The fingerprint of the weights.
    pub fingerprint: Arc<str>,
}

impl TrainedModel {
    /// Loads what `path` names: the base model ([`BASE_MODEL`]), a run folder, its `checkpoints/last`, a checkpoint, or
    /// a model folder, with the configuration of the run or checkpoint that it lies in, if any.
    pub fn load(path: &Path) -> Result<Self> {
        if path == Path::new(BASE_MODEL) {
            return Self::from_model(Config::default(), ModelFolder::of_base()?);
        }
        if path.join(MODEL_CONFIG).is_file() {
            return Self::from_model(config_beside(path)?, ModelFolder::Named(path.to_owned()));
        }
        // The marker is not `config.toml`, which a run folder has too.
        let folder = find_checkpoint(path, &format!("{MODEL}/{MODEL_CONFIG}"))?;
        let config = Config::load(Some(&folder.join(CONFIG)), &[])?;
        Self::from_model(config, ModelFolder::Named(folder.join(MODEL)))
    }

    fn from_model(config: Config, folder: ModelFolder) -> Result<Self> {
        let path = folder.path();
        let tokenizer = BpeTokenizer::load(path)?;
        // Checked before the weights, which take long to read.
        StopTokens::load(path, &checkpoint::load_config(path)?, &tokenizer)?;
        Ok(Self { config, tokenizer, model: load_weights(path)?, folder })
    }

    /// The prompt format of training, if the vocabulary has its special tokens; else a format that every chat template
    /// can render.
    pub fn prompt_format(&self) -> PromptFormat {
        match self.config.prompt.format {
            layout if !layout.is_chat() && !knows_layouts(&self.tokenizer) => PromptFormat::VerlAgent,
            prompt_format => prompt_format,
        }
    }

    /// Puts the model on the device of `compute` and frees its training weights. Fails for a context of `options` that is longer
    /// than the model's.
    pub fn into_policy(self, options: GenerationOptions, compute: &Compute) -> Result<LoadedPolicy> {
        let prompt_format = options.prompt_format.unwrap_or_else(|| self.prompt_format());
        let positions = self.model.config().max_position_embeddings;
        let prompt = &self.config.prompt;
        let (mut max_context, mut max_turn_tokens) = (prompt.max_context, prompt.max_turn_tokens);
        let format = match prompt_format.layout(prompt.compact()) {
            Some(layout) => ModelFormat::Layout(layout),
            None => {
                if prompt.format != prompt_format {
                    (max_context, max_turn_tokens) = (CHAT_CONTEXT, CHAT_TURN);
                }
                let config = self.model.config();
                let folder = self.folder.path();
                let chat = ChatFormat::load(folder, prompt_format, config, &self.tokenizer)?;
                ModelFormat::Chat(chat.into())
            }
        };
        let evaluation = &self.config.evaluation;
        let temperature = options.temperature.unwrap_or(evaluation.temperature);
        let top_p = options.top_p.unwrap_or(evaluation.top_p);
        if let Some(asked) = options.max_context.filter(|asked| *asked > positions) {
            let problem = format!("must be at most {positions}, the positions of the model, not {asked}");
            return Err(TrainingError::InvalidValue { key: "prompt.max_context".into(), problem });
        }
        let config = LmConfig {
            sampler: Sampler::new(temperature as f32, top_p as f32)?,
            max_context: options.max_context.unwrap_or(max_context).min(positions),
            max_turn_tokens: options.max_turn_tokens.unwrap_or(max_turn_tokens),
            constrained: options.constrained,
        };
        let fingerprint = self.model.fingerprint()?.into();
        let engine = Engine::new(&self.model, compute)?;
        Ok(LoadedPolicy { engine, tokenizer: self.tokenizer, config, format, fingerprint })
    }
}

/// The configuration of the run or checkpoint that a model folder lies in; the defaults if it lies in neither.
fn config_beside(model: &Path) -> Result<Config> {
    let Some(parent) = model.parent() else { return Ok(Config::default()) };
    let lies_in_either =
        RunFolder::at(parent).fingerprint().is_file() || parent.join(TRAINER_STATE).is_file();
    Config::load(lies_in_either.then(|| parent.join(CONFIG)).as_deref(), &[])
}

/// Whether a vocabulary has the special tokens of layouts, as those trained here have.
pub(crate) fn knows_layouts(tokenizer: &BpeTokenizer) -> bool {
    let knows = |token: &str| tokenizer.special_id(token).is_ok();
    knows(THINK) && knows(&mark(1))
}

/// The model of `folder`: its weights, or those of the base model that its adapter names, with the adapter.
pub(crate) fn load_weights(folder: &Path) -> Result<Qwen2> {
    let Some(adapter) = Lora::find(folder)? else {
        return Ok(checkpoint::load(folder)?);
    };
    let Some(base) = adapter.base() else {
        let problem =
            "its adapter names no base model in `base_model_name_or_path`; merge it into its base first";
        return Err(TrainingError::bad_file(folder, problem));
    };
    let base = TrainedModel::load(Path::new(base))?.model.merged()?;
    Ok(base.adapted(Lora::load(folder, &base.matrices())?)?)
}

impl LoadedPolicy {
    /// The policy, drawing from `seed`.
    pub fn policy(&self, seed: Seed) -> Result<LmPolicy<'_>> {
        let policy = self.format.policy(self.engine.clone(), &self.tokenizer, self.config, seed)?;
        Ok(policy.with_model_name(self.fingerprint.clone()))
    }

    /// The completion at each step, in the order of the steps; `None` if the prompt leaves no room for a
    /// completion even without past pages. A completion depends on the step, its position and the seed only.
    /// `ended` is called with the number of completions that have just finished.
    ///
    /// # Errors
    /// If its prompt format is not one of Shop-R1's, or a tensor operation fails.
    pub fn complete_steps(
        &self,
        steps: &[Example],
        seed: Seed,
        ended: &dyn Fn(u64),
    ) -> Result<Vec<Option<String>>> {
        let format = match &self.format {
            ModelFormat::Chat(format) => format,
            ModelFormat::Layout(layout) => {
                return Err(AgentError::SingleSteps { prompt_format: layout.prompt_format().name() }.into());
            }
        };
        let encoder = SingleStepEncoder::new(&self.tokenizer, format, &self.config)?;
        let prompts = steps.iter().map(|step| encoder.prompt(step)).collect::<Result<Vec<_>, _>>()?;
        let fitting = prompts.iter().enumerate().filter_map(|(place, prompt)| {
            let coordinates = SamplingCoordinates { task: place as u64, ..SamplingCoordinates::default() };
            Some(SingleStepPrompt { prompt_ids: prompt.as_ref()?, coordinates })
        });
        let fitting: Vec<SingleStepPrompt<'_>> = fitting.collect();
        ended((steps.len() - fitting.len()) as u64);
        let options = SampleOptions { n_samples: 1, lanes: self.lanes(), seed, certainty: None };
        let sampler = encoder.sampler();
        let completions = sampler.sample(self.engine.clone(), &fitting, options, ended)?;
        let mut texts = completions.iter().map(|completion| sampler.text_of(&completion.ids));
        Ok(prompts.iter().map(|prompt| prompt.as_ref().and_then(|_| texts.next())).collect())
    }

    /// Number of episodes in parallel: enough to keep the processor busy, within the memory limit.
    pub fn lanes(&self) -> usize {
        let (token, bytes) = match &self.engine {
            Engine::Cpu(decoder) => (decoder.config().cache_bytes_per_token(), CACHE_BYTES),
            Engine::Device(model) => (model.cache_bytes_per_token(), model.compute().cache_bytes()),
        };
        lanes_within(bytes, token, self.config.max_context)
    }
}
