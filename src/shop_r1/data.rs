//! `webshop shop-r1 data`: single steps to learn from and to be judged by.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, Read, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use webshop_agent::prompt::Piece;
use webshop_agent::shop_r1::{
    About, BuyNowAs, Census, Recordings, Sample, SampleSource, dead_ends, n_dead_ends, n_dead_ends_of_paper,
    paper_mix, samples_of, split_of, visit_of,
};
use webshop_agent::{
    Demonstrator, Episode, EpisodeCoordinates, Manner, OraclePolicy, RolloutConfig, Task, remake, rollout,
};
use webshop_env::{Action, RESULTS_PER_PAGE, Shop};
use webshop_products::{GoalId, Seed, Split, open_text};
use webshop_training::Ground;

use super::harvest::Harvest;
use super::rationales;
use super::steps::MixArg;
use crate::answer::answer;
use crate::shop::{RuledShopArgs, SplitArg};

/// Goals that are shopped for where nothing says how many.
const EPISODES: usize = 300;

/// Actions after which the oracle's trips are cut, and trips side by side.
const LIMITS: RolloutConfig = RolloutConfig { max_steps: 15, lanes: 128 };

/// Flags of `webshop shop-r1 data`.
#[derive(clap::Args)]
pub struct DataArgs {
    /// Whose steps
    #[arg(long, value_enum, default_value = "demonstrations")]
    from: Source,
    /// For `trips`, what `rollout --out` wrote; for `human`, a recording or a folder of them: logs of the original's site,
    /// a session a file, its imitation data, or AgentGym's trajectories. Any may be gzipped
    #[arg(long, value_name = "FILE|DIR", required_if_eq_any([("from", "trips"), ("from", "human")]))]
    trips: Option<PathBuf>,
    /// Only steps for goals of this split; whatever is chosen, a sample says the split of its own goal
    #[arg(long, value_enum, default_value = "train")]
    split: SplitArg,
    /// How many trips, the first ones of the split's fixed order or of the recordings [default: 300, or all recordings]
    #[arg(long, value_name = "N")]
    episodes: Option<usize>,
    /// Share of dead ends among all samples: listings without hope, to be left
    #[arg(long, default_value_t = 0.1, value_name = "SHARE", value_parser = share)]
    dead_ends: f64,
    /// How often each type stands in the data
    #[arg(long, value_enum, default_value = "natural")]
    mix: MixArg,
    /// What buying is
    #[arg(long, value_enum, default_value = "click")]
    buy_now_as: BuyNowArg,
    /// Answers to these samples, as `shop-r1 eval --out` keeps them: where one does what was really done, its rationale takes
    /// the place of the template's
    #[arg(long, value_name = "FILE.jsonl")]
    rationales: Option<PathBuf>,
    /// Root of what is drawn: searches of dead ends, and what `--mix paper` leaves out
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Write to this file instead of standard output, whole or not at all; must not exist
    #[arg(long, value_name = "FILE.jsonl")]
    out: Option<PathBuf>,
    #[command(flatten)]
    shop: RuledShopArgs,
}

/// Sources, as the command line names them.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq)]
enum Source {
    /// Trips of the careful demonstrator
    Demonstrations,
    /// Trips of the policy `oracle`
    Oracle,
    /// Recorded trips, those of reward 1
    Trips,
    /// Recordings of people
    Human,
}

/// What buying is, as the command line names it.
#[derive(clap::ValueEnum, Clone, Copy)]
enum BuyNowArg {
    /// A click on `buy now`
    Click,
    /// `terminate`, like leaving
    Terminate,
}

