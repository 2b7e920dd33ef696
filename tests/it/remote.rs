//! A model behind a server shops as one of ours does; what may pass is tried again, and what fails is worth nothing
//! rather than zero.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::corner_shop::corner_shop;
use crate::common::model::{MAX_STEPS, Model, completion, error, made_here, tasks};
use crate::common::server::{Answer, Asked, serve};
use serde_json::{Map, Value, json};
use webshop_agent::{
    AskConfig, Dialect, Endpoint, Episode, FailedTrip, OraclePolicy, RemoteConfig, RemotePolicy, Retries,
    Sampling, StopReason, Task, TripFile,
};
use webshop_env::{Shop, replay};

/// What is asked of the server; requests and trips are tried twice.
fn config(dialect: Dialect) -> RemoteConfig {
    let asking = AskConfig {
        model: "parrot".into(),
        dialect,
        sampling: Sampling { temperature: 0.5, top_p: 0.9, max_tokens: 64, seed: 7 },
        more: Map::new(),
        concurrency: 4,
        answer_limit: Duration::from_secs(60),
        retries: Retries { of_request: 1, first_wait: Duration::from_millis(1) },
    };
    RemoteConfig { asking, max_steps: MAX_STEPS, trip_limit: Duration::from_secs(60), trip_retries: 1 }
}

/// The same, asked in another way.
fn asking(dialect: Dialect, change: impl Fn(&mut AskConfig)) -> RemoteConfig {
    let mut config = config(dialect);
    change(&mut config.asking);
    config
}

fn policy(address: &str, config: RemoteConfig) -> RemotePolicy {
    let endpoint = Endpoint::parse(&format!("{address}v1"), None).expect("an address");
    RemotePolicy::new(endpoint, config).expect("a client")
}

type Outcomes = Vec<Result<Episode, FailedTrip>>;

/// What comes of the tasks, in their order.
fn play(policy: &RemotePolicy, tasks: &[Task]) -> Result<Outcomes, String> {
    let places: Vec<(usize, Task)> = tasks.iter().cloned().enumerate().collect();
    let mut outcomes = BTreeMap::new();
    let ended = policy.play(&places, &AtomicBool::new(false), &mut |place, outcome| {
        assert!(outcomes.insert(place, outcome).is_none(), "a trip ends once");
        Ok(())
    });
    ended.map_err(|error| error.to_string())?;
    assert_eq!(outcomes.len(), tasks.len());
    Ok(outcomes.into_values().collect())
}

/// The trip as a line of a file.
fn line(shop: &Shop, episode: &Episode) -> String {
    serde_json::to_string(&episode.record(shop)).expect("a record is data") + "\n"
}

fn lines(shop: &Shop, episodes: &[Episode]) -> String {
    episodes.iter().map(|episode| line(shop, episode)).collect()
}

