//! An episode at a site is the episode in our own shop, and a site that fails has no reward.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use crate::common::server::{Request, Response, decoded, goal_of, our_site, serve};
use webshop_agent::{
    AgentError, Decision, Episode, EpisodeCoordinates, LaneView, PagePolicy, Policy, RandomPolicy,
    RolloutConfig, RulePolicy, SiteEpisode, SiteTurn, Task, rollout,
};
use webshop_env::{Action, Detail, DonePage, NodeKind, Page, SearchPage, Session, Shop};
use webshop_products::{GoalId, Seed, Selection};
use webshop_remote::{Site, SiteConfig, run_at_site};
use webshop_training::{config::CatalogConfig, open_shop};

const MAX_STEPS: u32 = 15;

fn shop() -> Arc<Shop> {
    let config = CatalogConfig { source: "100".into(), ..CatalogConfig::default() };
    Arc::new(open_shop(&config).expect("the shop opens"))
}

/// A policy of pages as a policy of our own shop.
struct ByPages<P>(P);

impl<P: PagePolicy> Policy for ByPages<P> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn begin_rollout(&mut self, n_lanes: usize) -> Result<(), AgentError> {
        self.0.begin_rollout(n_lanes)
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Decision>, AgentError> {
        let choose = |view: &LaneView<'_>| self.0.choose(&view.visible_page(), view.coordinates, view.turn);
        Ok(lanes.iter().map(|view| Decision::act(choose(view))).collect())
    }
}

/// The episodes for the first goals in our own shop, in the form of those at a site.
fn local_episodes(shop: &Arc<Shop>, policy: &mut dyn Policy, n_goals: u32) -> Vec<SiteEpisode> {
    let coordinates = |goal| EpisodeCoordinates::of_goal(GoalId(goal));
    let task = |goal| Task::new(shop.clone(), coordinates(goal));
    let tasks: Vec<Task> = (0..n_goals).map(task).collect();
    let limits = RolloutConfig { max_steps: MAX_STEPS, lanes: 7 };
    let episodes =
        rollout(policy, &tasks, limits, &mut |_, _| ()).expect("policies without a model do not fail");
    episodes.iter().map(|episode| at_a_site(shop, episode)).collect()
}

fn at_a_site(shop: &Shop, episode: &Episode) -> SiteEpisode {
    let mut session = Session::start(episode.meta.coordinates.goal);
    let start = session.page(shop).text();
    let turns = episode.turns.iter().map(|turn| {
        session.act(shop, &turn.action);
        SiteTurn { action: turn.action.clone(), noop: turn.noop, observation: session.page(shop).text() }
    });
    SiteEpisode {
        instruction: shop.goals().get(episode.meta.coordinates.goal).instruction.to_string(),
        start,
        turns: turns.collect(),
        reward: episode.reward,
        terminated: episode.terminated,
    }
}

fn episodes_at<P: PagePolicy + Clone + Send + Sync + 'static>(
    address: &str,
    policy: &P,
    n_sessions: usize,
) -> Result<Vec<Result<SiteEpisode, String>>, String> {
    let site = Site::parse(address).expect("an address");
    let config = SiteConfig { n_sessions, max_steps: MAX_STEPS, page_timeout: Duration::from_secs(60) };
    let mut n_ended = 0;
    let episodes =
        run_at_site(&site, policy, config, &mut |n| n_ended += n).map_err(|error| error.to_string())?;
    assert_eq!((episodes.len(), n_ended), (n_sessions, n_sessions));
    Ok(episodes.into_iter().map(|episode| episode.map_err(|error| error.to_string())).collect())
}

/// Asserts that a policy has the same episodes at both sites and here, and returns them.
fn check<P>(policy: P, here: &mut dyn Policy, n_goals: u32) -> Vec<SiteEpisode>
where
    P: PagePolicy + Clone + Send + Sync + 'static,
{
    let shop = shop();
    let expected = local_episodes(&shop, here, n_goals);
    for address in [our_site(shop.clone()), originals_site(shop.clone())] {
        let episodes = episodes_at(&address, &policy, n_goals as usize).expect("the site is there");
        for (goal, (episode, expected)) in episodes.into_iter().zip(&expected).enumerate() {
            let episode = episode.expect("no session fails");
            for (turn, (done, expected)) in episode.turns.iter().zip(&expected.turns).enumerate() {
                assert_eq!(done, expected, "goal {goal}, turn {turn}");
            }
            assert_eq!(&episode, expected, "goal {goal}");
        }
    }
    expected
}

