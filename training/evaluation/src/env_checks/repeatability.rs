//! Checks that an episode can be repeated: again, after and beside other episodes, from its record, from a
//! snapshot.

use std::sync::Arc;

use rayon::prelude::*;
use webshop_agent::{Episode, RandomPolicy};
use webshop_env::{
    Action, EnvConfig, NoopReason, ObservationMode, ShopEnv, Step, TransitionDigest, VecEnv, replay,
};
use webshop_products::{GoalId, Seed};

use crate::env_checks::check::Check;
use crate::env_checks::episodes::{Episodes, SEED, actions, episodes_of};
use crate::error::Result;

const MODES: [ObservationMode; 5] = [
    ObservationMode::Html,
    ObservationMode::Text,
    ObservationMode::TextRich,
    ObservationMode::Url,
    ObservationMode::Json,
];

/// Only the random policy uses its seed. It has several actions to choose from on every page, so most of its
/// episodes differ under another seed; the check requires half.
pub(super) fn seed_control(episodes: &Episodes) -> Result<Check> {
    let again = episodes_of(&mut RandomPolicy::new(SEED), &episodes.shop, &episodes.goals)?;
    let other = episodes_of(&mut RandomPolicy::new(Seed(SEED.0 + 1)), &episodes.shop, &episodes.goals)?;
    let n = episodes.goals.len();
    let n_different = |repeated: &[Episode]| {
        let pairs = episodes.random.iter().zip(repeated);
        pairs.filter(|(one, other)| record(one) != record(other)).count()
    };
    let (n_changed, n_other) = (n_different(&again), n_different(&other));
    let measured = format!(
        "of {n} random episodes, {n_changed} differ in any byte under the same seed and {n_other} under another seed"
    );
    Ok(Check::new("seed_control", n_changed == 0 && 2 * n_other > n, measured))
}

pub(super) fn episode_determinism(episodes: &Episodes) -> Check {
    let all: Vec<&Episode> = episodes.all().collect();
    let differs = |episode: &&Episode| {
        let steps = |mode| run(&mut new_env(episodes, episode, mode), &actions(episode));
        let mode = MODES.into_iter().find(|&mode| steps(mode) != steps(mode))?;
        Some(format!(
            "an episode of {} has other observations or rewards the second time, in mode {mode:?}",
            name(episode)
        ))
    };
    let counterexample = all.par_iter().filter_map(differs).collect::<Vec<_>>().into_iter().next();
    Check::unless("episode_determinism", counterexample, || {
        let n_steps: usize = all.iter().map(|episode| episode.turns.len()).sum();
        format!(
            "{n_steps} steps of {} episodes gave equal bytes twice in each of {} observation modes",
            all.len(),
            MODES.len()
        )
    })
}

/// Compares every episode of the rollout with its actions taken after all other episodes in one environment,
/// and with its actions taken in parallel with all other episodes in a [`VecEnv`].
pub(super) fn episode_isolation(episodes: &Episodes) -> Check {
    let all: Vec<&Episode> = episodes.all().collect();
    let mut used = ShopEnv::new(episodes.shop.clone(), EnvConfig::default());
    // In reverse order, so that each episode follows other episodes than in its rollout.
    let after_others = all.iter().rev().find_map(|episode| {
        used.reset(episode.meta.coordinates.goal);
        let same = actions(episode).iter().zip(&episode.turns).all(|(action, turn)| {
            let step = used.step(action);
            TransitionDigest::of(used.session(), &step.observation) == turn.after
        });
        (!same).then(|| format!("an episode of {} differs when it follows other episodes", name(episode)))
    });
    let goals: Vec<GoalId> = all.iter().map(|episode| episode.meta.coordinates.goal).collect();
    let mut lanes = VecEnv::new(&episodes.shop, EnvConfig::default(), &goals);
    let longest = all.iter().map(|episode| episode.turns.len()).max().unwrap_or(0);
    let in_parallel = (0..longest).find_map(|turn| {
        let over = Action::Noop(NoopReason::EpisodeOver);
        let action =
            |episode: &&Episode| episode.turns.get(turn).map_or(over.clone(), |turn| turn.action.clone());
        lanes.step(&all.iter().map(action).collect::<Vec<_>>());
        let mut lanes = lanes.lanes().iter().zip(lanes.steps()).zip(&all);
        lanes.find_map(|((lane, step), episode)| {
            let expected = episode.turns.get(turn)?.after;
            let same = TransitionDigest::of(lane.session(), &step.observation) == expected;
            (!same).then(|| {
                format!("an episode of {} differs when it runs in parallel with others", name(episode))
            })
        })
    });
    Check::unless("episode_isolation", after_others.or(in_parallel), || {
        format!(
            "{} episodes were the same one after another in one environment and in parallel in {0} lanes",
            all.len()
        )
    })
}

