//! A model server on this machine: it replies with the actions of the oracle, in the prompt format of the request.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::server::{Request, Response};
use serde_json::{Value, json};
use webshop_agent::{
    Episode, EpisodeCoordinates, OraclePolicy, Policy, PromptFormat, RolloutConfig, Task, rollout,
};
use webshop_env::{Action, Shop};
use webshop_products::GoalId;

/// Actions after which an episode is truncated.
pub(crate) const MAX_STEPS: u32 = 15;

/// One task for each of the first goals.
pub(crate) fn tasks(shop: &Arc<Shop>, n_goals: u32) -> Vec<Task> {
    let coordinates = |goal| EpisodeCoordinates::of_goal(GoalId(goal));
    (0..n_goals).map(|goal| Task::new(shop.clone(), coordinates(goal))).collect()
}

/// The episodes of a local policy.
pub(crate) fn local_episodes(tasks: &[Task], policy: &mut dyn Policy) -> Vec<Episode> {
    let limits = RolloutConfig { max_steps: MAX_STEPS, lanes: 8 };
    rollout(policy, tasks, limits, &mut |_, _| ()).expect("policies without a model do not fail")
}

/// A model that knows the episode of the oracle for every goal.
pub(crate) struct Model {
    prompt_format: PromptFormat,
    /// The actions turn by turn, by the instruction.
    actions: BTreeMap<String, Vec<Action>>,
}

impl Model {
    pub(crate) fn new(shop: &Arc<Shop>, prompt_format: PromptFormat) -> Model {
        let n_goals = shop.goals().goals().len() as u32;
        let actions = local_episodes(&tasks(shop, n_goals), &mut OraclePolicy).into_iter().map(|episode| {
            let instruction = shop.goals().get(episode.meta.coordinates.goal).instruction.to_string();
            (instruction, episode.turns.into_iter().map(|turn| turn.action).collect())
        });
        Model { prompt_format, actions: actions.collect() }
    }

    /// The instruction that a request is about, and the number of its turn.
    pub(crate) fn place(&self, asked: &Request) -> (String, usize) {
        let body: Value = serde_json::from_str(&asked.body).expect("a request is JSON");
        let messages = body["messages"].as_array().expect("a request has messages");
        let content = |message: &Value| message["content"].as_str().expect("contents are texts").to_owned();
        let text: String = messages.iter().map(content).collect();
        let named = self.actions.keys().filter(|instruction| text.contains(*instruction));
        // One instruction may be the prefix of another.
        let instruction =
            named.max_by_key(|instruction| instruction.len()).expect("a request names an instruction");
        let turn = match self.prompt_format {
            PromptFormat::VerlAgent => {
                text.split("This is step ").nth(1).map(|rest| leading_number(rest) - 1)
            }
            prompt_format if prompt_format.is_shop_r1() => {
                (0..usize::MAX).find(|turn| !text.contains(&format!("Action {}: {{", turn + 1)))
            }
            // In ReAct, the first reply agrees to the rules.
            prompt_format => {
                let n_completions = messages.iter().filter(|message| message["role"] == "assistant").count();
                Some(n_completions - usize::from(prompt_format == PromptFormat::AgentgymReact))
            }
        };
        (instruction.clone(), turn.expect("a request shows its turn"))
    }

    /// The reply of the model.
    pub(crate) fn answer(&self, asked: &Request) -> Response {
        let (instruction, turn) = self.place(asked);
        let action = &self.actions[&instruction][turn];
        let text = self.prompt_format.render_completion("I do what helps.", action);
        let message = self.prompt_format.completion_message(&text, "call_of_the_server");
        completion(message.to_server(), "stop")
    }
}

fn leading_number(text: &str) -> usize {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

/// A reply, in the interface's own form.
pub(crate) fn completion(message: Value, finish_reason: &str) -> Response {
    let choice = json!({ "index": 0, "message": message, "finish_reason": finish_reason });
    let usage = json!({ "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 });
    let reply = json!({ "id": "1", "object": "chat.completion", "model": "parrot", "choices": [choice], "usage": usage });
    Response::Json(200, "", reply.to_string())
}

/// An error, in the interface's own form.
pub(crate) fn error(status: u16, headers: &'static str, message: &str) -> Response {
    Response::Json(
        status,
        headers,
        json!({ "error": { "message": message, "type": "test", "code": null } }).to_string(),
    )
}