/// A server whose model answers in a dialect, unless `instead` has another answer for the n-th request about a trip.
fn served(
    shop: &Arc<Shop>,
    dialect: Dialect,
    instead: impl Fn(&str, usize) -> Option<Answer> + Send + Sync + 'static,
) -> String {
    let model = Model::new(shop, dialect);
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
fn a_served_model_shops_as_the_oracle_does_in_every_dialect() {
    let shop = Arc::new(corner_shop());
    let tasks = tasks(&shop, 10);
    let here = made_here(&tasks, &mut OraclePolicy);
    for dialect in Dialect::ALL {
        let policy = policy(&served(&shop, dialect, |_, _| None), config(dialect));
        let there = play(&policy, &tasks).expect("the server is there");
        let there: Vec<Episode> = there.into_iter().map(|trip| trip.expect("no trip fails")).collect();
        for (there, here) in there.iter().zip(&here) {
            let done = |episode: &Episode| -> Vec<_> {
                episode
                    .turns
                    .iter()
                    .map(|turn| (turn.action.clone(), turn.reward, turn.noop, turn.after))
                    .collect()
            };
            assert_eq!(done(there), done(here), "{dialect}");
            assert_eq!((there.reward, there.terminated, there.truncated), (here.reward, true, false));
            assert!(there.turns.iter().all(|turn| turn.is_well_formed), "{dialect}");
        }
        let replayed = replay(lines(&shop, &there).as_bytes(), &shop).expect("trips of this shop");
        assert_eq!((replayed.trips, replayed.difference), (10, None), "{dialect}");
    }
}

#[test]
fn requests_say_what_is_asked_for() {
    let shop = Arc::new(corner_shop());
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let requests = |config: RemoteConfig| {
        let (model, kept) = (Model::new(&shop, config.asking.dialect), seen.clone());
        let address = serve(move |asked| {
            assert_eq!(
                (asked.path.as_str(), asked.headers.get("authorization")),
                ("/v1/chat/completions", None)
            );
            kept.lock().expect("no thread panics").push(serde_json::from_str(&asked.body).expect("JSON"));
            model.answer(asked)
        });
        let config = RemoteConfig { asking: AskConfig { concurrency: 1, ..config.asking }, ..config };
        play(&policy(&address, config), &tasks(&shop, 2)).expect("the server is there");
        std::mem::take(&mut *seen.lock().expect("no thread panics"))
    };
    let first = requests(config(Dialect::VerlAgent));
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
    assert_eq!(requests(config(Dialect::VerlAgent)), first, "and the same each time");
    let other = requests(asking(Dialect::VerlAgent, |asking| asking.sampling.seed = 8));
    assert!(seeds(&other).iter().zip(seeds(&first)).all(|(&other, first)| other != first));
    let more = json!({ "top_k": 5, "max_tokens": null, "max_completion_tokens": 9 });
    let more = more.as_object().cloned().expect("an object");
    let called = requests(asking(Dialect::ToolCall, |asking| asking.more = more.clone()));
    assert_eq!(called[0]["tools"][0]["function"]["name"], "search");
    assert_eq!((&called[0]["top_k"], &called[0]["max_completion_tokens"]), (&json!(5), &json!(9)));
    assert_eq!(called[0].get("max_tokens"), None);
    let answer = &called[1]["messages"][3];
    assert_eq!((&answer["role"], &answer["tool_call_id"]), (&json!("tool"), &json!("call_of_the_server")));
    let said = &called[1]["messages"][2]["tool_calls"][0];
    assert_eq!((&said["id"], &said["function"]["name"]), (&json!("call_of_the_server"), &json!("search")));
}

/// Asserts that the first trip is made all the same if its n-th request is answered so, and asked so often.
fn check_passes(n_asked: usize, answer: impl Fn(usize) -> Option<Answer> + Send + Sync + 'static) {
    let shop = Arc::new(corner_shop());
    let tasks = tasks(&shop, 3);
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, wanted) = (count.clone(), instruction(&shop, &tasks[0]));
    let address = served(&shop, Dialect::VerlAgent, move |instruction, n| {
        let is_first = instruction == wanted;
        counted.fetch_add(usize::from(is_first), Ordering::Relaxed);
        if is_first { answer(n) } else { None }
    });
    let trips = play(&policy(&address, config(Dialect::VerlAgent)), &tasks).expect("the server is there");
    let here = made_here(&tasks, &mut OraclePolicy);
    for (trip, here) in trips.iter().zip(&here) {
        assert_eq!(trip.as_ref().expect("no trip fails").turns.len(), here.turns.len());
    }
    assert_eq!(count.load(Ordering::Relaxed), here[0].turns.len() + n_asked);
}

#[test]
fn what_may_pass_is_tried_again() {
    // One more request where one fails.
    for status in [408, 409, 429, 500, 503] {
        check_passes(1, move |n| (n == 2).then(|| error(status, "", "not now")));
    }
    check_passes(1, |n| (n == 1).then(|| error(429, "\r\nRetry-After: 0", "not now")));
    check_passes(1, |n| (n == 1).then(|| Answer::Json(200, "", "{\"choices\": [".into())));
    check_passes(1, |n| (n == 1).then(|| Answer::Json(200, "", "<h1>busy</h1>".into())));
    check_passes(1, |n| (n == 2).then_some(Answer::Nothing));
    // Two failures of one request are a failure of the trip, which is begun anew: all its requests come again.
    check_passes(3, |n| (2..=3).contains(&n).then(|| error(500, "", "not now")));
}

#[test]
fn the_server_says_how_long_to_wait() {
    let shop = Arc::new(corner_shop());
    let tasks = tasks(&shop, 1);
    let address = served(&shop, Dialect::VerlAgent, |_, n| {
        (n == 1).then(|| error(429, "\r\nRetry-After: 3600", "come back later"))
    });
    // Whoever waited for a time of its own choice would be served at once.
    let config = RemoteConfig {
        trip_limit: Duration::from_millis(300),
        trip_retries: 0,
        ..config(Dialect::VerlAgent)
    };
    let trips = play(&policy(&address, config), &tasks).expect("the server is there");
    let failed = trips[0].as_ref().expect_err("an hour is too long");
    assert_eq!(failed.reason, "the trip had not ended after 0.3 s");
}

