//! Episodes of a model server are those of a local policy; requests that may succeed later are sent again, and an episode
//! that fails has no reward rather than reward 0.

mod failures;
mod limits;
mod resume;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::corner_shop::corner_shop;
use crate::common::model::{MAX_STEPS, Model, completion, error, local_episodes, tasks};
use crate::common::server::{Request, Response, serve};
use serde_json::{Map, Value, json};
use webshop_agent::{Episode, OraclePolicy, PromptFormat, Sampling, Task};
use webshop_env::{Shop, replay};
use webshop_lm::StopReason;
use webshop_remote::{Endpoint, FailedEpisode, RemoteConfig, RemotePolicy, RequestConfig, Retries};

/// The requests to the server; requests and episodes are tried twice.
fn config(prompt_format: PromptFormat) -> RemoteConfig {
    let request = RequestConfig {
        model: "parrot".into(),
        prompt_format,
        sampling: Sampling { temperature: 0.5, top_p: 0.9, max_tokens: 64, seed: 7 },
        extra_body: Map::new(),
        concurrency: 4,
        request_timeout: Duration::from_secs(60),
        retries: Retries { per_request: 1, first_wait: Duration::from_millis(1) },
    };
    RemoteConfig {
        request,
        max_steps: MAX_STEPS,
        episode_timeout: Duration::from_secs(60),
        episode_retries: 1,
    }
}

/// The same with other requests.
fn requesting(prompt_format: PromptFormat, change: impl Fn(&mut RequestConfig)) -> RemoteConfig {
    let mut config = config(prompt_format);
    change(&mut config.request);
    config
}

fn policy(address: &str, config: RemoteConfig) -> RemotePolicy {
    let endpoint = Endpoint::parse(&format!("{address}v1"), None).expect("an address");
    RemotePolicy::new(endpoint, config).expect("a client")
}

type Outcomes = Vec<Result<Episode, FailedEpisode>>;

/// The outcomes of the tasks, in their order.
fn play(policy: &RemotePolicy, tasks: &[Task]) -> Result<Outcomes, String> {
    let places: Vec<(usize, Task)> = tasks.iter().cloned().enumerate().collect();
    let mut outcomes = BTreeMap::new();
    let ended = policy.run(&places, &AtomicBool::new(false), &mut |place, outcome| {
        assert!(outcomes.insert(place, outcome).is_none(), "an episode ends once");
        Ok(())
    });
    ended.map_err(|error| error.to_string())?;
    assert_eq!(outcomes.len(), tasks.len());
    Ok(outcomes.into_values().collect())
}

/// The episode as a line of a file.
fn line(episode: &Episode) -> String {
    serde_json::to_string(episode).expect("an episode is data") + "\n"
}

fn lines(episodes: &[Episode]) -> String {
    episodes.iter().map(line).collect()
}

/// A server whose model answers in a format, unless `instead` has another response to the n-th request of an episode.
fn served(
    shop: &Arc<Shop>,
    prompt_format: PromptFormat,
    instead: impl Fn(&str, usize) -> Option<Response> + Send + Sync + 'static,
) -> String {
    let model = Model::new(shop, prompt_format);
    let asked_for: Mutex<BTreeMap<String, usize>> = Mutex::default();
    serve(move |asked| {
        let (instruction, _) = model.place(asked);
        let n = {
            let mut asked_for = asked_for.lock().expect("no thread panics");
            let n = asked_for.entry(instruction.clone()).or_default();
            *n += 1;
            *n
        };
        instead(&instruction, n).unwrap_or_else(|| model.answer(asked))
    })
}

fn instruction(shop: &Shop, task: &Task) -> String {
    shop.goals().get(task.coordinates.goal).instruction.to_string()
}

#[test]
fn a_served_model_acts_as_the_oracle_in_every_format() {
    let shop = Arc::new(corner_shop());
    let tasks = tasks(&shop, 10);
    let here = local_episodes(&tasks, &mut OraclePolicy);
    for prompt_format in PromptFormat::ALL {
        let policy = policy(&served(&shop, prompt_format, |_, _| None), config(prompt_format));
        let there = play(&policy, &tasks).expect("the server is there");
        let there: Vec<Episode> =
            there.into_iter().map(|episode| episode.expect("no episode fails")).collect();
        for (there, here) in there.iter().zip(&here) {
            let done = |episode: &Episode| -> Vec<_> {
                episode
                    .turns
                    .iter()
                    .map(|turn| (turn.action.clone(), turn.reward, turn.noop, turn.after))
                    .collect()
            };
            assert_eq!(done(there), done(here), "{prompt_format}");
            assert_eq!((there.reward, there.terminated, there.truncated), (here.reward, true, false));
            assert!(there.turns.iter().all(|turn| turn.agent.is_well_formed), "{prompt_format}");
        }
        let replayed = replay(lines(&there).as_bytes(), &shop).expect("episodes of this shop");
        assert_eq!((replayed.episodes, replayed.difference), (10, None), "{prompt_format}");
    }
}

