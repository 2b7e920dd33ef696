//! Whether a trip goes the same way again, in every way in which it can be made again.

use std::sync::Arc;

use rayon::prelude::*;
use webshop_agent::{Episode, RandomPolicy};
use webshop_env::{
    Action, EnvConfig, Footprint, NoopReason, ObservationMode, ShopEnv, Step, Trip, VecEnv, replay,
};
use webshop_products::{GoalId, Seed};

use crate::env_checks::Check;
use crate::env_checks::trips::{SEED, Trips, actions, played};
use crate::error::Result;

const MODES: [ObservationMode; 5] = [
    ObservationMode::Html,
    ObservationMode::Text,
    ObservationMode::TextRich,
    ObservationMode::Url,
    ObservationMode::Json,
];

/// The random customer is the only one who draws. A goal leaves it some choice on every page, so most of its trips
/// must differ under another seed; half is far below what is met and far above chance agreement.
pub(super) fn seed_control(trips: &Trips) -> Result<Check> {
    let again = played(&trips.shop, &trips.goals, &mut RandomPolicy::new(SEED))?;
    let other = played(&trips.shop, &trips.goals, &mut RandomPolicy::new(Seed(SEED.0 + 1)))?;
    let n = trips.goals.len();
    let differing = |episodes: &[Episode]| {
        let pairs = trips.random.iter().zip(episodes);
        pairs.filter(|(one, other)| line(trips, one) != line(trips, other)).count()
    };
    let (changed, drawn) = (differing(&again), differing(&other));
    let measured = format!(
        "of {n} random trips, {changed} differ in any byte when drawn again and {drawn} under another seed"
    );
    Ok(Check::new("seed_control", changed == 0 && 2 * drawn > n, measured))
}

pub(super) fn episode_determinism(trips: &Trips) -> Check {
    let all: Vec<&Episode> = trips.all().collect();
    let differs = |episode: &&Episode| {
        let goes = |observation| walk(&mut fresh(trips, episode, observation), &actions(episode));
        let mode = MODES.into_iter().find(|&mode| goes(mode) != goes(mode))?;
        Some(format!("a trip for {} shows or pays other things the second time, as {mode:?}", name(episode)))
    };
    let counterexample = all.par_iter().filter_map(differs).collect::<Vec<_>>().into_iter().next();
    Check::unless("episode_determinism", counterexample, || {
        let n_steps: usize = all.iter().map(|episode| episode.turns.len()).sum();
        format!(
            "{n_steps} steps of {} trips gave equal bytes twice in each of {} forms of observation",
            all.len(),
            MODES.len()
        )
    })
}

/// Every trip as it went in its rollout, against the same actions after all other trips in one environment, and side
/// by side with all others on as many threads as there are.
pub(super) fn episode_isolation(trips: &Trips) -> Check {
    let all: Vec<&Episode> = trips.all().collect();
    let mut used = ShopEnv::new(trips.shop.clone(), EnvConfig::default());
    // The last first, so that each has other trips before it than it had.
    let after_others = all.iter().rev().find_map(|episode| {
        used.reset(episode.coordinates.goal);
        let same = actions(episode).iter().zip(&episode.turns).all(|(action, turn)| {
            let step = used.step(action);
            Footprint::of(used.session(), &step.observation) == turn.after
        });
        (!same).then(|| format!("a trip for {} goes otherwise after others", name(episode)))
    });
    let goals: Vec<GoalId> = all.iter().map(|episode| episode.coordinates.goal).collect();
    let mut lanes = VecEnv::new(&trips.shop, EnvConfig::default(), &goals);
    let longest = all.iter().map(|episode| episode.turns.len()).max().unwrap_or(0);
    let side_by_side = (0..longest).find_map(|turn| {
        let over = Action::Noop(NoopReason::EpisodeOver);
        let said =
            |episode: &&Episode| episode.turns.get(turn).map_or(over.clone(), |turn| turn.action.clone());
        lanes.step(&all.iter().map(said).collect::<Vec<_>>());
        let mut lanes = lanes.lanes().iter().zip(lanes.steps()).zip(&all);
        lanes.find_map(|((lane, step), episode)| {
            let expected = episode.turns.get(turn)?.after;
            let same = Footprint::of(lane.session(), &step.observation) == expected;
            (!same).then(|| format!("a trip for {} goes otherwise beside others", name(episode)))
        })
    });
    Check::unless("episode_isolation", after_others.or(side_by_side), || {
        format!(
            "{} trips went the same one after another in one environment and side by side in {0} lanes",
            all.len()
        )
    })
}

