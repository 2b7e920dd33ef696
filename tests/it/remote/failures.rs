//! A request that may succeed later is sent again; what fails for good ends one episode, or all of them.

use super::*;

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
fn the_wait_that_the_server_asks_for_replaces_our_own() {
    let shop = Arc::new(corner_shop());
    let address = served(&shop, Dialect::VerlAgent, |_, n| {
        (n == 1).then(|| error(429, "\r\nRetry-After: 0", "not now"))
    });
    // A wait of our own choice is half an hour at least, longer than the episode may take.
    let config = asking(Dialect::VerlAgent, |asking| asking.retries.first_wait = Duration::from_secs(3600));
    let trips = play(&policy(&address, config), &tasks(&shop, 1)).expect("the server is there");
    trips[0].as_ref().expect("the second request is answered");
}

/// The failure of an episode whose requests are never answered. The limits in `config` run out on any machine, fast or
/// slow, so that the outcome does not depend on its speed.
fn unanswered(config: RemoteConfig) -> FailedTrip {
    let shop = Arc::new(corner_shop());
    let address = served(&shop, config.asking.dialect, |_, _| {
        loop {
            std::thread::park();
        }
    });
    let mut trips = play(&policy(&address, config), &tasks(&shop, 1)).expect("the server is there");
    trips.remove(0).expect_err("there is no answer")
}

#[test]
fn requests_and_episodes_have_time_limits() {
    let limit = Duration::from_millis(20);
    let of_request = unanswered(asking(Dialect::VerlAgent, |asking| asking.answer_limit = limit));
    assert_eq!((of_request.reason.as_str(), of_request.attempts), ("no answer within 0.02 s", 2));
    let of_trip = unanswered(RemoteConfig { trip_limit: limit, ..config(Dialect::VerlAgent) });
    assert_eq!((of_trip.reason.as_str(), of_trip.attempts), ("the trip had not ended after 0.02 s", 2));
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
