//! The episodes that the flags name in a shop of this process, and the result over them.

use std::sync::Arc;

use anyhow::bail;
use webshop_agent::{EpisodeCoordinates, Task};
use webshop_env::Shop;
use webshop_evaluation::Summary;
use webshop_products::{GoalSet, Split};
use webshop_training::TaskSet;

use crate::args::episodes::{EpisodesArgs, TasksArgs};
use crate::result_file::RolloutResult;

/// A shop, and one task for each of the chosen goals.
pub(crate) struct Tasks {
    task_set: TaskSet,
    pub(crate) tasks: Vec<Task>,
}

impl Tasks {
    /// Opens the shop and takes the first goals of the split's fixed order, or their part; at least one.
    pub(crate) fn open(args: &TasksArgs) -> anyhow::Result<Self> {
        let run = args.run.clone().unwrap_or_default();
        let shop = args.shop.open_with_defaults(&run, args.split_rule)?;
        let task_set = TaskSet::of_shop(shop);
        let split = Split::from(args.split);
        let mut goals = task_set.held_out(split, args.episodes);
        if goals.is_empty() {
            bail!("there is no episode to run: `--episodes` is 0, or the split `{split}` has no goals");
        }
        if let Some(shard) = args.shard {
            let range = shard.range(goals.len());
            if range.is_empty() {
                bail!("there is no episode in this part of {}; take fewer parts", goals.len());
            }
            goals = goals[range].to_vec();
        }
        let coordinates = EpisodeCoordinates::of_goal;
        let tasks =
            goals.into_iter().map(|goal| Task::new(task_set.shop().clone(), coordinates(goal))).collect();
        Ok(Self { task_set, tasks })
    }

    /// The shop.
    pub(crate) fn shop(&self) -> &Arc<Shop> {
        self.task_set.shop()
    }

    /// The result of these episodes.
    pub(crate) fn result(
        &self,
        policy: &str,
        args: &EpisodesArgs,
        summary: Summary,
        seconds: Option<f64>,
    ) -> RolloutResult {
        let goals = self.shop().goals();
        RolloutResult {
            policy: policy.into(),
            seed: args.seed,
            max_steps: Some(args.max_steps()),
            summary,
            split: Some(args.tasks.split.into()),
            shard: args.tasks.shard.map(|shard| shard.to_string()),
            split_rule: Some(goals.split_rule()),
            leak: leak(goals),
            goal_fingerprint: Some(goals.fingerprint().into()),
            site: None,
            remote: None,
            fingerprint: Some(self.shop().fingerprint().clone()),
            seconds,
            baselines: Vec::new(),
        }
    }
}

/// The number of test goals that are training goals too, if the split rule allows that.
fn leak(goals: &GoalSet) -> Option<String> {
    let [train, test] = [Split::Train, Split::Test].map(|split| goals.split(split));
    let n_shared = test.iter().filter(|goal| train.binary_search(goal).is_ok()).count();
    let is_leaky = goals.split_rule().is_leaky();
    is_leaky
        .then(|| format!("{n_shared} of {} test goals may occur in training, as in verl-agent", test.len()))
}
