//! `webshop rollout`: a policy shops, and its trips are summed up and recorded.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use webshop_agent::{
    Canary, Dialect, EpisodeCoordinates, InOrder, OraclePolicy, Policy, RandomPolicy, RolloutConfig,
    RulePolicy, Task, TripFile, rollout_each,
};
use webshop_products::{GoalSet, Seed, Split};
use webshop_training::{Ground, Manners, Summary, Tally, Trained};

use crate::compute::ComputeArgs;
use crate::progress::observer;
use crate::remote::{self, RemoteFlags};
use crate::result::Measurement;
use crate::shop::{RuledShopArgs, SplitArg, SplitsArgs};
use crate::site;

/// Episodes played side by side by those who need no memory for them.
const LANES: usize = 128;

/// What `--site` makes no sense with.
const OF_OUR_SHOP: [&str; 16] = [
    "base_url",
    "checkpoint",
    "source",
    "size",
    "skip_bad",
    "no_cache",
    "goals",
    "compat",
    "split",
    "splits",
    "dialect",
    "temperature",
    "max_context",
    "max_turn_tokens",
    "constrained",
    "out",
];

/// Flags of `webshop rollout`.
#[derive(clap::Args)]
pub struct RolloutArgs {
    /// Who shops
    #[arg(long, value_enum)]
    policy: PolicyName,
    /// For `lm`: a run folder, a checkpoint in it, or a model folder
    #[arg(long, value_name = "DIR", conflicts_with = "base_url")]
    checkpoint: Option<PathBuf>,
    /// Shop at a running WebShop site such as `http://localhost:3000`: the original's, or one that serves its pages.
    /// Takes the policies `rule` and `random`, and the sessions `fixed_0`, `fixed_1` and so on, one an episode; `random`
    /// searches for words of the instruction there. A session that fails is left out and counted, and the exit code is 2
    #[arg(long, value_name = "URL", conflicts_with_all = OF_OUR_SHOP)]
    site: Option<String>,
    #[command(flatten)]
    pub play: PlayFlags,
    /// Write one JSON record a trip to this file, as the trips end, for `webshop replay` and `webshop convert`; must not
    /// exist
    #[arg(long, value_name = "FILE.jsonl")]
    out: Option<PathBuf>,
    #[command(flatten)]
    remote: RemoteFlags,
}

