//! Requests for a reset: which goal, how many steps, which observation.
//!
//! [`ResetRequest::read`] reads one from the fields that several interfaces share: `task`, `goal`, `split` with
//! `index`, and `seed`. The first of these that is given decides.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use webshop_env::ObservationMode;
use webshop_products::Split;

use crate::fields::{FieldError, Fields};

/// The longest name of an episode, in characters; OpenEnv's limit.
const MAX_EPISODE_ID: usize = 255;

/// How the goal of an episode is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalRequest {
    /// The goal with this number.
    Goal(u64),
    /// The goal at an index of a split.
    Index {
        /// The split; the server's if `None`.
        split: Option<Split>,
        /// From 0, in the order of goals.
        index: u64,
    },
    /// The goal that a seed draws from a split.
    Seed {
        /// The split; the server's if `None`.
        split: Option<Split>,
        /// The seed.
        seed: u64,
    },
    /// The next goal of the session's own stream.
    Stream {
        /// The split; the server's if `None`.
        split: Option<Split>,
    },
}

/// A request for a new episode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetRequest {
    /// The goal.
    pub goal: GoalRequest,
    /// Actions after which the episode is truncated, at least 1; the server's default if `None`.
    pub max_steps: Option<u32>,
    /// The form of observations; the server's default if `None`.
    pub observation: Option<ObservationMode>,
    /// A name that the client gives the episode.
    pub episode_id: Option<String>,
}

impl ResetRequest {
    /// A reset with the server's defaults.
    pub fn new(goal: GoalRequest) -> ResetRequest {
        ResetRequest { goal, max_steps: None, observation: None, episode_id: None }
    }

    /// The names of the fields that [`ResetRequest::read`] knows.
    pub(crate) const FIELDS: [&str; 8] =
        ["task", "goal", "split", "index", "seed", "max_steps", "observation", "episode_id"];

    /// Reads a request; fields with other names are ignored.
    pub(crate) fn read(fields: &mut Fields<'_>) -> ResetRequest {
        let task = fields.object("task").map(|task| task_goal(fields, task));
        let goal = fields.unsigned("goal", u64::MAX);
        let split = split(fields, "split");
        let index = fields.unsigned("index", u64::MAX);
        let seed = fields.unsigned("seed", u64::MAX);
        let goal = match (task.flatten().or(goal), index, seed) {
            (Some(goal), _, _) => GoalRequest::Goal(goal),
            (None, Some(index), _) => GoalRequest::Index { split, index },
            (None, None, Some(seed)) => GoalRequest::Seed { split, seed },
            (None, None, None) => GoalRequest::Stream { split },
        };
        ResetRequest {
            goal,
            max_steps: max_steps(fields),
            observation: observation(fields),
            episode_id: fields.text("episode_id", MAX_EPISODE_ID),
        }
    }
}

/// The goal of a task, which it must name.
fn task_goal(fields: &mut Fields<'_>, task: &Map<String, Value>) -> Option<u64> {
    let mut inner = fields.below("task", task);
    let goal = inner.required("goal", |fields, name| fields.unsigned(name, u64::MAX));
    let errors = inner.into_errors();
    fields.add(errors);
    goal
}

/// The split that a field names.
pub(crate) fn split(fields: &mut Fields<'_>, name: &str) -> Option<Split> {
    fields.parsed(name, "'train', 'validation', 'test' or 'all'", |text| text.parse().ok())
}

/// The observation mode that the field `observation` names.
fn observation(fields: &mut Fields<'_>) -> Option<ObservationMode> {
    fields.parsed("observation", "'html', 'text', 'text_rich', 'url' or 'json'", |text| {
        serde_json::from_value(Value::from(text)).ok()
    })
}

fn max_steps(fields: &mut Fields<'_>) -> Option<u32> {
    let n = fields.unsigned("max_steps", u64::from(u32::MAX))?;
    if n == 0 {
        let error = FieldError::new("greater_than_equal", "Input should be greater than or equal to 1");
        fields.refuse("max_steps", error);
    }
    u32::try_from(n).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Result<ResetRequest, Vec<String>> {
        let map = value.as_object().expect("an object");
        let mut fields = Fields::new(map);
        let request = ResetRequest::read(&mut fields);
        let errors = fields.into_errors();
        let shown = |error: &FieldError| format!("{}: {}", error.place(), error.message);
        if errors.is_empty() { Ok(request) } else { Err(errors.iter().map(shown).collect()) }
    }

    #[test]
    fn the_first_of_task_goal_index_and_seed_decides() {
        let all = json!({"task": {"goal": 1, "more": 2}, "goal": 2, "split": "test", "index": 3, "seed": 4});
        let without = |names: &[&str]| {
            let mut value = all.clone();
            names.iter().for_each(|name| drop(value.as_object_mut().expect("an object").remove(*name)));
            read(value).expect("a request").goal
        };
        let split = Some(Split::Test);
        assert_eq!(without(&[]), GoalRequest::Goal(1));
        assert_eq!(without(&["task"]), GoalRequest::Goal(2));
        assert_eq!(without(&["task", "goal"]), GoalRequest::Index { split, index: 3 });
        assert_eq!(without(&["task", "goal", "index"]), GoalRequest::Seed { split, seed: 4 });
        assert_eq!(without(&["task", "goal", "index", "seed"]), GoalRequest::Stream { split });
        assert_eq!(
            read(json!({"goal": null, "rows": [1]})),
            Ok(ResetRequest::new(GoalRequest::Stream { split: None }))
        );
    }

    #[test]
    fn every_wrong_field_is_named() {
        let wrong = json!({
            "task": {}, "goal": -1, "split": "tset", "index": "x", "seed": 1.5, "max_steps": 0,
            "observation": 7, "episode_id": "e".repeat(256),
        });
        let expected = [
            "task.goal: Field required",
            "goal: Input should be greater than or equal to 0",
            "split: Input should be 'train', 'validation', 'test' or 'all'",
            "index: Input should be a valid integer",
            "seed: Input should be a valid integer",
            "max_steps: Input should be greater than or equal to 1",
            "observation: Input should be 'html', 'text', 'text_rich', 'url' or 'json'",
            "episode_id: String should have at most 255 characters",
        ];
        assert_eq!(read(wrong), Err(expected.map(str::to_owned).to_vec()));
        let beyond = Err(vec!["seed: Input should be less than or equal to 18446744073709551615".to_owned()]);
        assert_eq!(read(json!({"seed": 1e20})), beyond);
    }
}