/// Asserts that of three trips only the second fails, why, and after how many requests.
fn check_second(
    reason: &str,
    n_asked: usize,
    config: RemoteConfig,
    answer: impl Fn() -> Answer + Send + Sync + 'static,
) {
    let shop = Arc::new(corner_shop());
    let tasks = tasks(&shop, 3);
    let (count, wanted) = (Arc::new(AtomicUsize::new(0)), instruction(&shop, &tasks[1]));
    let counted = count.clone();
    let address = served(&shop, config.asking.dialect, move |instruction, _| {
        (instruction == wanted).then(|| {
            counted.fetch_add(1, Ordering::Relaxed);
            answer()
        })
    });
    let trips = play(&policy(&address, config), &tasks).expect("the server is there");
    assert!(trips[0].is_ok() && trips[2].is_ok(), "{trips:?}");
    let failed = trips[1].as_ref().expect_err("the second trip fails");
    assert_eq!((failed.reason.as_str(), failed.coordinates), (reason, tasks[1].coordinates));
    assert_eq!(count.load(Ordering::Relaxed), n_asked);
}

#[test]
fn a_trip_fails_alone_and_for_a_reason() {
    let config = || config(Dialect::VerlAgent);
    // Two requests in each of two trips.
    let told = "HTTP status 500 Internal Server Error: out of order";
    check_second(told, 4, config(), || error(500, "", "out of order"));
    check_second("HTTP status 502 Bad Gateway", 4, config(), || Answer::Json(502, "", String::new()));
    let garbage = "no chat completion, expected value at line 1 column 1: `hello`";
    check_second(garbage, 4, config(), || Answer::Json(200, "", "hello".into()));
    // What is refused is not asked again.
    let told = "HTTP status 422 Unprocessable Entity: no such field";
    check_second(told, 1, config(), || error(422, "", "no such field"));
    let told = "HTTP status 400 Bad Request: too hot";
    check_second(told, 1, config(), || error(400, "", "too hot"));
    let hasty = asking(Dialect::VerlAgent, |asking| asking.answer_limit = Duration::from_millis(400));
    check_second("no answer within 0.4 s", 4, hasty, || {
        loop {
            std::thread::park();
        }
    });
}

/// Why nobody shops where all is answered so.
fn check_closed(
    expected: &str,
    key: Option<&str>,
    answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
) {
    let shop = Arc::new(corner_shop());
    let address = serve(answer);
    let endpoint = Endpoint::parse(&address, key.map(str::to_owned)).expect("an address");
    let policy = RemotePolicy::new(endpoint, config(Dialect::VerlAgent)).expect("a client");
    let refusal = play(&policy, &tasks(&shop, 3)).expect_err("nobody is served");
    assert_eq!(refusal.replace(&address, "SERVER/"), expected);
}

#[test]
fn a_server_that_refuses_everybody_is_given_up_at_once() {
    let at = "cannot ask the model at `SERVER/chat/completions`";
    check_closed(&format!("{at}: HTTP status 404 Not Found: no model `parrot`"), None, |_| {
        error(404, "", "no model `parrot`")
    });
    // The key goes where it belongs, and nowhere else.
    check_closed(
        &format!("{at}: HTTP status 401 Unauthorized: bad key Bearer …"),
        Some("s3cret"),
        |asked| error(401, "", &format!("bad key {}", asked.headers["authorization"])),
    );
    check_closed(&format!("{at}: HTTP status 403 Forbidden: not you"), None, |_| {
        Answer::Json(403, "", json!({ "detail": "not you" }).to_string())
    });
}

#[test]
fn a_server_that_is_not_there_is_given_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}/", listener.local_addr().expect("a bound address"));
    drop(listener);
    let shop = Arc::new(corner_shop());
    let refusal =
        play(&policy(&address, config(Dialect::VerlAgent)), &tasks(&shop, 3)).expect_err("nobody is there");
    assert!(
        refusal.starts_with(&format!("cannot ask the model at `{address}v1/chat/completions`: ")),
        "{refusal}"
    );
    assert!(refusal.ends_with("; is the server running"), "{refusal}");
}

