//! Flags of the commands that run episodes: which goals, how many steps, and how a language model generates.

use webshop_agent::PromptFormat;
use webshop_training::GenerationOptions;
use webshop_training::config::{CatalogConfig, Config, RunConfig};

use super::compute::ComputeArgs;
use super::shard::Shard;
use super::shop::{RuledShopArgs, SplitArg, SplitRuleArgs};

/// Which goals, in which shop.
#[derive(clap::Args)]
pub(crate) struct TasksArgs {
    #[command(flatten)]
    pub(crate) shop: RuledShopArgs,
    /// Split that the goals are taken from
    #[arg(long, value_enum, default_value = "test")]
    pub(crate) split: SplitArg,
    #[command(flatten)]
    pub(crate) split_rule: SplitRuleArgs,
    /// Number of episodes, one per goal, in the split's fixed order; at most one for each goal of the split
    #[arg(long, default_value_t = 300, value_name = "N")]
    pub(crate) episodes: usize,
    /// The part of these goals; a flag of `rollout` only.
    #[arg(skip)]
    pub(crate) shard: Option<Shard>,
    /// The catalog and the goals of the run whose model acts, if one does.
    #[arg(skip)]
    pub(crate) run: Option<CatalogConfig>,
}

/// Which episodes, shared by `rollout` and `eval`.
#[derive(clap::Args)]
pub(crate) struct EpisodesArgs {
    #[command(flatten)]
    pub(crate) tasks: TasksArgs,
    /// Seed of all random draws of the policy
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) seed: u64,
    /// Actions after which an episode without a purchase is truncated [default: 15]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// Print one JSON object instead of text; `webshop compare` reads it
    #[arg(long)]
    pub(crate) json: bool,
    // Last, because its heading would apply to the flags after it.
    #[command(flatten)]
    pub(crate) generation: GenerationArgs,
}

/// How a language model generates an action.
#[derive(clap::Args, Clone)]
#[command(next_help_heading = "Language models")]
pub(crate) struct GenerationArgs {
    /// Format of prompts and completions: compact, text, verl-agent, ragen, agentgym-react, tool-call, shop-r1,
    /// shop-r1-latest or shop-r1-minimal [default: that of training; without a run, compact if the tokenizer has
    /// its special tokens, else verl-agent]
    #[arg(long, value_name = "NAME")]
    pub(crate) prompt_format: Option<PromptFormat>,
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
    /// Mask tokens during decoding so that every completion is an admissible action, unless the context is full
    /// before its end
    #[arg(long)]
    pub(crate) constrained: bool,
    #[command(flatten)]
    pub(crate) compute: ComputeArgs,
}

/// How tokens are sampled, and how many.
#[derive(clap::Args, Clone)]
pub(crate) struct SamplingArgs {
    /// Sampling temperature; 0 is greedy [default: that of the run; 1 for a model folder, whatever its
    /// `generation_config.json` says, and for a model behind a server]
    #[arg(long, value_name = "T")]
    pub(crate) temperature: Option<f64>,
    /// Nucleus sampling: tokens are drawn from the most probable ones whose probabilities sum to P [default: that
    /// of the run; 1 for a model folder and for a model behind a server]
    #[arg(long, value_name = "P")]
    pub(crate) top_p: Option<f64>,
    /// Maximum context in tokens: prompts and completions together [default: the checkpoint's; 8192 for a
    /// chat model]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_context: Option<u32>,
    /// Maximum tokens of one completion [default: the checkpoint's; 256 for a chat model]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turn_tokens: Option<u32>,
}

impl EpisodesArgs {
    /// Takes shop, goals and step limit from a run, where the flags name no others.
    pub(crate) fn take_defaults_from(&mut self, run: &Config) {
        self.tasks.run = Some(run.catalog.clone());
        self.max_steps.get_or_insert(run.run.max_steps);
    }

    /// Actions after which an episode without a purchase is truncated.
    pub(crate) fn max_steps(&self) -> u32 {
        self.max_steps.unwrap_or(RunConfig::default().max_steps)
    }
}

impl GenerationArgs {
    /// The options of a local model.
    pub(crate) fn options(&self) -> GenerationOptions {
        GenerationOptions { constrained: self.constrained, ..self.sampling.options(self.prompt_format) }
    }

    /// One of these flags that is given with another value than its default.
    pub(crate) fn given(&self) -> Option<String> {
        let format = self.prompt_format.map(|_| "--prompt-format");
        let given = format.or_else(|| self.sampling.given()).or(self.constrained.then_some("--constrained"));
        given.map(str::to_owned).or_else(|| self.compute.given())
    }
}

impl SamplingArgs {
    /// One of these flags that is given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--temperature", self.temperature.is_some()),
            ("--top-p", self.top_p.is_some()),
            ("--max-context", self.max_context.is_some()),
            ("--max-turn-tokens", self.max_turn_tokens.is_some()),
        ];
        flags.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }

    /// The options of a local model, unconstrained.
    pub(crate) fn options(&self, prompt_format: Option<PromptFormat>) -> GenerationOptions {
        GenerationOptions {
            prompt_format,
            temperature: self.temperature,
            top_p: self.top_p,
            max_context: self.max_context.map(|n| n as usize),
            max_turn_tokens: self.max_turn_tokens.map(|n| n as usize),
            constrained: false,
        }
    }
}

/// The policies of the command line.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq)]
pub(crate) enum PolicyName {
    /// Draws uniformly from the admissible actions
    Random,
    /// Searches for the whole instruction, opens the first result, buys it
    Rule,
    /// Opens the first result, clicks every option value that the instruction names, buys
    NamedOptions,
    /// Opens the results within the price limit that share most word pairs with the instruction, until one
    /// has a named value for each option
    NamedPairs,
    /// As `named-pairs`, but reads features and description before it buys, and rejects a product that
    /// lacks a required attribute
    NamedFeatures,
    /// Opens results in the order of the page until one has a named value for each option and every value that the
    /// instruction states as `name: value`; searches again if neither of the first two has
    StatedOptions,
    /// Demonstrates: knows the hidden goal, reads titles and prices only, buys if that is a success
    Expert,
    /// Demonstrates: knows the instruction and the pages; reads the features of half
    /// of the products, and rejects a tenth of those whose features lack a requirement
    BrowsingExpert,
    /// Reads the hidden goal: an upper bound
    Oracle,
    /// A local language model; needs `--checkpoint`
    Lm,
    /// A language model behind a server; needs `--base-url` and `--model`
    Remote,
    /// Exploit check: buys the listed product with the longest title
    LongestTitle,
    /// Exploit check: clicks every option of the first result, then buys it
    AllOptions,
    /// Exploit check: adds words that most listings contain to the query, buys the first result
    QueryStuffing,
    /// Exploit check: repeats the same search until the episode is truncated
    RepeatForever,
}
