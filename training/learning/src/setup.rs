//! From a configuration to the things it names: the shop, the ground, the tokenizer, the model's shape.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use webshop_agent::prompt_format::compact_renderer as prompt;
use webshop_agent::prompt_format::compact_renderer::{PROMPT_VERSION, Piece, marks};
use webshop_agent::{AgentError, DemonstratedTurn, Demonstrator, Dialect, LmConfig, Manner, RolloutConfig};
use webshop_lm::{Qwen2Config, Sampler, ShopTokenizer};
use webshop_env::{ENVIRONMENT_ID, Session, Shop, ShopConfig};
use webshop_products::{GoalId, GoalKind, RawData, Seed, Skipped, Stock, StockConfig};

use crate::config::{CatalogConfig, Config, GoalsChoice, ModelConfig};
use crate::error::Result;
use crate::data::task_set::{Ground, GroundGoal};
use crate::data::demonstrations::recount;

/// Seed of the prices and price limits of every judged shop: the shop is the same whatever a run's seed.
const SHOP_SEED: Seed = Seed(0);

/// Episodes played side by side; a wider batch keeps the matrix products busy.
pub(crate) const LANES: usize = 128;

/// As many episodes side by side as there is room for within `bytes`, where each has a context of so many tokens.
pub(crate) fn lanes_within(bytes: usize, bytes_per_token: usize, max_context: usize) -> usize {
    (bytes / (bytes_per_token * max_context)).clamp(1, LANES)
}

/// Demonstrations whose text the tokenizer is made from, for each training shop.
const TOKENIZER_TRIPS: usize = 200;

/// The files or the embedded catalog that `config` names, as they are. What was dropped of them, if that is allowed,
/// is logged.
pub fn read_catalog(config: &CatalogConfig) -> Result<RawData> {
    let limit = config.size.limit();
    if !config.skip_bad {
        return Ok(RawData::open(&config.source, limit)?);
    }
    let (data, skipped) = RawData::open_skipping(&config.source, limit)?;
    log_skipped(&skipped);
    Ok(data)
}

/// The products of the files or the embedded catalog that `config` names, ready for these goals whatever `config` says
/// of goals. What was dropped, if that is allowed, is logged.
pub fn open_stock(config: &CatalogConfig, goals: GoalKind, seed: Seed) -> Result<Stock> {
    let stock_config = StockConfig { limit: config.size.limit(), skips_bad: config.skip_bad, goals, seed };
    let stock = Stock::open(&config.source, stock_config)?;
    log_skipped(stock.skipped());
    Ok(stock)
}

fn log_skipped(skipped: &Skipped) {
    if skipped.n_records > 0 {
        tracing::warn!("{skipped}");
    }
}

/// The judged shop that `config` names, with goals and index.
pub fn open_shop(config: &CatalogConfig) -> Result<Shop> {
    let goals = match config.goals {
        GoalsChoice::Both => GoalKind::Both,
        GoalsChoice::Human => GoalKind::Human,
        GoalsChoice::Synthetic => GoalKind::Synthetic,
    };
    let (catalog, goals) = open_stock(config, goals, SHOP_SEED)?.into_goals()?;
    let goals = goals.split_by(config.splits, &catalog)?;
    let shop_config = ShopConfig { index_cache: config.index_cache.clone(), ..ShopConfig::default() };
    Ok(Shop::with_config(catalog, goals, shop_config)?)
}

/// The shape of the model as its checkpoint states it.
pub fn qwen2_config(model: &ModelConfig, vocab_size: usize, max_context: usize) -> Qwen2Config {
    Qwen2Config {
        hidden_size: model.hidden_size,
        intermediate_size: model.intermediate_size,
        num_hidden_layers: model.layers,
        num_attention_heads: model.heads,
        num_key_value_heads: Some(model.kv_heads),
        head_dim: Some(model.head_dim),
        max_position_embeddings: max_context,
        ..Qwen2Config::small(vocab_size)
    }
}

/// How the language model reads and speaks under `config`, at this temperature and nucleus.
pub fn lm_config(config: &Config, temperature: f64, top_p: f64) -> Result<LmConfig, AgentError> {
    Ok(LmConfig {
        prompt: prompt_config(config),
        sampler: Sampler::new(temperature as f32, top_p as f32)?,
        max_context: config.prompt.max_context,
        max_turn_tokens: config.prompt.max_turn_tokens,
        constrained: false,
    })
}