#[test]
fn the_rule_agent_has_the_same_episodes_at_a_site() {
    let episodes = check(RulePolicy, &mut RulePolicy, 40);
    assert!(episodes.iter().all(|episode| episode.terminated && episode.n_inadmissible() == 0));
    assert!(episodes.iter().any(|episode| episode.reward > 0.0 && !episode.is_success()));
}

#[test]
fn random_policies_have_the_same_episodes_at_a_site() {
    let mut episodes = Vec::new();
    for seed in 0..3 {
        let policy = RandomPolicy::new(Seed(seed));
        episodes.extend(check(policy, &mut ByPages(policy), 20));
    }
    assert!(
        episodes.iter().any(|episode| episode.terminated)
            && episodes.iter().any(|episode| !episode.terminated)
    );
    let does = |label: &str| {
        let action = Action::Click(label.to_owned());
        episodes.iter().flat_map(|episode| &episode.turns).any(|turn| turn.action == action)
    };
    for label in ["next >", "< prev", "back to search", "description", "features", "reviews", "buy now"] {
        assert!(does(label), "no click on `{label}`");
    }
    let shop = shop();
    let mut products = shop.catalog().products().iter();
    let has_choice = |values: &[webshop_products::OptionGroup]| {
        values.iter().flat_map(|group| &group.values).any(|value| does(&value.text))
    };
    assert!(products.any(|product| has_choice(&product.options)), "no option is chosen");
}

/// The documents and addresses of the original: the address holds the whole state of an episode, searches are posted
/// and redirected, buttons are forms, and choices lead to the address in their `data-url`.
fn originals_site(shop: Arc<Shop>) -> String {
    serve(move |asked| {
        let segments: Vec<String> =
            asked.path.trim_start_matches('/').split('/').map(|segment| decoded(segment, false)).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        if let ([name], [(field, words)]) = (&segments[..], &asked.fields[..]) {
            assert_eq!(field, "search_query");
            return Response::Redirect(path(&["search_results", name, words, "1"]));
        }
        let name = if segments.len() == 1 { segments[0] } else { segments[1] };
        match (goal_of(&shop, name), &segments[..]) {
            (Some(goal), ["done", _, asin, choices]) => {
                Response::Page(original_document(&bought(&shop, goal, asin, choices), |_| unreachable!()))
            }
            (Some(goal), segments) => match session_at(&shop, goal, segments) {
                Some(session) => Response::Page(original_document(&session.page(&shop), |label| {
                    let mut next = session.clone();
                    next.act(&shop, &Action::Click(label.to_lowercase()));
                    address(name, &next.page(&shop))
                })),
                None => Response::Error(404),
            },
            (None, _) => Response::Error(500),
        }
    })
}

/// The session of an address, by all its actions from the start.
fn session_at(shop: &Shop, goal: GoalId, segments: &[&str]) -> Option<Session> {
    let mut session = Session::start(goal);
    let mut go = |action: Action| assert_eq!(session.act(shop, &action).noop, None, "{action}");
    let mut search = |words: &str, page: &str| {
        go(Action::Search(words.to_owned()));
        let page: u32 = page.parse().expect("a number");
        (1..page).for_each(|_| go(Action::Click("next >".into())));
    };
    let (product, detail) = match *segments {
        [_] => return Some(session),
        ["search_results", _, words, page] => {
            search(words, page);
            return Some(session);
        }
        ["item_page", _, asin, words, page, choices] => {
            search(words, page);
            ((asin, choices), None)
        }
        ["item_sub_page", _, asin, words, page, detail, choices] => {
            search(words, page);
            ((asin, choices), Some(detail))
        }
        _ => return None,
    };
    go(Action::Click(product.0.to_lowercase()));
    for (_, value) in selection(product.1).iter() {
        go(Action::Click(value.to_owned()));
    }
    if let Some(detail) = detail {
        go(Action::Click(detail.to_lowercase()));
    }
    Some(session)
}