pub(super) fn trajectory_record(trips: &Trips) -> Check {
    let problem = |episode: &Episode| {
        let trip = match Trip::read(&line(trips, episode)) {
            Ok(trip) => trip,
            Err(error) => {
                return Some(format!("the record of {} does not read back: {error}", name(episode)));
            }
        };
        let is_whole = trip.turns.len() == episode.turns.len()
            && trip.turns.iter().zip(&episode.turns).all(|(kept, turn)| {
                (&kept.action, kept.noop, kept.reward, kept.after)
                    == (&turn.action.to_string(), turn.noop, turn.reward, turn.after)
            });
        let paid: f64 = trip.turns.iter().map(|turn| turn.reward).sum();
        let ends = (trip.reward, trip.breakdown, trip.terminated, trip.truncated);
        let ended = (paid, episode.breakdown, episode.terminated, episode.truncated);
        (!is_whole || ends != ended).then(|| format!("the record of {} is not what happened", name(episode)))
    };
    Check::unless("trajectory_record", trips.all().find_map(problem), || {
        let n_turns: usize = trips.all().map(|episode| episode.turns.len()).sum();
        format!(
            "{} records read back with all {n_turns} turns: action, reason, reward, and digests of state, \
             observation and actions",
            trips.all().count()
        )
    })
}

pub(super) fn replayability(trips: &Trips) -> Check {
    let lines: Vec<String> = trips.all().map(|episode| line(trips, episode)).collect();
    let from_start = match replay(lines.join("\n").as_bytes(), &trips.shop) {
        Ok(replayed) => replayed.difference.map(|difference| difference.to_string()),
        Err(error) => Some(error.to_string()),
    };
    let from_snapshot = trips.all().find_map(|episode| {
        let said = actions(episode);
        let (before, after) = said.split_at(said.len() / 2);
        let mut env = fresh(trips, episode, ObservationMode::Text);
        walk(&mut env, before);
        let goes_on = match ShopEnv::restore(trips.shop.clone(), &env.snapshot()) {
            Ok(mut restored) => walk(&mut restored, after) == walk(&mut env, after),
            Err(_) => false,
        };
        (!goes_on).then(|| format!("a trip for {} goes otherwise from a snapshot", name(episode)))
    });
    Check::unless("replayability", from_start.or(from_snapshot), || {
        format!(
            "{0} recorded trips went as recorded, and {0} went on the same from a snapshot half way",
            lines.len()
        )
    })
}

/// The trip as a line of a rollout file.
fn line(trips: &Trips, episode: &Episode) -> String {
    serde_json::to_string(&episode.record(&trips.shop))
        .expect("records hold numbers and texts, all valid JSON")
}

fn fresh(trips: &Trips, episode: &Episode, observation: ObservationMode) -> ShopEnv {
    let mut env = ShopEnv::new(Arc::clone(&trips.shop), EnvConfig { observation, ..EnvConfig::default() });
    env.reset(episode.coordinates.goal);
    env
}

fn walk(env: &mut ShopEnv, actions: &[Action]) -> Vec<Step> {
    actions.iter().map(|action| env.step(action)).collect()
}

fn name(episode: &Episode) -> String {
    format!("goal {}", episode.coordinates.goal.0)
}
