//! `webshop merge`: puts the files of `webshop rollout --shard` together.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use webshop_agent::{Episode, EpisodeCoordinates};
use webshop_training::write_atomically;

use crate::args::episodes::TasksArgs;
use crate::output::outln;
use crate::rollout::Tasks;

/// Flags of `webshop merge`.
#[derive(clap::Args)]
#[command(
    after_help = "Flags of the shop, the split and the number of episodes must be those of the rollout. Episodes are put in \
                  its order, each line as it is; an episode that is missing, that is there twice and differs, or that was \
                  made with other settings is an error, and nothing is written.\n\n\
                  Example:\n  \
                  webshop merge 1.jsonl 2.jsonl 3.jsonl 4.jsonl --out all.jsonl\n\n\
                  Exit codes: 0 done, 2 error."
)]
pub(crate) struct MergeArgs {
    /// Files of `webshop rollout --shard I/N --out`, in any order
    #[arg(required = true, value_name = "SHARD.jsonl")]
    shards: Vec<PathBuf>,
    /// Write the episodes to this new file
    #[arg(long, value_name = "FILE.jsonl")]
    out: PathBuf,
    #[command(flatten)]
    tasks: TasksArgs,
}

/// A line of a shard.
struct Line<'a> {
    file: &'a Path,
    number: usize,
    text: String,
}

impl Line<'_> {
    fn place(&self) -> String {
        format!("`{}`, line {}", self.file.display(), self.number)
    }
}

/// Reads the shards, checks them, and writes their episodes in the order of the rollout.
pub(crate) fn run(args: MergeArgs) -> anyhow::Result<ExitCode> {
    ensure!(!args.out.exists(), "`{}` already exists; name another file", args.out.display());
    let tasks = Tasks::open(&args.tasks)?;
    let coordinates: Vec<EpisodeCoordinates> = tasks.tasks.iter().map(|task| task.coordinates).collect();
    let fingerprint = tasks.shop().fingerprint();
    let mut merged = Merged::new(&coordinates);
    for file in &args.shards {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read `{}`", file.display()))?;
        for (text, number) in text.lines().zip(1..).filter(|(text, _)| !text.trim().is_empty()) {
            let line = Line { file, number, text: text.to_owned() };
            let place = line.place();
            let episode = Episode::read(text).with_context(|| place.clone())?;
            ensure!(
                episode.meta.fingerprint == *fingerprint,
                "{place}: the episode was recorded in another shop than the flags name"
            );
            merged.take(episode, line).context(place)?;
        }
    }
    let lines = merged.complete()?;
    write_atomically(&args.out, lines.as_bytes())?;
    outln!("{} episodes of {} files", coordinates.len(), args.shards.len())?;
    Ok(ExitCode::SUCCESS)
}

/// The lines by place in the rollout.
struct Merged<'a> {
    places: BTreeMap<EpisodeCoordinates, usize>,
    lines: Vec<Option<Line<'a>>>,
    first: Option<(Episode, String)>,
}

impl<'a> Merged<'a> {
    fn new(coordinates: &[EpisodeCoordinates]) -> Self {
        let places = coordinates.iter().enumerate().map(|(place, of)| (*of, place)).collect();
        Self { places, lines: coordinates.iter().map(|_| None).collect(), first: None }
    }

    fn take(&mut self, episode: Episode, line: Line<'a>) -> anyhow::Result<()> {
        let goal = episode.goal.0;
        let Some(&place) = self.places.get(&episode.meta.coordinates) else {
            bail!("goal {goal} is not among the {} episodes that the flags name", self.places.len());
        };
        match &self.first {
            Some((first, there)) => {
                if let Some(setting) = different_setting(first, &episode) {
                    bail!("the episode was made with another {setting} than the one in {there}");
                }
            }
            None => self.first = Some((episode, line.place())),
        }
        if let Some(known) = self.lines[place].as_ref().filter(|known| known.text != line.text) {
            bail!("another episode for goal {goal} than in {}", known.place());
        }
        self.lines[place] = Some(line);
        Ok(())
    }

    /// The lines in order, each with its end.
    fn complete(self) -> anyhow::Result<String> {
        let n_missing = self.lines.iter().filter(|line| line.is_none()).count();
        let order: BTreeMap<usize, EpisodeCoordinates> =
            self.places.iter().map(|(coordinates, place)| (*place, *coordinates)).collect();
        if let Some(place) = self.lines.iter().position(Option::is_none) {
            let (number, goal) = (place + 1, order[&place].goal.0);
            bail!(
                "{n_missing} of {} episodes are in no file; the first is number {number}, for goal {goal}",
                self.lines.len()
            );
        }
        Ok(self.lines.into_iter().flatten().map(|line| line.text + "\n").collect())
    }
}

/// The name of the first setting in which two episodes of one rollout must not differ, and do.
fn different_setting(one: &Episode, two: &Episode) -> Option<&'static str> {
    let (here, there) = (&one.meta, &two.meta);
    let equal = [
        ("step limit or observation", one.config == two.config),
        ("policy", here.policy == there.policy),
        ("model", here.model == there.model),
        ("prompt format", here.prompt_format == there.prompt_format),
        ("prompt version", here.prompt_version == there.prompt_version),
        ("sampling", here.sampling == there.sampling),
    ];
    equal.into_iter().find(|(_, is_equal)| !is_equal).map(|(name, _)| name)
}
