//! A request that may succeed later is sent again; what fails for good ends one episode, or all of them.

use super::*;

/// Asserts that the first episode ends well if its n-th request is answered so, after so many more requests.
fn check_passes(n_asked: usize, answer: impl Fn(usize) -> Option<Response> + Send + Sync + 'static) {
    let shop = Arc::new(corner_shop());
    let tasks = tasks(&shop, 3);
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, wanted) = (count.clone(), instruction(&shop, &tasks[0]));
    let address = served(&shop, PromptFormat::VerlAgent, move |instruction, n| {
        let is_first = instruction == wanted;
        counted.fetch_add(usize::from(is_first), Ordering::Relaxed);
        if is_first { answer(n) } else { None }
    });
    let episodes =
        play(&policy(&address, config(PromptFormat::VerlAgent)), &tasks).expect("the server is there");
    let here = local_episodes(&tasks, &mut OraclePolicy);
    for (episode, here) in episodes.iter().zip(&here) {
        assert_eq!(episode.as_ref().expect("no episode fails").turns.len(), here.turns.len());
    }
    assert_eq!(count.load(Ordering::Relaxed), here[0].turns.len() + n_asked);
}

#[test]
fn requests_that_may_succeed_later_are_sent_again() {
    // One more request where one fails.
    for status in [408, 409, 429, 500, 503] {
        check_passes(1, move |n| (n == 2).then(|| error(status, "", "not now")));
    }
    check_passes(1, |n| (n == 1).then(|| error(429, "\r\nRetry-After: 0", "not now")));
    check_passes(1, |n| (n == 1).then(|| Response::Json(200, "", "{\"choices\": [".into())));
    check_passes(1, |n| (n == 1).then(|| Response::Json(200, "", "<h1>busy</h1>".into())));
    check_passes(1, |n| (n == 2).then_some(Response::Nothing));
    // Two failures of one request are a failure of the episode, which starts again with its first request.
    check_passes(3, |n| (2..=3).contains(&n).then(|| error(500, "", "not now")));
}

#[test]
fn the_wait_that_the_server_asks_for_replaces_our_own() {
    let shop = Arc::new(corner_shop());
    let address = served(&shop, PromptFormat::VerlAgent, |_, n| {
        (n == 1).then(|| error(429, "\r\nRetry-After: 0.01", "not now"))
    });
    // A wait of our own choice is half an hour at least, longer than an episode may take, and no episode begins again.
    let config = RemoteConfig {
        episode_retries: 0,
        ..requesting(PromptFormat::VerlAgent, |request| {
            request.retries.first_wait = Duration::from_secs(3600)
        })
    };
    let episodes = play(&policy(&address, config), &tasks(&shop, 1)).expect("the server is there");
    episodes[0].as_ref().expect("the second request is answered");
}

/// The failure of an episode whose requests are never answered. The limits in `config` run out on any machine, fast or
/// slow, so that the outcome does not depend on its speed.
fn unanswered(config: RemoteConfig) -> FailedEpisode {
    let shop = Arc::new(corner_shop());
    let address = served(&shop, config.request.prompt_format, |_, _| {
        loop {
            std::thread::park();
        }
    });
    let mut episodes = play(&policy(&address, config), &tasks(&shop, 1)).expect("the server is there");
    episodes.remove(0).expect_err("there is no answer")
}

#[test]
fn requests_and_episodes_have_time_limits() {
    let limit = Duration::from_millis(20);
    let of_request =
        unanswered(requesting(PromptFormat::VerlAgent, |request| request.request_timeout = limit));
    assert_eq!((of_request.reason.as_str(), of_request.attempts), ("no reply within 0.02 s", 2));
    let of_episode = unanswered(RemoteConfig { episode_timeout: limit, ..config(PromptFormat::VerlAgent) });
    assert_eq!(
        (of_episode.reason.as_str(), of_episode.attempts),
        ("the episode was not over after 0.02 s", 2)
    );
}

/// Asserts that of three episodes only the second fails, why, and after how many requests.
fn check_second(
    reason: &str,
    n_asked: usize,
    config: RemoteConfig,
    answer: impl Fn() -> Response + Send + Sync + 'static,
) {
    let shop = Arc::new(corner_shop());
    let tasks = tasks(&shop, 3);
    let (count, wanted) = (Arc::new(AtomicUsize::new(0)), instruction(&shop, &tasks[1]));
    let counted = count.clone();
    let address = served(&shop, config.request.prompt_format, move |instruction, _| {
        (instruction == wanted).then(|| {
            counted.fetch_add(1, Ordering::Relaxed);
            answer()
        })
    });
    let episodes = play(&policy(&address, config), &tasks).expect("the server is there");
    assert!(episodes[0].is_ok() && episodes[2].is_ok(), "{episodes:?}");
    let failed = episodes[1].as_ref().expect_err("the second episode fails");
    assert_eq!((failed.reason.as_str(), failed.coordinates), (reason, tasks[1].coordinates));
    assert_eq!(count.load(Ordering::Relaxed), n_asked);
}