/// How pages are read under `config`.
pub fn prompt_config(config: &Config) -> prompt::PromptConfig {
    prompt::PromptConfig { results_shown: config.prompt.results_shown }
}

/// A tokenizer made from what is read and said on demonstrated trips of the training goals: with the plain dialect's marks, or
/// for quoted text where the dialect is a chat's.
pub fn train_tokenizer(ground: &Ground, config: &Config) -> Result<ShopTokenizer> {
    let dialect = config.prompt.dialect;
    let tell = |goal: &GroundGoal| {
        let shop = ground.shop_of(*goal);
        let demonstrator = Demonstrator::new(shop, config.prompt.results_shown);
        let turns = demonstrator
            .trip(goal.goal, Manner::Careful)
            .or_else(|| demonstrator.trip(goal.goal, Manner::Hasty))
            .unwrap_or_default();
        match dialect {
            Dialect::Plain => told(&recount(prompt_config(config), shop, goal.goal, &turns)),
            _ => chatted(dialect, shop, goal.goal, &turns),
        }
    };
    let goals = ground.sample(Seed(config.seed), TOKENIZER_TRIPS * ground.shops().len());
    let texts: Vec<String> = goals.par_iter().map(tell).collect();
    let (texts, n_ids) = (texts.iter().map(String::as_str), config.model.vocab_size);
    if dialect != Dialect::Plain {
        return Ok(ShopTokenizer::train_quoted(texts, n_ids)?);
    }
    let marks = marks();
    let marks: Vec<&str> = marks.iter().map(String::as_str).collect();
    Ok(ShopTokenizer::train(texts, n_ids, &marks)?)
}

/// A trip in the plain dialect as one text.
fn told(turns: &[(Vec<Piece>, Vec<Piece>)]) -> String {
    turns.iter().flat_map(|(read, said)| [read, said]).flatten().map(Piece::text).collect()
}

/// A trip in a chat's dialect as one text, pages and answers in turn.
fn chatted(dialect: Dialect, shop: &Shop, goal: GoalId, turns: &[DemonstratedTurn]) -> String {
    let mut session = Session::start(goal);
    let mut text = String::new();
    for turn in turns {
        let thought: String = turn.thought.iter().map(Piece::text).collect();
        text += &dialect.observe(&session.page(shop));
        text += &dialect.say(&dialect.reason(thought.trim(), &turn.action), &turn.action);
        session.act(shop, &turn.action);
    }
    text
}

/// Limits of the rollouts under `config`.
pub fn rollout_config(config: &Config) -> RolloutConfig {
    RolloutConfig { max_steps: config.run.max_steps as u32, lanes: LANES }
}

/// What a run's results are about; saved with them, and to be equal where results are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Version of the shop's behaviour.
    pub environment: String,
    /// Version of what purchases are worth.
    pub rewards: String,
    /// Version of the prompt layout.
    pub prompt: String,
    /// Digest of the judged goals, with their catalog, prices and splits.
    pub goals: String,
    /// Digest of all shops that were trained in.
    pub ground: String,
    /// Digest of the tokenizer.
    pub tokenizer: String,
    /// Digest of the weights that stay, where an adapter learns; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base: String,
    /// Device, format and kernels ([`Compute::kind`](webshop_lm::device::Compute::kind)), where it is not the CPU's own
    /// engine that computes; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub compute: String,
    /// Digest of the steps of a file that are learned from; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub steps: String,
}

/// The fingerprint of training on `ground` with `tokenizer`.
pub fn fingerprint(ground: &Ground, tokenizer: &ShopTokenizer) -> Fingerprint {
    let digest = Sha256::digest(tokenizer.to_json());
    Fingerprint {
        environment: ENVIRONMENT_ID.into(),
        rewards: ground.shop().reward_version(),
        prompt: PROMPT_VERSION.into(),
        goals: ground.shop().goals().fingerprint().into(),
        ground: ground.fingerprint(),
        tokenizer: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        base: String::new(),
        compute: String::new(),
        steps: String::new(),
    }
}