fn bought(shop: &Shop, goal: GoalId, asin: &str, choices: &str) -> Page {
    let product = shop.catalog().find(asin).expect("a product");
    let selection = selection(choices);
    Page::Done(DonePage {
        product,
        id: shop.catalog().get(product).id.clone(),
        reward: shop.reward(shop.goals().get(goal), product, &selection).total(),
        selection,
    })
}

fn selection(choices: &str) -> Selection {
    let choices: Vec<(String, String)> = serde_json::from_str(choices).expect("pairs");
    let mut selection = Selection::new();
    choices.iter().for_each(|(name, value)| selection.choose(name, value));
    selection
}

/// The address of a page of the session `name`.
fn address(name: &str, page: &Page) -> String {
    let choices = |selection: &Selection| {
        let pairs: Vec<(&str, &str)> = selection.iter().collect();
        serde_json::to_string(&pairs).expect("pairs are data")
    };
    let label = |detail: Detail| detail.label();
    match page {
        Page::Search(_) => path(&[name]),
        Page::Results(page) => path(&["search_results", name, &page.query, &page.page_number.to_string()]),
        Page::Item(page) => {
            let (asin, number) = (page.id.as_str(), page.page_number.to_string());
            path(&["item_page", name, asin, &page.query, &number, &choices(&page.selection)])
        }
        Page::Detail(page) => {
            let (asin, number) = (page.id.as_str(), page.page_number.to_string());
            let choices = choices(&page.selection);
            path(&["item_sub_page", name, asin, &page.query, &number, label(page.detail), &choices])
        }
        Page::Done(page) => path(&["done", name, page.id.as_str(), &choices(&page.selection)]),
    }
}

fn path(segments: &[&str]) -> String {
    let encoded = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    let segment = |segment: &&str| format!("/{}", segment.bytes().map(encoded).collect::<String>());
    segments.iter().map(segment).collect()
}

/// A document in the original's markup, with `leads_to` a label's address.
fn original_document(page: &Page, leads_to: impl Fn(&str) -> String) -> String {
    if let Page::Search(SearchPage { instruction }) = page {
        return document(&format!(
            "<h2>WebShop</h2><div id=\"instruction-text\"><h4>Instruction: <br>{}</h4></div>\n\
             <form role=\"form\" method=\"post\" action=\"\"><input id=\"search_input\" name=\"search_query\" required/>\n\
             <button class=\"btn\" type=\"submit\"><i></i>Search</button></form>",
            escaped(instruction)
        ));
    }
    let piece = |(kind, text): (NodeKind, &str)| match kind {
        NodeKind::Text => format!("<h4>{}</h5>\n", escaped(text)),
        NodeKind::Button => format!(
            "<form method=\"post\" action=\"{}\">\n<button type=\"submit\" class=\"btn\">{}</button>\n</form>\n",
            leads_to(text),
            escaped(text)
        ),
        NodeKind::Link => format!("<a class=\"product-link\" href=\"{}\">{text}</a>\n", leads_to(text)),
        NodeKind::Label => format!(
            "<input type=\"radio\" value=\"{0}\" data-url=\"{1}\">\n<label>{0}</label>\n",
            escaped(text),
            leads_to(text)
        ),
    };
    let nodes = page.nodes();
    document(&nodes.iter().map(|node| piece((node.kind, &node.text))).collect::<String>())
}

fn document(body: &str) -> String {
    format!("<!DOCTYPE html>\n<html><head><title>unseen</title></head>\n<body>\n{body}\n</body></html>")
}