impl From<BuyNowArg> for BuyNowAs {
    fn from(arg: BuyNowArg) -> Self {
        match arg {
            BuyNowArg::Click => Self::Click,
            BuyNowArg::Terminate => Self::Terminate,
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "no number".to_owned())?;
    if (0.0..1.0).contains(&share) { Ok(share) } else { Err("a share is at least 0 and below 1".into()) }
}

/// Collects, mixes, writes, counts.
pub fn run(args: DataArgs) -> Result<ExitCode> {
    if let Some(out) = args.out.as_ref().filter(|out| out.exists()) {
        bail!("`{}` is there already; name another", out.display());
    }
    let ground = Ground::new(args.shop.open()?, 0, 1)?;
    let collector = Collector { args: &args, shop: ground.shop(), split: args.split.into() };
    let n = args.episodes.unwrap_or(EPISODES);
    let goals = || ground.held_out(collector.split, n);
    let mut harvest = match args.from {
        Source::Demonstrations => collector.demonstrated(&goals()),
        Source::Oracle => collector.oracle(&goals())?,
        Source::Trips => collector.recorded()?,
        Source::Human => collector.human()?,
    };
    collector.lead_astray(&mut harvest, &goals());
    let mut told = harvest.left_out();
    if let Some(answers) = &args.rationales {
        let n = rationales::put_in(&mut harvest.samples, answers)?;
        told.push(format!("rationales by a model: {n} of {}", harvest.samples.len()));
    }
    let samples = match args.mix {
        MixArg::Natural => harvest.samples,
        MixArg::Paper => paper_mix(harvest.samples, Seed(args.seed)),
    };
    if samples.is_empty() {
        told.insert(0, "there is no sample to write".into());
        bail!(told.join("; "));
    }
    write(&samples, args.out.as_deref())?;
    told.insert(0, Census::of(&samples).to_string());
    let told = told.join("\n");
    match args.out {
        Some(_) => answer!("{told}")?,
        None => eprintln!("{told}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Who collects samples in a shop.
struct Collector<'a> {
    args: &'a DataArgs,
    shop: &'a Arc<Shop>,
    split: Split,
}

impl Collector<'_> {
    fn demonstrated(&self, goals: &[GoalId]) -> Harvest {
        let demonstrator = Demonstrator::new(self.shop, RESULTS_PER_PAGE);
        let mut harvest = Harvest::default();
        for &goal in goals {
            let Some(turns) = demonstrator.trip(goal, Manner::Careful) else {
                harvest.skip("the demonstrator has none to show", format!("goal {}", goal.0));
                continue;
            };
            let steps: Vec<(String, Action)> = turns
                .into_iter()
                .map(|turn| {
                    let thought: String = turn.thought.iter().map(Piece::text).collect();
                    (thought.trim().to_owned(), turn.action)
                })
                .collect();
            let split = split_of(self.shop.goals(), goal).to_string();
            let about = self.about(SampleSource::Demonstration, &split);
            harvest.add(samples_of(self.shop, goal, &steps, about));
        }
        harvest
    }

    fn oracle(&self, goals: &[GoalId]) -> Result<Harvest> {
        let at = |goal| EpisodeCoordinates { step: 0, shop: 0, goal, sample: 0 };
        let tasks: Vec<Task> = goals.iter().map(|&goal| Task::new(self.shop.clone(), at(goal))).collect();
        let mut harvest = Harvest::default();
        for episode in rollout(&mut OraclePolicy, &tasks, LIMITS, &mut |_, _| ())? {
            let place = format!("goal {}", episode.coordinates.goal.0);
            self.add_episode(&mut harvest, &episode, SampleSource::Oracle, place);
        }
        Ok(harvest)
    }

    fn recorded(&self) -> Result<Harvest> {
        let file = self.trips()?;
        let cannot = || format!("cannot read the trips of `{}`", file.display());
        let mut harvest = Harvest::default();
        for (at, text) in open_text(file)?.lines().enumerate() {
            let text = text.with_context(cannot)?;
            if text.trim().is_empty() {
                continue;
            }
            if self.has_enough(&harvest) {
                break;
            }
            let episode = remake(&text, at + 1, self.shop).with_context(cannot)?;
            self.add_episode(&mut harvest, &episode, SampleSource::Policy, format!("line {}", at + 1));
        }
        Ok(harvest)
    }

    fn human(&self) -> Result<Harvest> {
        let recordings = Recordings::new(self.shop, self.args.buy_now_as.into());
        let mut harvest = Harvest::default();
        for file in files(self.trips()?)? {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            let mut text = String::new();
            open_text(&file)?
                .read_to_string(&mut text)
                .with_context(|| format!("cannot read `{}`", file.display()))?;
            let visits = recordings
                .read(&name, &text)
                .with_context(|| format!("cannot read the recordings of `{}`", file.display()))?;
            for visit in visits {
                if self.has_enough(&harvest) {
                    return Ok(harvest);
                }
                match visit {
                    Ok(visit) if self.wants(&visit.split) => harvest.add(visit.samples()),
                    Ok(visit) => harvest.skip(OTHER_SPLIT, visit.name),
                    Err(skip) => harvest.skip(
                        &skip.reason.to_string(),
                        format!("{}, line {}: {}", file.display(), skip.line, skip.detail),
                    ),
                }
            }
        }
        Ok(harvest)
    }

    /// Adds the samples of a trip, if it succeeded and is for a goal that is asked for.
    fn add_episode(&self, harvest: &mut Harvest, episode: &Episode, source: SampleSource, place: String) {
        let split = split_of(self.shop.goals(), episode.coordinates.goal).to_string();
        if !episode.is_success() {
            harvest.skip("the reward is below 1", place);
        } else if !self.wants(&split) {
            harvest.skip(OTHER_SPLIT, place);
        } else {
            harvest.add(visit_of(self.shop, episode, self.about(source, &split)).samples());
        }
    }

    /// Adds dead ends: for the goals that there are samples of, or for `goals` if none of them is of this shop.
    fn lead_astray(&self, harvest: &mut Harvest, goals: &[GoalId]) {
        let n = match self.args.mix {
            MixArg::Natural => n_dead_ends(&harvest.samples, self.args.dead_ends),
            MixArg::Paper => n_dead_ends_of_paper(&harvest.samples),
        };
        let mut met = BTreeSet::new();
        let known = harvest.samples.iter().filter_map(|sample| sample.goal.map(GoalId));
        let known: Vec<GoalId> = known.filter(|&goal| met.insert(goal)).collect();
        let goals = if known.is_empty() { goals } else { &known };
        let found = dead_ends(self.shop, goals, n, self.args.buy_now_as.into(), Seed(self.args.seed));
        harvest.n_missing = n - found.len();
        harvest.samples.extend(found);
    }

    fn about<'s>(&self, source: SampleSource, split: &'s str) -> About<'s> {
        About { source, split, buy_now_as: self.args.buy_now_as.into() }
    }