#[test]
fn an_episode_fails_alone_and_with_a_reason() {
    let config = || config(PromptFormat::VerlAgent);
    // Two requests in each of two attempts.
    let expected = "HTTP status 500 Internal Server Error: out of order";
    check_second(expected, 4, config(), || error(500, "", "out of order"));
    check_second("HTTP status 502 Bad Gateway", 4, config(), || Response::Json(502, "", String::new()));
    let garbage = "not a chat completion: expected value at line 1 column 1: `hello`";
    check_second(garbage, 4, config(), || Response::Json(200, "", "hello".into()));
    // A refused request is not sent again.
    let expected = "HTTP status 422 Unprocessable Entity: no such field";
    check_second(expected, 1, config(), || error(422, "", "no such field"));
    let expected = "HTTP status 400 Bad Request: too hot";
    check_second(expected, 1, config(), || error(400, "", "too hot"));
}

/// Asserts the error of a server that answers every request so.
fn check_closed(
    expected: &str,
    key: Option<&str>,
    answer: impl Fn(&Request) -> Response + Send + Sync + 'static,
) {
    let shop = Arc::new(corner_shop());
    let address = serve(answer);
    let endpoint = Endpoint::parse(&address, key.map(str::to_owned)).expect("an address");
    let policy = RemotePolicy::new(endpoint, config(PromptFormat::VerlAgent)).expect("a client");
    let refusal = play(&policy, &tasks(&shop, 3)).expect_err("no request is answered");
    assert_eq!(refusal.replace(&address, "SERVER/"), expected);
}

#[test]
fn a_server_that_refuses_every_request_ends_the_rollout() {
    let at = "cannot request completions from `SERVER/chat/completions`";
    check_closed(&format!("{at}: HTTP status 404 Not Found: no model `parrot`"), None, |_| {
        error(404, "", "no model `parrot`")
    });
    // The key is sent in its header and removed from messages.
    check_closed(
        &format!("{at}: HTTP status 401 Unauthorized: bad key Bearer …"),
        Some("s3cret"),
        |asked| error(401, "", &format!("bad key {}", asked.headers["authorization"])),
    );
    check_closed(&format!("{at}: HTTP status 403 Forbidden: not you"), None, |_| {
        Response::Json(403, "", json!({ "detail": "not you" }).to_string())
    });
}

#[test]
fn an_unreachable_server_ends_the_rollout() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}/", listener.local_addr().expect("a bound address"));
    drop(listener);
    let shop = Arc::new(corner_shop());
    let refusal =
        play(&policy(&address, config(PromptFormat::VerlAgent)), &tasks(&shop, 3)).expect_err("no server");
    assert!(
        refusal.starts_with(&format!("cannot request completions from `{address}v1/chat/completions`: ")),
        "{refusal}"
    );
    assert!(refusal.ends_with("; check that the server is running"), "{refusal}");
}

fn too_long() -> Response {
    error(400, "", "This model's maximum context length is 10 tokens.")
}

#[test]
fn a_first_prompt_that_does_not_fit_truncates_its_episode_if_others_fit() {
    let shop = Arc::new(corner_shop());
    let tasks = tasks(&shop, 4);
    // The first to be asked for, so that it ends before any other.
    let long = instruction(&shop, &tasks[0]);
    let address =
        served(&shop, PromptFormat::VerlAgent, move |instruction, _| (instruction == long).then(too_long));
    let config = requesting(PromptFormat::VerlAgent, |request| request.concurrency = 1);
    let episodes = play(&policy(&address, config), &tasks).expect("most prompts fit");
    let episodes: Vec<Episode> = episodes.into_iter().map(|episode| episode.expect("no failure")).collect();
    assert_eq!((episodes[0].turns.len(), episodes[0].truncated, episodes[0].reward), (0, true, 0.0));
    assert!(episodes[1..].iter().all(|episode| episode.terminated && episode.reward == 1.0));
}

#[test]
fn a_rollout_in_which_no_first_prompt_fits_is_refused() {
    let reason = "the first prompt of every episode and its completion exceed the context of the model; give a smaller \
                  `--max-turn-tokens`, or serve the model with a longer context";
    let expected = format!("cannot request completions from `SERVER/chat/completions`: {reason}");
    check_closed(&expected, None, |_| too_long());
}