fn escaped(text: &str) -> String {
    let pairs =
        [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("'", "&#39;"), ("\"", "&#34;"), ("\r", "&#13;")];
    pairs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// A first page with a search bar whose form has the address `action`.
fn first_page(action: &str) -> Response {
    Response::Page(document(&format!(
        "<h4>Instruction: buy a lamp</h4><form action=\"{action}\"><input id=\"search_input\" name=\"words\">\
         <button class=\"btn\">Search</button></form>"
    )))
}

/// Asserts the error of a site that answers so, with `SITE` for its address.
fn check_refused(answer: impl Fn(&Request) -> Response + Send + Sync + 'static, expected: &str) {
    let address = serve(answer);
    let refusal = episodes_at(&address, &RulePolicy, 3).expect_err("no shop");
    assert_eq!(refusal.replace(&address, "SITE/"), expected);
}

#[test]
fn a_server_that_is_no_shop_ends_the_rollout() {
    check_refused(
        |_| Response::Error(503),
        "`SITE/fixed_0` is not a WebShop site: HTTP status 503 Service Unavailable",
    );
    check_refused(
        |_| Response::Page("<h1>It works!</h1>".into()),
        "`SITE/fixed_0` is not a WebShop site: the page has neither an instruction nor a score, so it is not a page of WebShop",
    );
    check_refused(
        |_| Response::Page("<h3>Your score (min 0.0, max 1.0)<pre>1.0</pre></h3>".into()),
        "`SITE/fixed_0` is not a WebShop site: the first page has no instruction",
    );
    check_refused(
        |_| Response::Page("x".repeat(5 << 20)),
        "`SITE/fixed_0` is not a WebShop site: a document of more than 4194304 bytes",
    );
}

#[test]
fn redirects_are_few_and_stay_at_the_site() {
    check_refused(
        |asked| Response::Redirect(asked.path.clone()),
        "`SITE/fixed_0` is not a WebShop site: redirected more than 10 times",
    );
    check_refused(
        |_| Response::Redirect("http://localhost:1/fixed_0".into()),
        "`SITE/fixed_0` is not a WebShop site: redirected to another host, `http://localhost:1/fixed_0`",
    );
}

#[test]
fn an_unreachable_site_ends_the_rollout() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}/", listener.local_addr().expect("a bound address"));
    drop(listener);
    let refusal = episodes_at(&address, &RulePolicy, 3).expect_err("no site");
    assert!(refusal.starts_with(&format!("cannot reach `{address}fixed_0`: ")), "{refusal}");
    assert!(refusal.ends_with("; check that the site is running"), "{refusal}");
}

#[test]
fn a_site_that_does_not_answer_ends_the_rollout() {
    let address = serve(|_| {
        loop {
            std::thread::park();
        }
    });
    let site = Site::parse(&address).expect("an address");
    // The limit runs out on any machine, fast or slow: the outcome does not depend on its speed.
    let config = SiteConfig { n_sessions: 1, max_steps: 1, page_timeout: Duration::from_millis(20) };
    let refusal = run_at_site(&site, &RulePolicy, config, &mut |_| ()).expect_err("no answer").to_string();
    assert_eq!(refusal, format!("cannot reach `{address}fixed_0`: no reply within 0.02 s"));
}

#[test]
fn a_site_that_goes_away_ends_the_rollout() {
    let address =
        serve(|asked| if asked.path == "/fixed_0" { first_page("/gone") } else { Response::Nothing });
    let refusal = episodes_at(&address, &RulePolicy, 3).expect_err("the site is gone");
    assert!(refusal.starts_with("cannot reach `"), "{refusal}");
}

/// Asserts that of three sessions only the second fails, and why.
fn check_second(address: &str, expected: &str) {
    let episodes = episodes_at(address, &RulePolicy, 3).expect("the site is there");
    assert!(episodes[0].is_ok() && episodes[2].is_ok(), "{episodes:?}");
    let failure = episodes[1].as_ref().expect_err("the second session fails");
    assert_eq!(failure.replace(address, "SITE/"), expected);
}

#[test]
fn a_session_fails_alone_and_has_no_reward() {
    let shop = shop();
    let page = move |asked: &Request| {
        let session = Session::start(goal_of(&shop, "fixed_0").expect("a goal"));
        // Every search leads back to the first page.
        (asked.path != "/fixed_1").then(|| Response::Page(session.page(&shop).html()))
    };
    let page = Arc::new(page);
    let or = |other: fn() -> Response| {
        let page = page.clone();
        serve(move |asked| page(asked).unwrap_or_else(other))
    };
    check_second(
        &or(|| Response::Error(500)),
        "`SITE/fixed_1` is not a WebShop site: HTTP status 500 Internal Server Error",
    );
    check_second(
        &or(|| first_page("http://example.org/")),
        "`SITE/fixed_1` is not a WebShop site: its link `http://example.org/` leads to another host",
    );
    check_second(
        &or(|| first_page("javascript:void(0)")),
        "`SITE/fixed_1` is not a WebShop site: its link `javascript:void(0)` leads to another host",
    );
}
