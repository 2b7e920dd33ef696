//! Writes a policy and measures it on test goals: it buys the result whose title shares most words with the instruction.
//!
//! ```text
//! cargo run --example own_policy
//! ```

use std::error::Error;
use std::sync::Arc;

use webshop_agent::{
    AgentError, Decision, EpisodeCoordinates, LaneView, Policy, RolloutConfig, RulePolicy, Task, rollout,
};
use webshop_env::{Action, Page, Shop};
use webshop_products::{CatalogSource, GoalId, SourceConfig, Split};

/// Prefers titles that share words with the instruction.
struct TitlePolicy;

impl TitlePolicy {
    fn choose(view: &LaneView<'_>) -> Action {
        let is_wanted = |word: &&str| view.instruction().contains(*word);
        let n_shared = |title: &str| title.to_lowercase().split_whitespace().filter(is_wanted).count();
        match view.page {
            Page::Search(_) => Action::Search(view.instruction().to_lowercase()),
            // Reversed, because `max_by_key` returns the last of equals.
            Page::Results(page) => match page.items.iter().rev().max_by_key(|item| n_shared(&item.title)) {
                Some(item) => Action::Click(item.id.as_str().to_lowercase()),
                None => Action::Click("back to search".into()),
            },
            _ => Action::Click("buy now".into()),
        }
    }
}

impl Policy for TitlePolicy {
    fn name(&self) -> &'static str {
        "title"
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Decision>, AgentError> {
        Ok(lanes.iter().map(|view| Decision::act(Self::choose(view))).collect())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (catalog, goals) = CatalogSource::open("100", SourceConfig::default())?.into_goals()?;
    let shop = Arc::new(Shop::new(catalog, goals)?);
    let task = |goal: &GoalId| Task::new(Arc::clone(&shop), EpisodeCoordinates::of_goal(*goal));
    let tasks: Vec<Task> = shop.goals().split(Split::Test).iter().map(task).collect();
    let config = RolloutConfig { max_steps: 15, lanes: 16 };
    for policy in [&mut RulePolicy as &mut dyn Policy, &mut TitlePolicy] {
        let episodes = rollout(policy, &tasks, config, &mut |_, _| ())?;
        let mean = episodes.iter().map(|episode| episode.reward).sum::<f64>() / episodes.len() as f64;
        println!("{:5}  mean reward of {} episodes {mean:.3}", policy.name(), episodes.len());
    }
    Ok(())
}
