//! Episodes that were recorded before, in one file or in the files of `--shard`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use webshop_agent::{Episode, EpisodeCoordinates, LmPolicy, Policy};
use webshop_evaluation::Tally;
use webshop_products::{Seed, open_text};
use webshop_training::TrainedModel;

use super::local::Finished;
use super::tasks::Tasks;
use crate::args::episodes::EpisodesArgs;

/// The result over episodes of a trained model that these files hold.
///
/// Fails if they are not the episodes that [`run_model`] would run.
pub(crate) fn evaluate_recorded(
    model: TrainedModel,
    args: &EpisodesArgs,
    files: &[PathBuf],
) -> anyhow::Result<Finished> {
    let compute = args.generation.compute.choose()?;
    let loaded = model.into_policy(args.generation.options(), &compute)?;
    let policy = loaded.policy(Seed(args.seed))?;
    let tasks = Tasks::open(&args.tasks)?;
    let mut tally = Tally::default();
    for line in order_lines(files, &tasks)? {
        let episode = Episode::read(&line)?;
        if let Some(setting) = setting_unlike_policy(&episode, &policy, args.max_steps()) {
            bail!("the episodes were made with another {setting} than the flags name");
        }
        tally.count(&episode, tasks.shop().goals());
    }
    let result = tasks.result(policy.name(), args, tally.summary(), None);
    Ok(Finished { tasks, tally, result })
}

/// The name of the first setting of an episode that is not the policy's, or not the step limit.
fn setting_unlike_policy(episode: &Episode, policy: &LmPolicy<'_>, max_steps: u32) -> Option<&'static str> {
    let (meta, prompt) = (&episode.meta, policy.prompt()?);
    let equal = [
        ("policy", *meta.policy == *policy.name()),
        ("model", meta.model == prompt.model),
        ("prompt format", meta.prompt_format == Some(prompt.prompt_format)),
        ("prompt version", meta.prompt_version.as_ref() == Some(&prompt.version)),
        ("sampling, seed included,", meta.sampling == prompt.sampling),
        ("step limit", episode.config.max_steps == max_steps),
    ];
    first_unequal(&equal)
}

/// The name of the first pair of values that are not equal.
fn first_unequal(pairs: &[(&'static str, bool)]) -> Option<&'static str> {
    pairs.iter().find(|(_, is_equal)| !is_equal).map(|(name, _)| *name)
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

/// The lines of all files in the order of the rollout of `tasks`, each with its end. Fails if they are not the episodes of
/// one rollout of these tasks.
pub(crate) fn order_lines(files: &[PathBuf], tasks: &Tasks) -> anyhow::Result<Vec<String>> {
    let coordinates: Vec<EpisodeCoordinates> = tasks.tasks.iter().map(|task| task.coordinates).collect();
    let fingerprint = tasks.shop().fingerprint();
    let mut merged = Merged::new(&coordinates);
    for file in files {
        let text = read_text(file)?;
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
    merged.complete()
}

/// The text of a file of episodes, decompressed if its name ends in `.gz`.
pub(super) fn read_text(file: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = open_text(file)?.read_to_string(&mut text);
    read.with_context(|| format!("cannot read `{}`", file.display()))?;
    Ok(text)
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
    fn complete(self) -> anyhow::Result<Vec<String>> {
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
pub(super) fn different_setting(one: &Episode, two: &Episode) -> Option<&'static str> {
    let (here, there) = (&one.meta, &two.meta);
    let equal = [
        ("step limit or observation", one.config == two.config),
        ("policy", here.policy == there.policy),
        ("model", here.model == there.model),
        ("prompt format", here.prompt_format == there.prompt_format),
        ("prompt version", here.prompt_version == there.prompt_version),
        ("sampling", here.sampling == there.sampling),
    ];
    first_unequal(&equal)
}
