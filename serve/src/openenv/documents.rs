//! Observations, states and schemas of OpenEnv.

use serde_json::{Value, json};
use webshop_env::{ENVIRONMENT_ID, Shop};

use crate::sessions::episode::LastAction;
use crate::sessions::session::SessionView;

/// The observation of a reset: its reward is null, and its metadata name all versions and digests.
pub(super) fn first_observation(shop: &Shop, view: &SessionView) -> Value {
    let mut metadata = serde_json::to_value(shop.fingerprint()).expect("a fingerprint holds texts");
    metadata["digest"] = view.digest.to_string().into();
    observation_with(view, metadata)
}

/// An observation with reward and end.
pub(super) fn observation(view: &SessionView) -> Value {
    observation_with(view, json!({"environment": ENVIRONMENT_ID, "digest": view.digest}))
}

fn observation_with(view: &SessionView, metadata: Value) -> Value {
    let last = view.last.as_ref();
    json!({
        "observation": {
            "text": view.observation,
            "instruction": view.instruction,
            "available_actions": view.available_actions,
            "url": view.url,
            "goal": view.goal,
            "split": view.split,
            "step": view.step,
            "terminated": view.terminated,
            "truncated": view.truncated,
            "noop": last.and_then(|last| last.noop),
            "reward_parts": last.and_then(LastAction::reward_parts),
            "metadata": metadata,
        },
        "reward": last.map(|last| last.reward),
        "done": view.is_done(),
        "metadata": metadata,
    })
}

/// The state of an episode.
pub(super) fn state(view: &SessionView) -> Value {
    json!({
        "episode_id": view.episode_id,
        "step_count": view.step,
        "goal": view.goal,
        "split": view.split,
        "seed": view.seed,
        "digest": view.digest,
        "environment": ENVIRONMENT_ID,
    })
}

/// The JSON schemas of actions, observations and states. An action has one required field, so that clients may
/// send a model's text as it is.
pub(super) fn schemas() -> Value {
    json!({
        "action": action_schema(),
        "observation": observation_schema("WebShopObservation"),
        "reset_observation": observation_schema("WebShopResetObservation"),
        "state": state_schema(),
    })
}

fn action_schema() -> Value {
    json!({
        "title": "WebShopAction",
        "type": "object",
        "additionalProperties": false,
        "required": ["action"],
        "properties": {
            "action": {
                "title": "Action", "type": "string",
                "description": "`search[words]`, or `click[label]` with a label of the page. Any other text \
                                is a no-op.",
            },
            "metadata": {
                "title": "Metadata", "type": "object", "additionalProperties": true,
                "description": "Not read.",
            },
        },
    })
}

fn observation_schema(title: &str) -> Value {
    let nullable = |kind: &str| json!({"anyOf": [{"type": kind}, {"type": "null"}]});
    json!({
        "title": title,
        "type": "object",
        "additionalProperties": false,
        "required": [
            "text", "instruction", "available_actions", "url", "goal", "split", "step", "terminated", "truncated"
        ],
        "properties": {
            "text": {"type": "string", "description": "The page in the episode's observation mode."},
            "instruction": {"type": "string"},
            "available_actions": {
                "type": "object",
                "required": ["has_search_bar", "clickables"],
                "properties": {
                    "has_search_bar": {"type": "boolean"},
                    "clickables": {"type": "array", "items": {"type": "string"}},
                },
            },
            "url": {"type": "string"},
            "goal": {"type": "integer"},
            "split": {"type": "string", "enum": ["train", "validation", "test", "all"]},
            "step": {"type": "integer"},
            "terminated": {"type": "boolean", "description": "Ended by a purchase."},
            "truncated": {"type": "boolean", "description": "Ended by the step limit."},
            "noop": nullable("string"),
            "reward_parts": nullable("object"),
            "done": {"type": "boolean", "default": false},
            "reward": nullable("number"),
            "metadata": {"type": "object", "additionalProperties": true},
        },
    })
}

fn state_schema() -> Value {
    let nullable = |kind: &str| json!({"anyOf": [{"type": kind}, {"type": "null"}]});
    json!({
        "title": "WebShopState",
        "type": "object",
        "additionalProperties": true,
        "properties": {
            "episode_id": nullable("string"),
            "step_count": {"type": "integer", "minimum": 0},
            "goal": {"type": "integer"},
            "split": {"type": "string"},
            "seed": nullable("integer"),
            "digest": {"type": "string"},
            "environment": {"type": "string"},
        },
    })
}

/// What the environment is.
pub(super) fn metadata(shop: &Shop) -> Value {
    json!({
        "name": super::NAME,
        "description": "A deterministic WebShop: search, open, choose and buy what an instruction asks for. \
                        The reward of a purchase is 0 to 1.",
        "readme_content": "Reset with `goal`, with `split` and `index`, or with `seed`; further fields are \
                           `max_steps` and `observation` (html, text, text_rich, url or json). Actions are \
                           `search[words]` and `click[label]`.",
        "version": ENVIRONMENT_ID,
        "fingerprint": shop.fingerprint(),
    })
}
