//! Going on with a file of episodes.
//!
//! [`resume_file`] makes the episodes in a file again and says which those were, after any end of the program that wrote
//! it. What the file holds must have come about as the rest will. It repairs nothing but a last line without an end.

use crate::error::RemoteError;
use webshop_agent::AgentError;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use webshop_env::Shop;

use crate::openai::policy::{REMOTE, RemotePolicy};
use webshop_agent::PromptFormat;
use webshop_agent::{Episode, EpisodeCoordinates, EpisodeRecord, PromptStamp, Sampling};
use webshop_agent::remake;
use webshop_agent::Task;
use webshop_agent::EpisodeFile;
use webshop_agent::episode::file::cannot_read;

/// What a file held when it was gone on with.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The episode of each task that has one, in the order of the tasks.
    pub episodes: Vec<Option<Episode>>,
    /// Bytes of a last line without an end, which were dropped.
    pub dropped_bytes: u64,
}

/// A file of episodes that `policy` made for some of these tasks in this shop. A last line that was not written to its
/// end is dropped from it.
///
/// # Errors
/// If it is not there, if another program writes to it, or at the first line that does not belong in it.
pub fn resume_file(
    path: &Path,
    policy: &RemotePolicy,
    tasks: &[Task],
    shop: &Arc<Shop>,
) -> Result<(EpisodeFile, Kept), RemoteError> {
    let (mut file, bytes) = EpisodeFile::open(path)?;
    let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let text = std::str::from_utf8(&bytes[..end]).map_err(|error| cannot_read(path, &error))?;
    let terms = Terms { policy, tasks, shop };
    let episodes = terms.read(text).map_err(|error| cannot_read(path, &error))?;
    file.cut(end as u64)?;
    Ok((file, Kept { episodes, dropped_bytes: (bytes.len() - end) as u64 }))
}

/// What all episodes of a file have in common.
struct Terms<'a> {
    policy: &'a RemotePolicy,
    tasks: &'a [Task],
    shop: &'a Arc<Shop>,
}

impl Terms<'_> {
    /// The episode of each task, where the lines hold one.
    fn read(&self, lines: &str) -> Result<Vec<Option<Episode>>, RemoteError> {
        let places: BTreeMap<EpisodeCoordinates, usize> =
            self.tasks.iter().enumerate().map(|(place, task)| (task.coordinates, place)).collect();
        let mut episodes = vec![None; self.tasks.len()];
        for (at, text) in lines.lines().enumerate() {
            let line = at + 1;
            let refuse = |reason: String| Err(AgentError::Line { line, reason }.into());
            if text.trim().is_empty() {
                continue;
            }
            let differing = self.differences(text, line)?;
            if !differing.is_empty() {
                return refuse(format!("not made as the rest would be: {}", differing.join(", ")));
            }
            let episode = remake(text, line, self.shop)?;
            let EpisodeCoordinates { goal, sample, .. } = episode.coordinates;
            let Some(&place) = places.get(&episode.coordinates) else {
                return refuse(format!("an episode for goal {} ({sample}), which is not asked for", goal.0));
            };
            if episodes[place].replace(episode).is_some() {
                return refuse(format!("a second episode for goal {} ({sample})", goal.0));
            }
        }
        Ok(episodes)
    }

    /// In what the episode of a line differs from those that are to be made, then and now.
    fn differences(&self, text: &str, line: usize) -> Result<Vec<String>, RemoteError> {
        let record: EpisodeRecord<'_> = serde_json::from_str(text)
            .map_err(|error| AgentError::Line { line, reason: format!("no recorded episode: {error}") })?;
        let PromptStamp { prompt_format, version, model, sampling } = self.policy.prompt();
        let mut differing: Vec<String> = Vec::new();
        let mut compare = |what: &str, then: String, now: String| {
            if then != now {
                differing.push(format!("{what} `{then}` then, `{now}` now"));
            }
        };
        let name = |name: Option<&str>| name.unwrap_or("none").to_owned();
        compare("policy", record.policy.to_string(), REMOTE.into());
        compare("model", name(record.model.as_deref()), name(model.as_deref()));
        compare("prompt_format", name(record.prompt_format.map(PromptFormat::name)), prompt_format.name().to_owned());
        compare("prompt", name(record.prompt_version.as_deref()), version.to_string());
        let drawn = |of: Option<Sampling>| serde_json::to_string(&of).expect("numbers are JSON");
        compare("sampling", drawn(record.sampling), drawn(sampling));
        let steps = |steps: u32| steps.to_string();
        compare("max_steps", steps(record.episode.config.max_steps), steps(self.policy.max_steps()));
        let parts = record.fingerprint.differences(self.shop.fingerprint());
        differing.extend((!parts.is_empty()).then(|| format!("another shop ({})", parts.join(", "))));
        Ok(differing)
    }
}
