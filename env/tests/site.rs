//! What is read back from a page's HTML is the page, on every page of random walks through both embedded
//! catalogs and the recorded one: from our own documents, and from documents written as the original writes
//! them.

use rand::Rng;
use std::collections::BTreeSet;
use std::path::Path;
use webshop_env::{
    Action, Detail, ForeignPage, NodeKind, Page, SearchPage, Session, Shop, ShopConfig, read_html,
};
use webshop_products::{Catalog, EmbeddedCatalog, GoalId, GoalKind, GoalSet, Purpose, RawData, Seed};

const N_EPISODES: u64 = 80;
const TRIP_STEPS: u64 = 14;

fn shop(data: &RawData, shows_attributes: bool) -> Shop {
    let catalog = Catalog::from_raw(data, Seed(0)).expect("a sound catalog");
    let goals = GoalSet::from_raw(data, &catalog, GoalKind::Both, Seed(0)).expect("with sound goals");
    let config = ShopConfig { shows_attributes, ..ShopConfig::default() };
    Shop::with_config(catalog, goals, config).expect("the shop opens")
}

/// Calls `visit` on every page of random episodes that search for anything and buy now and then.
fn walk(shop: &Shop, mut visit: impl FnMut(&Page)) {
    for episode in 0..N_EPISODES {
        let mut rng = Seed(11).rng(Purpose::new("policy"), &[episode]);
        let n_goals = shop.goals().goals().len();
        let goal = shop.goals().get(GoalId(rng.random_range(0..n_goals) as u32));
        let mut session = Session::start(goal.id);
        for _ in 0..TRIP_STEPS {
            let page = session.page(shop);
            visit(&page);
            let queries = [
                goal.query.clone(),
                goal.instruction.clone(),
                format!("<c> {}", goal.department).into(),
                "xyzzy".into(),
            ];
            let clicks: Vec<Action> = page.available_actions().clicks().collect();
            let action = match page {
                Page::Done(_) => break,
                Page::Search(_) => Action::Search(queries[rng.random_range(0..queries.len())].to_lowercase()),
                _ => clicks[rng.random_range(0..clicks.len())].clone(),
            };
            session.act(shop, &action);
        }
    }
}

/// A name for each kind of page that has a look of its own.
fn kind(page: &Page) -> String {
    match page {
        Page::Search(_) => "search".into(),
        Page::Results(page) => match (page.page_number, page.items.is_empty()) {
            (_, true) => "no results".into(),
            (1, false) => "results".into(),
            (_, false) => "further results".into(),
        },
        Page::Item(page) => if page.selection.is_empty() { "item" } else { "item with choices" }.into(),
        Page::Detail(page) => page.detail.to_string(),
        Page::Done(_) => "done".into(),
    }
}

/// Reads every page's document and compares; every kind of page must have been met.
fn check(data: &RawData, document: impl Fn(&Page) -> String, compare: impl Fn(&ForeignPage, &Page)) {
    for shows_attributes in [false, true] {
        let shop = shop(data, shows_attributes);
        let mut met = BTreeSet::new();
        walk(&shop, |page| {
            met.insert(kind(page));
            compare(&read_html(&document(page)), page);
        });
        let details = Detail::ALL.iter().filter(|detail| shows_attributes || **detail != Detail::Attributes);
        let others =
            ["search", "results", "further results", "no results", "item", "item with choices", "done"];
        let all: BTreeSet<String> = details.map(Detail::to_string).chain(others.map(str::to_owned)).collect();
        assert_eq!(met, all);
    }
}

fn catalogs() -> [RawData; 3] {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/parity");
    [
        RawData::embedded(EmbeddedCatalog::Hundred),
        RawData::embedded(EmbeddedCatalog::Thousand),
        RawData::read_dir(&recorded, None).expect("the recorded catalog is sound"),
    ]
}

#[test]
fn our_own_documents_read_as_the_page() {
    for data in catalogs() {
        check(&data, Page::html, |read, page| {
            assert_eq!(read.nodes, page.nodes());
            assert_eq!(read.text(), page.text());
            assert_eq!(read.text_rich(), page.text_rich());
            assert_eq!(read.available_actions, page.available_actions());
        });
    }
}

#[test]
fn the_originals_documents_read_as_the_page() {
    for data in catalogs() {
        check(&data, in_the_originals_manner, |read, page| {
            assert_eq!(read.text(), page.text());
            assert_eq!(read.available_actions, page.available_actions());
            // The original's documents do not mark clicked elements: its scripts do, from the URL.
            assert_eq!(without_marks(&read.text_rich()), without_marks(&page.text_rich()));
        });
    }
}

#[test]
fn every_move_leads_somewhere_and_nothing_else_does() {
    for document in [Page::html, in_the_originals_manner] {
        check(&RawData::embedded(EmbeddedCatalog::Hundred), document, |read, page| {
            for action in page.available_actions().clicks() {
                assert!(read.links.of(&action).is_some(), "{action} leads nowhere");
            }
            assert_eq!(read.links.of(&Action::Click("no such label".into())), None);
            let is_search = matches!(page, Page::Search(_));
            assert_eq!(read.links.of(&Action::Search("lamp".into())).is_some(), is_search);
        });
    }
}

