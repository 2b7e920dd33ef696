//! Recorded trips, read and made again.
//!
//! [`remake()`] reads one line of a rollout file, makes the trip again in the shop, and gives back the [`Episode`] if
//! everything is as recorded. So whoever works with records works with what the shop would answer today, and a file
//! that was edited by hand or made elsewhere is found out.

use std::sync::Arc;

use webshop_env::{Difference, Shop, Trip};

use crate::episode::{Episode, EpisodeRecord, EpisodeTurn, PromptStamp, TurnRecord, TurnTokens};
use crate::error::AgentError;

/// The trip that stands in the `line`-th line of a rollout file, which is `text`.
///
/// # Errors
/// [`AgentError::Line`] if it is no trip of this shop, or does not go as recorded.
pub fn remake(text: &str, line: usize, shop: &Arc<Shop>) -> Result<Episode, AgentError> {
    let refuse = |reason: String| AgentError::Line { line, reason };
    let trip = Trip::read(text).map_err(|error| refuse(error.to_string()))?;
    let record: EpisodeRecord<'_> =
        serde_json::from_str(text).map_err(|error| refuse(format!("no recorded trip: {error}")))?;
    match trip.replay(shop) {
        Ok(None) => Ok(episode(record)),
        Ok(Some(difference)) => Err(refuse(told(&difference))),
        Err(error) => Err(refuse(error.to_string())),
    }
}

/// The difference on one line.
fn told(difference: &Difference) -> String {
    let Difference { turn, what, recorded, now, .. } = difference;
    format!("turn {turn}: `{what}` is not as recorded: `{recorded}` then, `{now}` now")
}

/// What was recorded, once it is known to be so.
fn episode(record: EpisodeRecord<'_>) -> Episode {
    let EpisodeRecord { trip, coordinates, policy, model, dialect, prompt_version, sampling, .. } = record;
    let rules = trip.rules;
    let prompt = dialect.map(|dialect| PromptStamp {
        dialect,
        version: prompt_version.unwrap_or_else(|| dialect.version().into()),
        model,
        sampling,
    });
    let turn = |record: TurnRecord<'_>| EpisodeTurn {
        action: record.turn.said(rules),
        thought: record.thought.map(Into::into),
        answer: record.answer.map(Into::into),
        is_well_formed: record.well_formed,
        leaves: record.leaves,
        stop: record.stop,
        noop: record.turn.noop,
        reward: record.turn.reward,
        after: record.turn.after,
        tokens: record.context.zip(record.completion).map(|(context, completion)| TurnTokens {
            context,
            prompt_ids: record.prompt_ids.into_owned(),
            completion: completion.into_owned(),
        }),
    };
    Episode {
        policy,
        coordinates,
        config: trip.config,
        start: trip.start,
        turns: trip.turns.into_iter().map(turn).collect(),
        reward: trip.reward,
        breakdown: trip.breakdown,
        terminated: trip.terminated,
        truncated: trip.truncated,
        prompt,
    }
}