#[test]
fn a_chat_that_no_longer_fits_is_cut_and_counts() {
    let shop = Arc::new(corner_shop());
    let tasks = tasks(&shop, 2);
    let message = "This model's maximum context length is 99 tokens.";
    let address = served(&shop, Dialect::Ragen, move |_, n| (n == 3).then(|| error(400, "", message)));
    let trips = play(&policy(&address, config(Dialect::Ragen)), &tasks).expect("the server is there");
    for trip in trips {
        let trip = trip.expect("no trip fails");
        assert_eq!((trip.turns.len(), trip.truncated, trip.terminated, trip.reward), (2, true, false, 0.0));
        let replayed = replay(line(&shop, &trip).as_bytes(), &shop).expect("a trip of this shop");
        assert_eq!(replayed.difference, None);
    }
}

#[test]
fn it_is_on_record_why_an_answer_ended_and_what_was_no_call() {
    let shop = Arc::new(corner_shop());
    let call = |arguments: &str| {
        let function = json!({ "name": "click", "arguments": arguments });
        json!([{ "id": "c", "type": "function", "function": function }])
    };
    let calls = [call("{\"label\": \"buy n"), call("[3]")];
    let address = served(&shop, Dialect::ToolCall, move |_, n| {
        let message = |calls: &Value| json!({ "role": "assistant", "content": null, "tool_calls": calls });
        calls.get(n - 1).map(|calls| completion(message(calls), "length"))
    });
    let config = RemoteConfig { max_steps: 2, ..config(Dialect::ToolCall) };
    let trips = play(&policy(&address, config), &tasks(&shop, 1)).expect("the server is there");
    let trip = trips[0].as_ref().expect("no trip fails");
    let turns: Vec<_> =
        trip.turns.iter().map(|turn| (turn.stop, turn.is_well_formed, turn.answer.as_deref())).collect();
    let cut = |answer| (Some(StopReason::Length), false, Some(answer));
    assert_eq!(turns, [cut("click({\"label\": \"buy n)"), cut("click([3])")]);
    let record: Value = serde_json::from_str(&line(&shop, trip)).expect("JSON");
    assert_eq!(record["turns"][0]["stop"], "length");
}

#[test]
fn no_more_trips_than_allowed_are_under_way() {
    let shop = Arc::new(corner_shop());
    let most = |concurrency| {
        let model = Model::new(&shop, Dialect::VerlAgent);
        let (now, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let seen = most.clone();
        let address = serve(move |asked| {
            let at_once = now.fetch_add(1, Ordering::SeqCst) + 1;
            seen.fetch_max(at_once, Ordering::SeqCst);
            // Long enough for the others to come, if they do.
            std::thread::sleep(Duration::from_millis(5));
            now.fetch_sub(1, Ordering::SeqCst);
            model.answer(asked)
        });
        let config = asking(Dialect::VerlAgent, |asking| asking.concurrency = concurrency);
        play(&policy(&address, config), &tasks(&shop, 10)).expect("the server is there");
        most.load(Ordering::SeqCst)
    };
    assert_eq!(most(1), 1);
    assert!((2..=3).contains(&most(3)));
}

/// A file with the records of these trips, and `more` behind them.
fn file_of(shop: &Shop, episodes: &[Episode], more: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), lines(shop, episodes) + more).expect("a written file");
    file
}

#[test]
fn a_file_of_trips_is_gone_on_with() {
    let shop = Arc::new(corner_shop());
    let tasks = tasks(&shop, 4);
    let policy = policy(&served(&shop, Dialect::Ragen, |_, _| None), config(Dialect::Ragen));
    let made = play(&policy, &tasks).expect("the server is there");
    let made: Vec<Episode> = made.into_iter().map(|trip| trip.expect("no trip fails")).collect();
    // The trips of the second and the last task, and the beginning of another.
    let half = &line(&shop, &made[0])[..300];
    let file = file_of(&shop, &[made[3].clone(), made[1].clone()], half);
    let (mut trips, kept) = TripFile::resume(file.path(), &policy, &tasks, &shop).expect("its own trips");
    assert_eq!(kept.dropped_bytes, 300);
    let places: Vec<usize> = (0..4).filter(|&place| kept.episodes[place].is_some()).collect();
    assert_eq!(places, [1, 3]);
    for place in places {
        let kept = kept.episodes[place].as_ref().expect("one of those places");
        assert_eq!(
            line(&shop, kept),
            line(&shop, &made[place]),
            "read and written again, it is the same line"
        );
    }
    let second = TripFile::resume(file.path(), &policy, &tasks, &shop).expect_err("it is being written to");
    assert!(second.to_string().ends_with("another program writes to it"), "{second}");
    trips.append(&made[0].record(&shop)).expect("a written line");
    let whole: String = [3, 1, 0].map(|place| line(&shop, &made[place])).concat();
    assert_eq!(fs::read_to_string(file.path()).expect("a file"), whole);
}