/// What `rollout` and `eval` share.
#[derive(clap::Args)]
pub struct PlayFlags {
    #[command(flatten)]
    pub shop: RuledShopArgs,
    /// Which goals
    #[arg(long, value_enum, default_value = "test")]
    pub split: SplitArg,
    #[command(flatten)]
    pub splits: SplitsArgs,
    /// How many goals, the first ones of the split's fixed order; all of them if there are fewer
    #[arg(long, default_value_t = 300, value_name = "N")]
    pub episodes: usize,
    /// Root of all randomness of the policy
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
    /// Actions before a trip is cut
    #[arg(long, default_value_t = 15, value_name = "N")]
    pub max_steps: u32,
    #[command(flatten)]
    pub manners: MannersArgs,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// How a language model shops.
#[derive(clap::Args, Clone)]
#[command(next_help_heading = "Language models")]
pub struct MannersArgs {
    /// Format of prompts and answers: plain, verl-agent, ragen, agentgym-react, tool-call or shop-r1 [default: plain where
    /// the vocabulary has its marks, else verl-agent]
    #[arg(long, value_name = "NAME")]
    pub dialect: Option<Dialect>,
    #[command(flatten)]
    pub speech: SpeechArgs,
    /// Let only admissible actions be said
    #[arg(long)]
    pub constrained: bool,
    #[command(flatten)]
    pub compute: ComputeArgs,
}

/// How a language model speaks, in whatever dialect.
#[derive(clap::Args, Clone)]
pub struct SpeechArgs {
    /// Sampling temperature, 0 is greedy [default: the checkpoint's; 1 behind a server]
    #[arg(long, value_name = "T")]
    pub temperature: Option<f64>,
    /// Tokens of a context, prompts and answers [default: the checkpoint's; 8192 in a chat]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_context: Option<u32>,
    /// Tokens of one answer [default: the checkpoint's; 256 in a chat]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_turn_tokens: Option<u32>,
}

impl SpeechArgs {
    /// The manners of a model of ours that speaks so.
    pub fn manners(&self, dialect: Option<Dialect>) -> Manners {
        Manners {
            dialect,
            temperature: self.temperature,
            max_context: self.max_context.map(|n| n as usize),
            max_turn_tokens: self.max_turn_tokens.map(|n| n as usize),
            constrained: false,
        }
    }
}

/// The policies of the command line.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq)]
pub enum PolicyName {
    /// Uniform over the admissible actions
    Random,
    /// Searches the whole instruction, opens the first result, buys
    Rule,
    /// Knows what is wanted and where it is
    Oracle,
    /// A language model
    Lm,
    /// A language model behind a server
    Remote,
    /// Canary: buys the listed product with the longest title
    LongestTitle,
    /// Canary: clicks every option of the first result, then buys it
    AllOptions,
    /// Canary: searches with words that all listings hold beside the instruction
    QueryStuffing,
    /// Canary: says the same search until the shop closes
    RepeatForever,
}

/// Plays, sums up, records.
pub fn run(args: RolloutArgs) -> anyhow::Result<ExitCode> {
    if let Some(site) = &args.site {
        return site::run(site, args.policy, &args.play);
    }
    if args.remote.server.base_url.is_some() && args.policy != PolicyName::Remote {
        bail!("`--base-url` is for the policy `remote`");
    }
    let played = |policy: &mut dyn Policy| play(policy, LANES, &args.play, args.out.as_deref());
    match args.policy {
        PolicyName::Remote => remote::run(&args.remote, &args.play, args.out.as_deref()),
        PolicyName::Random => played(&mut RandomPolicy::new(Seed(args.play.seed))),
        PolicyName::Rule => played(&mut RulePolicy),
        PolicyName::Oracle => played(&mut OraclePolicy),
        PolicyName::LongestTitle => played(&mut Canary::LongestTitle),
        PolicyName::AllOptions => played(&mut Canary::AllOptions),
        PolicyName::QueryStuffing => played(&mut Canary::QueryStuffing),
        PolicyName::RepeatForever => played(&mut Canary::RepeatForever),
        PolicyName::Lm => match args.checkpoint {
            Some(checkpoint) => play_lm(Trained::load(&checkpoint)?, &args.play, args.out.as_deref()),
            None => bail!("the policy `lm` needs `--checkpoint DIR`"),
        },
    }
}

/// Plays with a trained model.
pub fn play_lm(trained: Trained, flags: &PlayFlags, out: Option<&Path>) -> anyhow::Result<ExitCode> {
    let compute = flags.manners.compute.choose()?;
    let MannersArgs { dialect, speech, constrained, .. } = &flags.manners;
    let manners = Manners { constrained: *constrained, ..speech.manners(*dialect) };
    let shopper = trained.into_shopper(manners, &compute)?;
    play(&mut shopper.policy(Seed(flags.seed))?, shopper.lanes(), flags, out)
}

#[expect(clippy::disallowed_methods, reason = "the answer says how long it took")]
fn play(
    policy: &mut dyn Policy,
    lanes: usize,
    flags: &PlayFlags,
    out: Option<&Path>,
) -> anyhow::Result<ExitCode> {
    let mut file = out.map(TripFile::create).transpose()?;
    let (ground, tasks) = tasks(flags)?;
    let began = std::time::Instant::now();
    let observer = observer();
    observer.begin(policy.name(), tasks.len() as u64, 0);
    let limits = RolloutConfig { max_steps: flags.max_steps, lanes };
    let (mut order, mut tally) = (InOrder::default(), Tally::default());
    let played = rollout_each(policy, &tasks, limits, &mut |place, episode| {
        observer.advance(1, "");
        order.take(place, episode).try_for_each(|episode| {
            tally.count(&episode);
            file.as_mut().map_or(Ok(()), |file| file.append(&episode.record(ground.shop())))
        })
    });
    observer.end();
    played?;
    let seconds = began.elapsed().as_secs_f64();
    measurement(policy.name(), flags, &ground, tally.summary(), seconds).tell(flags.json)?;
    Ok(ExitCode::SUCCESS)
}

/// The shop, and the trips to be made in it.
pub fn tasks(flags: &PlayFlags) -> anyhow::Result<(Ground, Vec<Task>)> {
    let shop = flags.shop.open_split_by(flags.splits.rule())?;
    let ground = Ground::new(shop, 0, 1)?;
    let goals = ground.held_out(Split::from(flags.split), flags.episodes);
    if goals.is_empty() {
        bail!("the catalog has no goals in this split");
    }
    let at = |goal| EpisodeCoordinates { step: 0, shop: 0, goal, sample: 0 };
    let task = |goal| Task::new(ground.shop().clone(), at(goal));
    let tasks = goals.into_iter().map(task).collect();
    Ok((ground, tasks))
}

/// What came of trips in a shop of ours.
pub fn measurement(
    policy: &str,
    flags: &PlayFlags,
    ground: &Ground,
    summary: Summary,
    seconds: f64,
) -> Measurement {
    let goals = ground.shop().goals();
    Measurement {
        policy: policy.into(),
        seed: flags.seed,
        summary,
        split: Some(flags.split.into()),
        splits: Some(goals.split_rule()),
        leak: leak(goals),
        goal_fingerprint: Some(goals.fingerprint().into()),
        site: None,
        remote: None,
        fingerprint: Some(ground.shop().fingerprint().clone()),
        seconds,
    }
}

/// How many test goals may be trained on, where the rule to split by allows it.
fn leak(goals: &GoalSet) -> Option<String> {
    let [train, test] = [Split::Train, Split::Test].map(|split| goals.split(split));
    let n_shared = test.iter().filter(|goal| train.binary_search(goal).is_ok()).count();
    let told = format!("{n_shared} of {} test goals may be trained on, as in verl-agent", test.len());
    goals.split_rule().is_leaky().then_some(told)
}