pub(super) fn trajectory_record(episodes: &Episodes) -> Check {
    let problem = |episode: &Episode| {
        let read = match webshop_env::Episode::<(), ()>::read(&record(episode)) {
            Ok(read) => read,
            Err(error) => {
                return Some(format!("the record of {} does not read back: {error}", name(episode)));
            }
        };
        let is_complete = read.turns.len() == episode.turns.len()
            && read.turns.iter().zip(&episode.turns).all(|(read, turn)| {
                (&read.action, read.noop, read.reward, read.after)
                    == (&turn.action, turn.noop, turn.reward, turn.after)
            });
        let sum: f64 = read.turns.iter().map(|turn| turn.reward).sum();
        let end = (read.reward, read.breakdown, read.terminated, read.truncated);
        let expected = (sum, episode.breakdown, episode.terminated, episode.truncated);
        (!is_complete || end != expected)
            .then(|| format!("the record of {} differs from its episode", name(episode)))
    };
    Check::unless("trajectory_record", episodes.all().find_map(problem), || {
        let n_turns: usize = episodes.all().map(|episode| episode.turns.len()).sum();
        format!(
            "{} records read back equal in all {n_turns} turns: action, no-op reason, reward, and digests of state, \
             observation and available actions",
            episodes.all().count()
        )
    })
}

pub(super) fn replayability(episodes: &Episodes) -> Check {
    let records: Vec<String> = episodes.all().map(record).collect();
    let from_start = match replay(records.join("\n").as_bytes(), &episodes.shop) {
        Ok(replayed) => replayed.difference.map(|difference| difference.to_string()),
        Err(error) => Some(error.to_string()),
    };
    let from_snapshot = episodes.all().find_map(|episode| {
        let actions = actions(episode);
        let (before, after) = actions.split_at(actions.len() / 2);
        let mut env = new_env(episodes, episode, ObservationMode::Text);
        run(&mut env, before);
        let is_same = match ShopEnv::restore(episodes.shop.clone(), &env.snapshot()) {
            Ok(mut restored) => run(&mut restored, after) == run(&mut env, after),
            Err(_) => false,
        };
        (!is_same).then(|| format!("an episode of {} differs after a snapshot is restored", name(episode)))
    });
    Check::unless("replayability", from_start.or(from_snapshot), || {
        format!(
            "{0} records replayed without difference, and {0} episodes continued the same from a snapshot halfway",
            records.len()
        )
    })
}

/// The JSON record of an episode, a line of an episode file.
fn record(episode: &Episode) -> String {
    serde_json::to_string(episode).expect("records hold numbers and texts, all valid JSON")
}

fn new_env(episodes: &Episodes, episode: &Episode, observation: ObservationMode) -> ShopEnv {
    let mut env = ShopEnv::new(Arc::clone(&episodes.shop), EnvConfig { observation, ..EnvConfig::default() });
    env.reset(episode.meta.coordinates.goal);
    env
}

fn run(env: &mut ShopEnv, actions: &[Action]) -> Vec<Step> {
    actions.iter().map(|action| env.step(action)).collect()
}

fn name(episode: &Episode) -> String {
    format!("goal {}", episode.meta.coordinates.goal.0)
}