#[test]
fn a_file_of_other_trips_is_not_gone_on_with() {
    let shop = Arc::new(corner_shop());
    let tasks = tasks(&shop, 2);
    let address = served(&shop, Dialect::Ragen, |_, _| None);
    let as_configured = |config: RemoteConfig| policy(&address, config);
    let first = as_configured(config(Dialect::Ragen));
    let made = play(&first, &tasks).expect("the server is there");
    let made: Vec<Episode> = made.into_iter().map(|trip| trip.expect("no trip fails")).collect();
    let check = |expected: &str, policy: &RemotePolicy, tasks: &[Task], episodes: &[Episode], more: &str| {
        let file = file_of(&shop, episodes, more);
        let before = fs::read(file.path()).expect("a file");
        let refusal =
            TripFile::resume(file.path(), policy, tasks, &shop).expect_err("it does not belong").to_string();
        let told = refusal.replace(file.path().to_str().expect("a plain name"), "FILE");
        assert_eq!(told, format!("cannot read `FILE`: {expected}"));
        assert_eq!(fs::read(file.path()).expect("a file"), before, "it is left alone");
    };
    let differs = |what: &str| format!("line 1: not made as the rest would be: {what}");
    let other = |change: &dyn Fn(&mut RemoteConfig)| {
        let mut config = config(Dialect::Ragen);
        change(&mut config);
        as_configured(config)
    };
    let model = other(&|config| config.asking.model = "owl".into());
    check(&differs("model `parrot` then, `owl` now"), &model, &tasks, &made, "");
    let dialect = other(&|config| config.asking.dialect = Dialect::ShopR1);
    let expected = "dialect `ragen` then, `shop-r1` now, prompt `ragen-v1` then, `shop-r1-v3` now";
    check(&differs(expected), &dialect, &tasks, &made, "");
    let steps = other(&|config| config.max_steps = 9);
    check(&differs("max_steps `15` then, `9` now"), &steps, &tasks, &made, "");
    let oracles = made_here(&tasks, &mut OraclePolicy);
    let file = file_of(&shop, &oracles, "");
    let refusal = TripFile::resume(file.path(), &first, &tasks, &shop).expect_err("the oracle's").to_string();
    assert!(refusal.contains("policy `oracle` then, `remote` now"), "{refusal}");
    check("line 2: a trip for goal 1 (0), which is not asked for", &first, &tasks[..1], &made, "");
    let twice = [made[0].clone(), made[1].clone(), made[0].clone()];
    check("line 3: a second trip for goal 0 (0)", &first, &tasks, &twice, "");
    let broken = "line 3: no recorded trip: EOF while parsing an object at line 1 column 1";
    check(broken, &first, &tasks, &made, "{\n");
    let forged = lines(&shop, &made).replacen("click[buy now]", "click[description]", 1);
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), forged).expect("a written file");
    let refusal =
        TripFile::resume(file.path(), &first, &tasks, &shop).expect_err("it went otherwise").to_string();
    assert!(refusal.contains("line 1: turn ") && refusal.contains("is not as recorded"), "{refusal}");
}

#[test]
fn trips_under_way_are_given_up_when_asked_to_stop() {
    let shop = Arc::new(corner_shop());
    let tasks: Vec<(usize, Task)> = tasks(&shop, 6).into_iter().enumerate().collect();
    let slow = instruction(&shop, &tasks[1].1);
    let address = served(&shop, Dialect::VerlAgent, move |instruction, _| {
        (instruction == slow).then(|| {
            loop {
                std::thread::park();
            }
        })
    });
    let (stop, mut n_ended) = (AtomicBool::new(false), 0);
    let config = asking(Dialect::VerlAgent, |asking| asking.concurrency = 2);
    let played = policy(&address, config).play(&tasks, &stop, &mut |_, outcome| {
        outcome.expect("no trip fails");
        n_ended += 1;
        stop.store(n_ended == 3, Ordering::Relaxed);
        Ok(())
    });
    played.expect("to stop is no error");
    assert_eq!(n_ended, 3);
}
