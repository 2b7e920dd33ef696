//! `--record`: who shops on the site makes episodes of the same form as a rollout.

use std::fs;
use std::path::{Path, PathBuf};

use webshop_agent::{OraclePolicy, RulePolicy, read_episode};
use webshop_env::Action;
use webshop_serve::RecordFile;

use crate::common::client::{Reply, SHOP, Served, config, served_with};
use crate::common::command::temporary;
use crate::common::model::{local_episodes, tasks};

/// A browser with its cookie.
struct Browser<'a> {
    server: &'a Served,
    cookie: String,
}

impl Browser<'_> {
    /// Sends a form from a page; the address of the next one.
    fn send(&mut self, path: &str, name: &str, value: &str) -> String {
        let headers = format!("Content-Type: application/x-www-form-urlencoded\r\n{}", self.cookie);
        let body = format!("{name}={}", value.replace('%', "%25").replace('+', "%2B").replace('&', "%26"));
        self.follow(self.server.send("POST", path, &headers, &body))
    }

    fn follow(&mut self, reply: Reply) -> String {
        if let Some(set) = reply.header("set-cookie") {
            assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{set}");
            self.cookie = format!("Cookie: {}\r\n", set.split(';').next().expect("a pair"));
        }
        reply.header("location").expect("an address").to_owned()
    }

    fn take(&mut self, path: &str, action: &Action) -> String {
        match action {
            Action::Search(words) => self.send(path, "search_query", words),
            Action::Click(label) => self.send(path, "click", label),
            Action::Noop(_) => panic!("an oracle acts"),
        }
    }
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).expect("a text").lines().map(str::to_owned).collect()
}

#[test]
fn a_purchase_on_the_site_is_an_episode_without_what_was_taken_back() {
    let dir = temporary();
    let path = dir.path().join("people.jsonl");
    let file = RecordFile::open(&path, &SHOP).expect("a new file");
    let server = served_with(config(), |server| server.recording(file));
    assert!(server.get("/").body.contains("This server records what you do"));
    let expected = local_episodes(&tasks(&SHOP, 8), &mut OraclePolicy);
    for (n_written, episode) in expected.iter().enumerate() {
        let mut browser = Browser { server: &server, cookie: String::new() };
        let actions: Vec<Action> = episode.turns.iter().map(|turn| turn.action.clone()).collect();
        let start = format!("/fixed_{}", episode.goal.0);
        // A search that is taken back, and the way of the oracle.
        browser.send(&start, "search_query", "nothing of the kind");
        let way = actions.iter().fold(start.clone(), |path, action| browser.take(&path, action));
        assert!(way.starts_with("/done/"), "{way}");
        let written = lines(&path);
        assert_eq!(written.len(), n_written + 1);
        let recorded = read_episode(&written[n_written], n_written + 1, &SHOP).expect("it can be replayed");
        let taken: Vec<Action> = recorded.turns.iter().map(|turn| turn.action.clone()).collect();
        assert_eq!((taken, recorded.reward), (actions.clone(), episode.reward));
        assert_eq!((&*recorded.meta.policy, recorded.terminated), ("human", true));
        // Who has seen the reward is not recorded again for this session.
        actions.iter().fold(start, |path, action| browser.take(&path, action));
        assert_eq!(lines(&path).len(), n_written + 1);
    }
}