#[test]
fn the_instruction_and_the_score_are_read_back() {
    for document in [Page::html, in_the_originals_manner] {
        check(&RawData::embedded(EmbeddedCatalog::Hundred), document, |read, page| {
            let instruction = match page {
                Page::Search(SearchPage { instruction }) => Some(instruction),
                Page::Results(page) => Some(&page.instruction),
                Page::Item(page) => Some(&page.instruction),
                Page::Detail(page) => Some(&page.instruction),
                Page::Done(_) => None,
            };
            assert_eq!(read.instruction(), instruction.map(|text| &**text));
            let paid = if let Page::Done(page) = page { Some(page.reward) } else { None };
            assert_eq!(read.score(), paid);
        });
    }
}

/// A text as it would be if nothing had been clicked.
fn without_marks(rich: &str) -> String {
    let lines = rich.lines().filter(|line| !line.starts_with("You have clicked "));
    lines.collect::<Vec<_>>().join("\n").replace("[clicked button", "[button")
}

/// The page as the original's templates write it: the same hooks in its own markup, with a form per button,
/// headings closed by the wrong tag, a former layout left in a comment, and a script after the body.
fn in_the_originals_manner(page: &Page) -> String {
    let nodes = page.nodes();
    let text = |at: usize| escaped(&nodes[at].text);
    let body = match page {
        Page::Search(_) => format!(
            "<div id=\"logo\"><h2>{}</h2></div>\n<div id=\"instruction-text\"><h4>{}<br>{}</h4></div>\n\
             <form role=\"form\"><input id=\"search_input\" name=\"search_query\" required/>\n\
             <span><button class=\"btn btn-success\" type=\"submit\"><i class=\"glyphicon\"></i>{}</button></span></form>\n\
             <iframe src=\"https://example.org/embed\"></iframe>\n",
            text(0),
            text(1),
            text(2),
            text(3)
        ),
        Page::Done(_) => {
            let pieces: Vec<String> =
                nodes.iter().map(|node| format!("<h4>{}</h4>", escaped(&node.text))).collect();
            format!(
                "<div style=\"display:none\">\n{}\n<hr class=\"solid\"></div>\n",
                pieces.join("<p>\n</p>")
            )
        }
        Page::Results(_) | Page::Item(_) | Page::Detail(_) => {
            let rest: String = nodes[2..].iter().map(|node| piece(page, node.kind, &node.text)).collect();
            format!(
                "<div class=\"container py-5\">\n<div id=\"instruction-text\" class=\"text-center\">\n\
                 <h4>{}<br>{}</h4>\n</div>\n{rest}</div>\n",
                text(0),
                text(1)
            )
        }
    };
    format!(
        "<!DOCTYPE html>\n<html>\n  <head>\n    <title>unseen</title>\n    <script src=\"jquery.js\"></script>\n  </head>\n\
         <body>\n<!-- <a class=\"product-link\">B0UNSEEN00</a> <button class=\"btn\">unseen</button> -->\n{body}</body>\n\
         <script>\n  let options = JSON.parse(`{{\"unseen\": \"value\"}}`);\n</script>\n</html>"
    )
}

/// One visible piece with the markup around it. A chosen value is not marked, whichever it is.
fn piece(page: &Page, kind: NodeKind, text: &str) -> String {
    let shown = escaped(text);
    match kind {
        NodeKind::Button => format!(
            "<form method=\"post\" action=\"/?session_id=1&amp;page=1\" style=\"float:left\">\n\
             <button type=\"submit\" class=\"btn btn-primary\">{shown}</button>\n</form>\n"
        ),
        NodeKind::Link => {
            format!(
                "<img src=\"a.jpg\" class=\"result-img\">\n<h4><a class=\"product-link\" href=\"/?a=b\">{shown}</a></h5>\n"
            )
        }
        NodeKind::Label => format!(
            "<input type=\"radio\" id=\"radio_0\" name=\"{}\" value=\"{shown}\" data-url=\"/?asin=B0\">\n\
             <label for=\"radio_0\">{shown}</label>\n",
            escaped(&group_of(page, text))
        ),
        NodeKind::Text => format!("<h4 class=\"font-weight-bold\">{shown}</h5>\n"),
    }
}

/// A group that has the value; the name of the radio input does not show.
fn group_of(page: &Page, text: &str) -> String {
    let Page::Item(page) = page else { return String::new() };
    let mut groups = page.options.iter();
    groups
        .find(|list| list.values.iter().any(|value| *value.text == *text))
        .map_or(String::new(), |list| list.name.to_string())
}

/// As Jinja escapes, and a carriage return as a reference, since a parser of HTML reads a bare one as a line
/// break.
fn escaped(text: &str) -> String {
    let pairs =
        [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("'", "&#39;"), ("\"", "&#34;"), ("\r", "&#13;")];
    pairs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}
