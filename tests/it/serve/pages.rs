//! The site's pages for people: the words that agents read, a strict policy, pictures, the entrance and the end.

use webshop_agent::{OraclePolicy, Policy, RandomPolicy};
use webshop_env::{Action, Session, read_html};
use webshop_products::{GoalId, Product, Seed};

use crate::common::client::{Reply, SHOP, Served, config, served};
use crate::common::model::{local_episodes, tasks};

const POLICY: &str =
    "default-src 'self'; img-src 'self' data:; base-uri 'none'; object-src 'none'; form-action 'self'";

/// A document is read, and has nothing that its policy forbids: no style, script or event of its own, and
/// nothing from elsewhere.
pub(super) fn check_document(reply: &Reply, path: &str) {
    assert_eq!(reply.header("content-security-policy"), Some(POLICY), "{path}");
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
    assert!(!tags(&reply.body).any(|tag| tag == "style"), "a style in {path}");
    for forbidden in [" style=", " on", "javascript:", "//"] {
        // The name of a namespace is not fetched.
        let mut tags = tags(&reply.body).map(|tag| tag.replace(" xmlns=\"http://www.w3.org/2000/svg\"", ""));
        let found = tags.find(|tag| tag.contains(forbidden));
        assert_eq!(found, None, "{forbidden} in {path}");
    }
    for script in tags(&reply.body).filter(|tag| tag.starts_with("script")) {
        assert_eq!(script, "script src=\"/assets/shop.js\" defer", "{path}");
    }
    for image in tags(&reply.body).filter(|tag| tag.starts_with("img ")) {
        let is_own =
            [" src=\"/pictures/", " src=\"data:image/svg+xml,"].iter().any(|src| image.contains(src));
        assert!(image.contains(" alt=\"\" ") && is_own, "{image} in {path}");
    }
}

/// The insides of a document's tags. Texts and values are escaped, so that a `<` always opens a tag; the values of
/// attributes with texts of the shop are left out.
pub(super) fn tags(document: &str) -> impl Iterator<Item = &str> {
    let tags = document.split('<').skip(1).filter_map(|rest| rest.split('>').next());
    tags.filter(|tag| !tag.starts_with("input type=\"radio\""))
}

/// The field of a form that sends an action; `None` for a no-op.
fn field(action: &Action) -> Option<(&str, &str)> {
    match action {
        Action::Search(words) => Some(("search_query", words)),
        Action::Click(label) => Some(("click", label)),
        Action::Noop(_) => None,
    }
}

/// Follows the episodes of a policy on the site; the number of pages.
fn check_episodes(server: &Served, policy: &mut dyn Policy, n_goals: u32) -> usize {
    let mut n_pages = 0;
    for episode in local_episodes(&tasks(&SHOP, n_goals), policy) {
        let mut session = Session::start(episode.goal);
        let mut path = format!("/fixed_{}", episode.goal.0);
        let actions = episode.turns.iter().map(|turn| Some(&turn.action)).chain([None]);
        for action in actions {
            let (page, reply) = (session.page(&SHOP), server.get(&path));
            check_document(&reply, &path);
            let shown = read_html(&reply.body);
            match session.is_done() {
                // Which products were opened before is not in an address.
                false => assert_eq!(shown.text(), page.text(), "{path}"),
                true => assert!(shown.text().starts_with(&(page.text() + " [SEP] ")), "{path}"),
            }
            assert_eq!(shown.available_actions, page.available_actions(), "{path}");
            n_pages += 1;
            let Some(action) = action else { break };
            session.act(&SHOP, action);
            let Some(field) = field(action) else { continue };
            path = server.form(&path, &[field]).header("location").expect("an address").to_owned();
        }
    }
    n_pages
}

#[test]
fn until_the_end_a_page_says_the_words_of_the_observation_and_no_others() {
    let server = served(config());
    assert!(check_episodes(&server, &mut OraclePolicy, 30) > 100);
    assert!(check_episodes(&server, &mut RandomPolicy::new(Seed(3)), 30) > 200);
}

/// A product with at least two values of a color, and its item page.
fn colored() -> (&'static Product, String) {
    let mut products = SHOP.catalog().products().iter();
    let is_colored = |product: &&Product| {
        product.options.first().is_some_and(|group| &*group.name == "color" && group.values.len() > 1)
    };
    let product = products.find(is_colored).expect("a product with a color");
    (product, format!("/item_page/fixed_0/{}/a/1/%7B%7D", product.id))
}

#[test]
fn a_chosen_value_is_checked_and_colors_the_picture() {
    let server = served(config());
    let (product, path) = colored();
    let value = &*product.options[0].values[1].text;
    let unchosen = server.get(&path).body;
    assert!(!unchosen.contains(" checked"), "{unchosen}");
    let picture = format!("src=\"/pictures/{}.svg\"", product.id);
    assert!(unchosen.contains(&picture), "{unchosen}");
    // Without scripts, a button without words sends the form.
    assert!(unchosen.contains("<button class=\"choose\" aria-label=\"Choose\"></button>"), "{unchosen}");
    let chosen = server.form(&path, &[("color", value)]);
    let chosen = server.get(chosen.header("location").expect("an address")).body;
    let radio = format!("name=\"color\" value=\"{value}\" checked>");
    assert!(chosen.contains(&radio) && chosen.matches(" checked").count() == 1, "{chosen}");
    assert!(chosen.contains(&format!("src=\"/pictures/{}.svg?color=", product.id)), "{chosen}");
}

