//! Episodes of a policy that runs in this process.

use std::path::Path;

use webshop_agent::{EpisodeFile, InOrder, Policy, RolloutConfig, rollout_each};
use webshop_evaluation::Tally;
use webshop_products::Seed;
use webshop_training::TrainedModel;

use super::tasks::Tasks;
use crate::args::episodes::EpisodesArgs;
use crate::progress::observer;
use crate::result_file::RolloutResult;

/// Concurrent episodes of a policy that needs no memory for them.
const LANES: usize = 128;

/// Episodes that have ended.
pub(crate) struct Finished {
    /// The tasks of the episodes.
    pub(crate) tasks: Tasks,
    /// The episodes' values.
    pub(crate) tally: Tally,
    /// Their statistics.
    pub(crate) result: RolloutResult,
}

/// Runs a trained model.
pub(crate) fn run_model(
    model: TrainedModel,
    args: &EpisodesArgs,
    out: Option<&Path>,
) -> anyhow::Result<Finished> {
    let compute = args.generation.compute.choose()?;
    let loaded = model.into_policy(args.generation.options(), &compute)?;
    run_lanes(&mut loaded.policy(Seed(args.seed))?, loaded.lanes(), args, out)
}

/// Runs a policy without a model.
pub(crate) fn run_policy(
    policy: &mut dyn Policy,
    args: &EpisodesArgs,
    out: Option<&Path>,
) -> anyhow::Result<Finished> {
    run_lanes(policy, LANES, args, out)
}

#[expect(clippy::disallowed_methods, reason = "the result states the duration")]
fn run_lanes(
    policy: &mut dyn Policy,
    lanes: usize,
    args: &EpisodesArgs,
    out: Option<&Path>,
) -> anyhow::Result<Finished> {
    let tasks = Tasks::open(&args.tasks)?;
    let mut file = out.map(EpisodeFile::create).transpose()?;
    let start = std::time::Instant::now();
    let observer = observer();
    observer.begin(policy.name(), tasks.tasks.len() as u64, 0);
    let config = RolloutConfig { max_steps: args.max_steps(), lanes };
    let goals = tasks.shop().goals();
    // Episodes end in any order; file and statistics take them in the order of the tasks.
    let (mut order, mut tally) = (InOrder::default(), Tally::default());
    let outcome = rollout_each(policy, &tasks.tasks, config, &mut |task_idx, episode| {
        observer.advance(1, "");
        order.take(task_idx, episode).try_for_each(|episode| {
            tally.count(&episode, goals);
            file.as_mut().map_or(Ok(()), |file| file.append(&episode))
        })
    });
    observer.end();
    outcome?;
    let seconds = start.elapsed().as_secs_f64();
    let result = tasks.result(policy.name(), args, tally.summary(), Some(seconds));
    Ok(Finished { tasks, tally, result })
}