#[test]
fn requests_have_the_fields_of_the_configuration() {
    let shop = Arc::new(corner_shop());
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let requests = |config: RemoteConfig| {
        let (model, kept) = (Model::new(&shop, config.request.prompt_format), seen.clone());
        let address = serve(move |asked| {
            assert_eq!(
                (asked.path.as_str(), asked.headers.get("authorization")),
                ("/v1/chat/completions", None)
            );
            kept.lock().expect("no thread panics").push(serde_json::from_str(&asked.body).expect("JSON"));
            model.answer(asked)
        });
        let config = RemoteConfig { request: RequestConfig { concurrency: 1, ..config.request }, ..config };
        play(&policy(&address, config), &tasks(&shop, 2)).expect("the server is there");
        std::mem::take(&mut *seen.lock().expect("no thread panics"))
    };
    let first = requests(config(PromptFormat::VerlAgent));
    for request in &first {
        let fields: Vec<&String> = request.as_object().expect("an object").keys().collect();
        assert_eq!(fields, ["model", "messages", "temperature", "top_p", "max_tokens", "seed"]);
        assert_eq!((&request["model"], &request["temperature"]), (&json!("parrot"), &json!(0.5)));
        assert_eq!((&request["top_p"], &request["max_tokens"]), (&json!(0.9), &json!(64)));
    }
    let seeds = |requests: &[Value]| -> Vec<u64> {
        requests.iter().map(|request| request["seed"].as_u64().expect("a number")).collect()
    };
    assert_eq!(BTreeSet::from_iter(seeds(&first)).len(), first.len(), "every turn has a seed of its own");
    assert!(seeds(&first).iter().all(|&seed| seed < 1 << 31));
    assert_eq!(requests(config(PromptFormat::VerlAgent)), first, "and the same each time");
    let other = requests(requesting(PromptFormat::VerlAgent, |request| request.sampling.seed = 8));
    assert!(seeds(&other).iter().zip(seeds(&first)).all(|(&other, first)| other != first));
    let more = json!({ "top_k": 5, "max_tokens": null, "max_completion_tokens": 9 });
    let more = more.as_object().cloned().expect("an object");
    let called = requests(requesting(PromptFormat::ToolCall, |request| request.extra_body = more.clone()));
    assert_eq!(called[0]["tools"][0]["function"]["name"], "search");
    assert_eq!((&called[0]["top_k"], &called[0]["max_completion_tokens"]), (&json!(5), &json!(9)));
    assert_eq!(called[0].get("max_tokens"), None);
    let answer = &called[1]["messages"][3];
    assert_eq!((&answer["role"], &answer["tool_call_id"]), (&json!("tool"), &json!("call_of_the_server")));
    let said = &called[1]["messages"][2]["tool_calls"][0];
    assert_eq!((&said["id"], &said["function"]["name"]), (&json!("call_of_the_server"), &json!("search")));
}

#[test]
fn a_chat_that_no_longer_fits_truncates_its_episode() {
    let shop = Arc::new(corner_shop());
    let tasks = tasks(&shop, 2);
    let message = "This model's maximum context length is 99 tokens.";
    let address = served(&shop, PromptFormat::Ragen, move |_, n| (n == 3).then(|| error(400, "", message)));
    let episodes = play(&policy(&address, config(PromptFormat::Ragen)), &tasks).expect("the server is there");
    for episode in episodes {
        let episode = episode.expect("no episode fails");
        assert_eq!(
            (episode.turns.len(), episode.truncated, episode.terminated, episode.reward),
            (2, true, false, 0.0)
        );
        let replayed = replay(line(&episode).as_bytes(), &shop).expect("an episode of this shop");
        assert_eq!(replayed.difference, None);
    }
}

#[test]
fn records_hold_the_stop_reason_and_malformed_calls() {
    let shop = Arc::new(corner_shop());
    let call = |arguments: &str| {
        let function = json!({ "name": "click", "arguments": arguments });
        json!([{ "id": "c", "type": "function", "function": function }])
    };
    let calls = [call("{\"label\": \"buy n"), call("[3]")];
    let address = served(&shop, PromptFormat::ToolCall, move |_, n| {
        let message = |calls: &Value| json!({ "role": "assistant", "content": null, "tool_calls": calls });
        calls.get(n - 1).map(|calls| completion(message(calls), "length"))
    });
    let config = RemoteConfig { max_steps: 2, ..config(PromptFormat::ToolCall) };
    let episodes = play(&policy(&address, config), &tasks(&shop, 1)).expect("the server is there");
    let episode = episodes[0].as_ref().expect("no episode fails");
    let turns: Vec<_> = episode
        .turns
        .iter()
        .map(|turn| (turn.agent.stop, turn.agent.is_well_formed, turn.agent.completion.as_deref()))
        .collect();
    let cut = |answer| (Some(StopReason::Length), false, Some(answer));
    assert_eq!(turns, [cut("click({\"label\": \"buy n)"), cut("click([3])")]);
    let record: Value = serde_json::from_str(&line(episode)).expect("JSON");
    assert_eq!(record["turns"][0]["stop"], "length");
}