#[test]
fn choices_are_clicks_and_visitors_are_apart() {
    let dir = temporary();
    let path = dir.path().join("people.jsonl");
    let file = RecordFile::open(&path, &SHOP).expect("a new file");
    let server = served_with(config(), |server| server.recording(file));
    let product = SHOP.catalog().products().iter().find(|product| product.options.len() == 1);
    let product = product.expect("a product with an option");
    let (option, value) = (&*product.options[0].name, &*product.options[0].values[0].text);
    let mut browsers = [(); 2].map(|()| Browser { server: &server, cookie: String::new() });
    let pages = browsers.each_mut().map(|browser| {
        let results = browser.send("/fixed_0", "search_query", &product.title);
        browser.send(&results, "click", &product.id.as_str().to_lowercase())
    });
    assert_ne!(browsers[0].cookie, browsers[1].cookie);
    let chosen = browsers[0].send(&pages[0], option, value);
    browsers[0].send(&chosen, "click", "buy now");
    browsers[1].send(&pages[1], "click", "buy now");
    // Who begins in the middle has no episode.
    Browser { server: &server, cookie: String::new() }.send(&pages[0], "click", "buy now");
    let episodes = lines(&path).into_iter().zip(1..);
    let episodes: Vec<_> =
        episodes.map(|(line, number)| read_episode(&line, number, &SHOP).expect("an episode")).collect();
    let clicks = |number: usize| -> Vec<String> {
        episodes[number].turns.iter().skip(2).map(|turn| turn.action.to_string()).collect()
    };
    assert_eq!(episodes.len(), 2);
    assert_eq!(episodes.iter().map(|episode| episode.config.max_steps).collect::<Vec<_>>(), [15, 15]);
    assert_eq!(clicks(0), [format!("click[{value}]"), "click[buy now]".to_owned()]);
    assert_eq!(clicks(1), ["click[buy now]"]);
    assert_eq!(episodes.iter().map(|episode| episode.meta.coordinates.sample).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_longer_way_than_the_step_limit_is_recorded_whole() {
    let dir = temporary();
    let path = dir.path().join("people.jsonl");
    let file = RecordFile::open(&path, &SHOP).expect("a new file");
    let mut config = config();
    config.defaults.max_steps = 3;
    let server = served_with(config, |server| server.recording(file));
    let mut browser = Browser { server: &server, cookie: String::new() };
    let product = &SHOP.catalog().products()[0];
    let results = browser.send("/fixed_0", "search_query", &product.title);
    let item = browser.send(&results, "click", &product.id.as_str().to_lowercase());
    let detail = browser.send(&item, "click", "description");
    let item = browser.send(&detail, "click", "< prev");
    browser.send(&item, "click", "buy now");
    let episode = read_episode(&lines(&path)[0], 1, &SHOP).expect("it can be replayed");
    let n_taken = episode.turns.len();
    assert!(n_taken > 3 && episode.terminated, "{n_taken} actions");
    assert_eq!(episode.config.max_steps as usize, n_taken);
}

#[test]
fn a_way_of_more_than_500_actions_is_not_recorded() {
    let dir = temporary();
    let path = dir.path().join("people.jsonl");
    let file = RecordFile::open(&path, &SHOP).expect("a new file");
    let server = served_with(config(), |server| server.recording(file));
    let product = SHOP.catalog().products().iter().find(|product| !product.options.is_empty());
    let product = product.expect("a product with an option");
    let (option, value) = (&*product.options[0].name, &*product.options[0].values[0].text);
    for (n_details, n_taken) in [(248, Some(500)), (249, None)] {
        let mut browser = Browser { server: &server, cookie: String::new() };
        let results = browser.send("/fixed_0", "search_query", &product.title);
        let item = browser.send(&results, "click", &product.id.as_str().to_lowercase());
        let mut item = browser.send(&item, option, value);
        for _ in 0..n_details {
            let detail = browser.send(&item, "click", "description");
            item = browser.send(&detail, "click", "< prev");
        }
        let n_before = lines(&path).len();
        assert!(browser.send(&item, "click", "buy now").starts_with("/done/"));
        let written = lines(&path).split_off(n_before);
        let written = written.first().map(|line| read_episode(line, 1, &SHOP).expect("it can be replayed"));
        assert_eq!(written.map(|episode| episode.turns.len()), n_taken, "{n_details} pages of details");
    }
}

/// Records the purchases of the oracle for each of the first goals, each of another visitor, in a file that may have
/// episodes; a copy of the file. The server of a test runs on, and has the file itself open.
fn buy(path: &Path, n_goals: u32) -> PathBuf {
    let file = RecordFile::open(path, &SHOP).expect("a file of people");
    let server = served_with(config(), |server| server.recording(file));
    for episode in local_episodes(&tasks(&SHOP, n_goals), &mut OraclePolicy) {
        let mut browser = Browser { server: &server, cookie: String::new() };
        let start = format!("/fixed_{}", episode.goal.0);
        let way = episode.turns.iter().fold(start, |path, turn| browser.take(&path, &turn.action));
        assert!(way.starts_with("/done/"), "{way}");
    }
    let copy = path.with_extension("copy.jsonl");
    fs::copy(path, &copy).expect("a copied file");
    copy
}

#[test]
fn a_later_server_appends_and_counts_on() {
    let dir = temporary();
    let mut path = dir.path().join("people.jsonl");
    for n_before in [0, 2, 4] {
        let file = RecordFile::open(&path, &SHOP).expect("a file of people");
        assert_eq!((file.len(), file.is_empty(), file.dropped_bytes()), (n_before, n_before == 0, 0));
        drop(file);
        path = buy(&path, 2);
    }
    let coordinates = lines(&path).into_iter().zip(1..).map(|(line, number)| {
        let meta = read_episode(&line, number, &SHOP).expect("an episode").meta;
        (meta.coordinates.goal.0, meta.coordinates.sample)
    });
    assert_eq!(coordinates.collect::<Vec<_>>(), [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]);
}

#[test]
fn a_line_that_a_full_disk_cut_off_is_dropped() {
    let dir = temporary();
    let path = buy(&dir.path().join("people.jsonl"), 1);
    let whole = fs::read_to_string(&path).expect("a text");
    fs::write(&path, format!("{whole}{}", &whole[..40])).expect("written");
    let file = RecordFile::open(&path, &SHOP).expect("a file of people");
    assert_eq!((file.len(), file.dropped_bytes()), (1, 40));
    assert_eq!(fs::read_to_string(&path).expect("a text"), whole);
}

#[test]
fn a_file_of_something_else_is_refused_and_stays_as_it_is() {
    let dir = temporary();
    let open = dir.path().join("people.jsonl");
    let path = buy(&open, 1);
    let locked = RecordFile::open(&open, &SHOP).expect_err("the server has it open").to_string();
    assert!(locked.ends_with("another program has the file open"), "{locked}");
    let people = fs::read_to_string(&path).expect("a text");
    let rule = serde_json::to_string(&local_episodes(&tasks(&SHOP, 1), &mut RulePolicy)[0]).expect("JSON");
    let digest = SHOP.goals().fingerprint();
    for (content, reason) in [
        (format!("{people}{rule}\n"), "line 2: the episode is of the policy `rule`, not `human`"),
        (people.replace(digest, "another"), "line 1: the episode was recorded with the goals `another`"),
        (format!("{people}\n{{}}\n"), "line 3: "),
        ("notes without a line break".to_owned(), "line 1: it has no end of line"),
    ] {
        fs::write(&path, &content).expect("written");
        let refused = RecordFile::open(&path, &SHOP).expect_err(reason).to_string();
        assert!(refused.starts_with("cannot append to `") && refused.contains("in this shop"), "{refused}");
        assert!(refused.contains(reason), "{refused}");
        assert_eq!(fs::read_to_string(&path).expect("a text"), content);
    }
}