#[test]
fn the_page_after_the_purchase_compares_wanted_and_bought() {
    let server = served(config());
    let exact = local_episodes(&tasks(&SHOP, 5), &mut OraclePolicy)
        .into_iter()
        .find(|episode| !SHOP.goals().get(episode.goal).options.is_empty())
        .expect("a goal with options");
    let mut path = format!("/fixed_{}", exact.goal.0);
    for turn in &exact.turns {
        let reply = server.form(&path, &[field(&turn.action).expect("an oracle always acts")]);
        path = reply.header("location").expect("an address").to_owned();
    }
    let page = server.get(&path).body;
    assert!(page.contains("<h2 id=\"verdict\">Exactly what was asked for</h2>"), "{page}");
    assert!(page.contains("class=\"met\">× 1<") && !page.contains("class=\"unmet\""), "{page}");
    // The same product without its options.
    let goal = SHOP.goals().get(exact.goal);
    let product = SHOP.catalog().get(goal.product);
    let done = format!("/done/fixed_{}/{}/%7B%7D", goal.id.0, product.id);
    let page = server.get(&done).body;
    let breakdown = SHOP.reward(goal, goal.product, &Default::default());
    assert!(page.contains(&format!("<code>{breakdown}</code>")), "{page}");
    assert_eq!(page.matches("class=\"unmet\">no<").count(), goal.options.len(), "{page}");
    assert_eq!(page.matches("class=\"met\">yes<").count(), goal.attributes.len() + 1, "{page}");
    assert_eq!(page.matches(&*product.title.replace('\'', "&#39;")).count(), 2, "wanted and bought: {page}");
    assert!(page.contains(&format!("href=\"/fixed_{}\"", goal.id.0)), "{page}");
    assert!(page.contains("<form method=\"post\" action=\"/\""), "{page}");
}

#[test]
fn the_entrance_gives_goals_and_takes_their_numbers() {
    let given = || {
        let server = served(config());
        let begin = |fields: &[(&str, &str)]| server.form("/", fields);
        let mut goals: Vec<String> = Vec::new();
        for _ in 0..4 {
            let reply = begin(&[]);
            assert_eq!(reply.status, 303);
            goals.push(reply.header("location").expect("an address").to_owned());
        }
        assert_eq!(begin(&[("goal", " 7 ")]).header("location"), Some("/fixed_7"));
        for wrong in ["seven", "-1", "99999", "99999999999999999999999"] {
            let reply = begin(&[("goal", wrong)]);
            check_document(&reply, "/");
            assert!(reply.status == 404 && reply.body.contains("role=\"alert\""), "{wrong}: {reply:?}");
        }
        goals
    };
    let goals = given();
    assert_eq!(goals, given(), "the n-th goal that is given is always the same");
    let train = SHOP.goals().split(config().defaults.split);
    let number = |path: &String| path.strip_prefix("/fixed_").and_then(|id| id.parse().ok()).map(GoalId);
    assert!(goals.iter().all(|path| train.binary_search(&number(path).expect("a number")).is_ok()));
    assert!(goals.iter().any(|path| *path != goals[0]));
}

#[test]
fn the_entrance_lists_the_goals_of_the_split() {
    let server = served(config());
    let train = SHOP.goals().split(config().defaults.split);
    let (mut path, mut listed) = ("/".to_owned(), Vec::new());
    loop {
        let reply = server.get(&path);
        check_document(&reply, &path);
        listed.extend(
            tags(&reply.body).filter_map(|tag| tag.strip_prefix("a href=\"/fixed_")).map(str::to_owned),
        );
        let Some(next) = tags(&reply.body).find(|tag| tag.ends_with("rel=\"next\"")) else { break };
        path = next.split('"').find(|part| part.starts_with("/?")).expect("an address").to_owned();
        path.truncate(path.find('#').expect("a place in the page"));
    }
    let expected: Vec<String> = train.iter().map(|goal| format!("{}\"", goal.0)).collect();
    assert_eq!(listed, expected);
    assert_eq!(server.get(&format!("/?from={}", u64::MAX)).status, 200);
}

#[test]
fn files_and_pictures_are_in_the_binary() {
    let server = served(config());
    let media = |path: &str| {
        let reply = server.get(path);
        (reply.status, reply.header("content-type").unwrap_or_default().to_owned())
    };
    assert_eq!(media("/assets/shop.css"), (200, "text/css; charset=utf-8".into()));
    assert_eq!(media("/assets/shop.js"), (200, "text/javascript; charset=utf-8".into()));
    assert_eq!(media("/assets/icon.svg"), (200, "image/svg+xml".into()));
    for path in ["/assets/shop", "/assets/..%2fCargo.toml", "/pictures/B000000000.svg", "/pictures/nothing"] {
        assert_eq!(media(path).0, 404, "{path}");
    }
    let (product, _) = colored();
    let picture = |query: &str| server.get(&format!("/pictures/{}.svg{query}", product.id));
    assert_eq!(picture("").header("content-type"), Some("image/svg+xml"));
    assert_eq!(picture("").body, picture("?color=no%20color").body);
    assert_ne!(picture("?color=black").body, picture("?color=mint").body);
}
