//! Episodes of any agent, our own or another: what `rollout --out`, `convert --from`, `serve --record` or Python wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use webshop_agent::{Episode, EpisodeCoordinates, EpisodeMeta, ModelTurn, Turn};
use webshop_env::Shop;
use webshop_evaluation::Tally;
use webshop_products::GoalId;

use super::local::Finished;
use super::recorded::{different_setting, read_text};
use super::tasks::Tasks;
use crate::args::episodes::EpisodesArgs;

/// The policy of episodes that name none.
const UNNAMED: &str = "recorded";

/// The result over the episodes of these files, in any order. Each is replayed, so that its rewards are the shop's.
///
/// Fails if an episode is of another shop, step limit, agent or way of sampling, or if they are not one for each goal that the flags name.
pub(crate) fn evaluate_any_agent(args: &EpisodesArgs, files: &[PathBuf]) -> Result<Finished> {
    let tasks = Tasks::open(&args.tasks)?;
    let shop = tasks.shop();
    let goals: Vec<GoalId> = tasks.tasks.iter().map(|task| task.coordinates.goal).collect();
    let named: BTreeSet<GoalId> = goals.iter().copied().collect();
    let mut episodes: BTreeMap<GoalId, Episode> = BTreeMap::new();
    for file in files {
        let text = read_text(file)?;
        for (text, number) in text.lines().zip(1..).filter(|(text, _)| !text.trim().is_empty()) {
            let place = || format!("`{}`, line {number}", file.display());
            let episode = replayed(text, shop, args.max_steps()).with_context(place)?;
            let goal = episode.goal;
            ensure!(
                named.contains(&goal),
                "{}: goal {} is not among the {} goals that the flags name",
                place(),
                goal.0,
                goals.len()
            );
            let earlier = episodes.values().next();
            if let Some(setting) = earlier.and_then(|earlier| different_setting(earlier, &episode)) {
                bail!("{}: the episode was made with another {setting} than those before it", place());
            }
            ensure!(
                episodes.insert(goal, episode).is_none(),
                "{}: a second episode for goal {}",
                place(),
                goal.0
            );
        }
    }
    let missing: Vec<&GoalId> = goals.iter().filter(|goal| !episodes.contains_key(goal)).collect();
    if let Some(first) = missing.first() {
        bail!(
            "{} of {} goals have no episode in these files, goal {} the first; `--split` and `--episodes` name the goals",
            missing.len(),
            goals.len(),
            first.0
        );
    }
    let mut tally = Tally::default();
    goals.iter().for_each(|goal| tally.count(&episodes[goal], shop.goals()));
    let policy = &*episodes[&goals[0]].meta.policy;
    let result = tasks.result(policy, args, tally.summary(), None);
    Ok(Finished { tasks, tally, result })
}

/// The episode of a line, if a replay of its actions gives what it says.
fn replayed(text: &str, shop: &Arc<Shop>, max_steps: u32) -> Result<Episode> {
    let plain = webshop_env::Episode::<(), RecordedPolicy>::read(text)?;
    let recorded = plain.config.max_steps;
    ensure!(
        recorded == max_steps,
        "the episode has a step limit of {recorded}, not of {max_steps}; give `--max-steps {recorded}`"
    );
    if let Some(difference) = plain.replay(shop)? {
        bail!("a replay differs: {difference}");
    }
    // Written by an agent of this program, the line has more.
    Ok(Episode::read(text).unwrap_or_else(|_| with_meta(plain, shop)))
}

/// What is read of the agent of an episode.
#[derive(Deserialize)]
struct RecordedPolicy {
    policy: Option<String>,
}

/// The episode of an agent that records its actions only.
fn with_meta(plain: webshop_env::Episode<(), RecordedPolicy>, shop: &Shop) -> Episode {
    let coordinates = EpisodeCoordinates::of_goal(plain.goal);
    let policy = plain.meta.policy.as_deref().unwrap_or(UNNAMED);
    let turns = plain.turns.into_iter().map(|webshop_env::Turn { action, noop, reward, after, .. }| Turn {
        action,
        noop,
        reward,
        after,
        agent: ModelTurn::default(),
    });
    Episode {
        meta: EpisodeMeta::new(shop, coordinates, policy, None),
        turns: turns.collect(),
        format: plain.format,
        environment: plain.environment,
        goal_fingerprint: plain.goal_fingerprint,
        rules: plain.rules,
        config: plain.config,
        goal: plain.goal,
        start: plain.start,
        reward: plain.reward,
        breakdown: plain.breakdown,
        terminated: plain.terminated,
        truncated: plain.truncated,
    }
}
