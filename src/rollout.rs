//! `webshop rollout`: runs episodes with a policy, prints their statistics and records them.

mod any_agent;
mod local;
mod recorded;
mod remote;
mod site;
mod tasks;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use webshop_agent::{
    BrowsingHabits, CandidatePolicy, ExpertPolicy, ExploitPolicy, NamedOptionsPolicy, OraclePolicy, Policy,
    RandomPolicy, RulePolicy,
};
use webshop_env::RESULTS_PER_PAGE;
use webshop_products::Seed;
use webshop_training::TrainedModel;

use crate::args::episodes::{EpisodesArgs, PolicyName};
use crate::args::shard::Shard;
use crate::output::ensure_new;

pub(crate) use any_agent::evaluate_any_agent;
pub(crate) use local::{Finished, run_model};
pub(crate) use recorded::{evaluate_recorded, order_lines};
pub(crate) use tasks::Tasks;

/// Flags that `--site` excludes, by clap's ids.
const NOT_AT_A_SITE: [&str; 21] = [
    "base_url",
    "checkpoint",
    "source",
    "size",
    "skip_bad",
    "no_cache",
    "goals",
    "compat",
    "split",
    "split_rule",
    "prompt_format",
    "temperature",
    "top_p",
    "max_context",
    "max_turn_tokens",
    "constrained",
    "device",
    "dtype",
    "kernels",
    "out",
    "shard",
];

/// Printed below the flags.
const EXAMPLES: &str = "Examples:
  webshop rollout --policy rule --episodes 20 --out rule.jsonl
  webshop rollout --policy lm --checkpoint runs/first --json > first.json
  webshop rollout --policy lm --checkpoint runs/first --shard 1/4 --out 1.jsonl
  webshop rollout --policy remote --base-url http://localhost:8000/v1 --model NAME --out remote.jsonl

Exit codes: 0 done, 2 error or failed episodes, 130 interrupted by Ctrl-C (policy remote).";

/// Flags of `webshop rollout`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RolloutArgs {
    /// Policy that chooses the actions
    #[arg(long, value_enum)]
    policy: PolicyName,
    /// Model of the policy `lm`: `base`, a run folder, a checkpoint in it, or a model folder. The shop, its goals and the
    /// step limit are those of the run, where the flags name no others
    #[arg(long, value_name = "DIR", conflicts_with = "base_url")]
    checkpoint: Option<PathBuf>,
    /// Run the episodes at a running WebShop web site, such as `http://localhost:3000`: the original's, or
    /// one with the same pages. Policies `rule`, `named-options` and `random` only; episode i is the site's
    /// session `fixed_i`, and `random` searches for words of the instruction. Failed sessions are counted and left out of the
    /// statistics; the exit code is then 2
    #[arg(long, value_name = "URL", conflicts_with_all = NOT_AT_A_SITE)]
    site: Option<String>,
    /// Write one JSON record per episode to this new file as episodes end; `webshop replay` and `webshop
    /// convert` read it
    #[arg(long, value_name = "FILE.jsonl")]
    out: Option<PathBuf>,
    /// Run only the I-th of N contiguous parts of the episodes, as one of several jobs; `webshop merge` puts the files of all
    /// parts together
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    #[command(flatten)]
    episodes: EpisodesArgs,
    #[command(flatten)]
    remote: remote::RemoteArgs,
}

/// Runs the episodes with the policy that the flags name.
pub(crate) fn run(mut args: RolloutArgs) -> anyhow::Result<ExitCode> {
    args.episodes.tasks.shard = args.shard;
    if let Some(site) = &args.site {
        return site::run(site, args.policy, &args.episodes);
    }
    if args.remote.server.base_url.is_some() && args.policy != PolicyName::Remote {
        bail!("`--base-url` needs `--policy remote`");
    }
    if args.checkpoint.is_some() && args.policy != PolicyName::Lm {
        bail!("`--checkpoint` needs `--policy lm`");
    }
    let has_model = matches!(args.policy, PolicyName::Lm | PolicyName::Remote);
    if let Some(flag) = args.episodes.generation.given().filter(|_| !has_model) {
        bail!("`{flag}` is of language models, and needs `--policy lm` or `--policy remote`");
    }
    let out = args.out.as_deref();
    if let Some(path) = out.filter(|_| !args.remote.resume) {
        let remedy = match args.policy {
            PolicyName::Remote => "continue it with `--resume`, or name another file with `--out`",
            _ => "name another file with `--out`",
        };
        ensure_new(path, remedy)?;
    }
    let json = args.episodes.json;
    let print = |finished: Finished| {
        finished.result.print(json)?;
        Ok(ExitCode::SUCCESS)
    };
    let run_policy = |policy: &mut dyn Policy| print(local::run_policy(policy, &args.episodes, out)?);
    match args.policy {
        PolicyName::Random => run_policy(&mut RandomPolicy::new(Seed(args.episodes.seed))),
        PolicyName::Rule => run_policy(&mut RulePolicy),
        PolicyName::NamedOptions => run_policy(&mut NamedOptionsPolicy),
        PolicyName::NamedPairs => run_policy(&mut CandidatePolicy::named_pairs()),
        PolicyName::NamedFeatures => run_policy(&mut CandidatePolicy::named_features()),
        PolicyName::StatedOptions => run_policy(&mut ExpertPolicy::stated_options(RESULTS_PER_PAGE)),
        PolicyName::Expert => run_policy(&mut ExpertPolicy::thinking(RESULTS_PER_PAGE)),
        PolicyName::BrowsingExpert => {
            let seed = Seed(args.episodes.seed);
            run_policy(&mut ExpertPolicy::browsing(RESULTS_PER_PAGE, BrowsingHabits::default(), seed))
        }
        PolicyName::Oracle => run_policy(&mut OraclePolicy),
        PolicyName::LongestTitle => run_policy(&mut ExploitPolicy::LongestTitle),
        PolicyName::AllOptions => run_policy(&mut ExploitPolicy::AllOptions),
        PolicyName::QueryStuffing => run_policy(&mut ExploitPolicy::QueryStuffing),
        PolicyName::RepeatForever => run_policy(&mut ExploitPolicy::RepeatForever),
        PolicyName::Remote => remote::run(&args.remote, &args.episodes, out),
        PolicyName::Lm => match args.checkpoint {
            Some(checkpoint) => {
                let model = TrainedModel::load(&checkpoint)?;
                args.episodes.take_defaults_from(&model.config);
                print(local::run_model(model, &args.episodes, out)?)
            }
            None => bail!("the policy `lm` needs `--checkpoint DIR`"),
        },
    }
}