    fn wants(&self, split: &str) -> bool {
        self.split == Split::All || self.split.to_string() == split
    }

    fn has_enough(&self, harvest: &Harvest) -> bool {
        self.args.episodes.is_some_and(|n| harvest.n_trips == n)
    }

    fn trips(&self) -> Result<&Path> {
        self.args.trips.as_deref().context("this source needs `--trips`")
    }
}

/// Why a trip for another goal is left out.
const OTHER_SPLIT: &str = "the goal is in another split";

/// A file, or the files of a folder by name.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let cannot = || format!("cannot read the folder `{}`", path.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(path).with_context(cannot)? {
        let file = entry.with_context(cannot)?.path();
        files.extend(file.is_file().then_some(file));
    }
    files.sort();
    ensure!(!files.is_empty(), "there is no file in the folder `{}`", path.display());
    Ok(files)
}

/// Writes a line a sample, into a new file or to standard output.
fn write(samples: &[Sample], out: Option<&Path>) -> Result<()> {
    let mut lines = Vec::new();
    for sample in samples {
        serde_json::to_writer(&mut lines, sample)?;
        lines.push(b'\n');
    }
    match out {
        None => stdout().write_all(&lines).context("cannot write to standard output"),
        Some(out) => Ok(webshop_training::write_atomically(out, &lines)?),
    }
}
