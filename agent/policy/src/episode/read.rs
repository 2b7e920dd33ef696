//! Reading a line of a rollout file.

use std::sync::Arc;

use webshop_env::{Difference, Shop};

use crate::episode::Episode;
use crate::error::AgentError;

/// Reads line `line` of a rollout file, whose content is `text`, and replays it in `shop`.
///
/// # Errors
/// [`AgentError::Line`], if the line is not an episode of this shop, or the replay differs from the
/// recording.
pub fn read_episode(text: &str, line: usize, shop: &Arc<Shop>) -> Result<Episode, AgentError> {
    let refuse = |reason: String| AgentError::Line { line, reason };
    let episode = Episode::read(text).map_err(|error| refuse(error.to_string()))?;
    if episode.meta.coordinates.goal != episode.goal {
        return Err(refuse(format!(
            "`coordinates.goal` is {}, and `goal` is {}",
            episode.meta.coordinates.goal.0, episode.goal.0
        )));
    }
    match episode.replay(shop) {
        Ok(None) => Ok(episode),
        Ok(Some(Difference { turn, what, recorded, now, .. })) => {
            Err(refuse(format!("turn {turn}: `{what}` is `{recorded}` in the recording and `{now}` here")))
        }
        Err(error) => Err(refuse(error.to_string())),
    }
}
