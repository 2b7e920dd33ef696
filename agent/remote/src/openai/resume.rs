//! Resuming a rollout file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use webshop_agent::{
    AgentError, Episode, EpisodeCoordinates, EpisodeFile, EpisodeMeta, PromptFormat, PromptProvenance,
    Sampling, Task, complete_lines, read_episode,
};
use webshop_env::Shop;

use crate::error::RemoteError;
use crate::openai::episode::REMOTE;
use crate::openai::policy::RemotePolicy;

/// The episodes of a resumed file.
#[derive(Clone, Debug)]
pub struct ResumedEpisodes {
    /// The episode of each task that has one, in the order of the tasks.
    pub episodes: Vec<Option<Episode>>,
    /// The length of an incomplete last line, which was removed.
    pub dropped_bytes: u64,
}

/// Opens a file with episodes of `policy` for some of `tasks`, all in `shop`, and replays them. Removes a
/// last line without a line break.
///
/// # Errors
/// If the file does not exist, is open in another program, or has no complete line, or a line is not an episode
/// of the same policy, settings, shop and tasks. The server's address and additional fields of requests are not
/// recorded, and so not compared.
pub fn resume_file(
    path: &Path,
    policy: &RemotePolicy,
    tasks: &[Task],
    shop: &Arc<Shop>,
) -> Result<(EpisodeFile, ResumedEpisodes), RemoteError> {
    let refuse = |reason: String| RemoteError::Resume { path: path.to_owned(), reason };
    let (mut file, bytes) = EpisodeFile::open(path)?;
    let (text, dropped_bytes) = complete_lines(&bytes).map_err(|error| refuse(error.to_string()))?;
    let rollout = Rollout { policy, tasks, shop };
    let episodes = rollout.read(text).map_err(|error| refuse(error.to_string()))?;
    file.truncate(text.len() as u64)?;
    Ok((file, ResumedEpisodes { episodes, dropped_bytes }))
}

/// What all episodes of a file have in common.
struct Rollout<'a> {
    policy: &'a RemotePolicy,
    tasks: &'a [Task],
    shop: &'a Arc<Shop>,
}

impl Rollout<'_> {
    /// The episode of each task that has a line.
    fn read(&self, text: &str) -> Result<Vec<Option<Episode>>, AgentError> {
        let places: BTreeMap<EpisodeCoordinates, usize> =
            self.tasks.iter().enumerate().map(|(place, task)| (task.coordinates, place)).collect();
        let mut episodes = vec![None; self.tasks.len()];
        for (text, line) in text.lines().zip(1..) {
            let refuse = |reason: String| Err(AgentError::Line { line, reason });
            if text.trim().is_empty() {
                continue;
            }
            let recorded =
                Episode::read(text).map_err(|error| AgentError::Line { line, reason: error.to_string() })?;
            let differences = self.differences(&recorded);
            if !differences.is_empty() {
                return refuse(format!("the settings differ: {}", differences.join(", ")));
            }
            let episode = read_episode(text, line, self.shop)?;
            let EpisodeCoordinates { goal, sample, .. } = episode.meta.coordinates;
            let Some(&place) = places.get(&episode.meta.coordinates) else {
                return refuse(format!("goal {} (sample {sample}) is not among the tasks", goal.0));
            };
            if episodes[place].replace(episode).is_some() {
                return refuse(format!("a second episode for goal {} (sample {sample})", goal.0));
            }
        }
        Ok(episodes)
    }

    /// The settings in which a recorded episode differs from this rollout.
    fn differences(&self, recorded: &Episode) -> Vec<String> {
        let EpisodeMeta { policy, fingerprint, .. } = &recorded.meta;
        let there = &recorded.meta;
        let PromptProvenance { prompt_format, version, model, sampling } = self.policy.prompt();
        let mut differences: Vec<String> = Vec::new();
        let mut compare = |what: &str, recorded: String, now: String| {
            if recorded != now {
                differences.push(format!("{what} was `{recorded}`, is `{now}`"));
            }
        };
        let name = |name: Option<&str>| name.unwrap_or("none").to_owned();
        compare("policy", policy.to_string(), REMOTE.into());
        compare("model", name(there.model.as_deref()), name(model.as_deref()));
        let recorded_format = name(there.prompt_format.map(PromptFormat::name));
        compare("prompt format", recorded_format, prompt_format.name().to_owned());
        compare("prompt version", name(there.prompt_version.as_deref()), version.to_string());
        let json = |of: Option<Sampling>| serde_json::to_string(&of).expect("numbers are valid JSON");
        compare("sampling", json(there.sampling), json(sampling));
        compare("step limit", recorded.config.max_steps.to_string(), self.policy.max_steps().to_string());
        let parts = fingerprint.differences(self.shop.fingerprint());
        differences.extend((!parts.is_empty()).then(|| format!("another shop ({})", parts.join(", "))));
        differences
    }
}
