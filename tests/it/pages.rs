//! Each kind of page, as agents and as browsers see it.
//!
//! `snapshots/pages/<page>.snap` holds the address, both texts and the available actions;
//! `<page>_html.snap` the body of the document.

use crate::common::corner_shop::{corner_shop, goal};
use crate::common::in_area;
use webshop_env::{Action, Compat, Page, Session, read_html};

/// Takes the actions, then snapshots the page.
fn check(name: &str, asin: &str, options: &[&str], actions: &[&str]) {
    let shop = corner_shop();
    let mut session = Session::start(goal(&shop, asin, options).id);
    for text in actions {
        let action = Action::parse(text, Compat::Repaired);
        assert_eq!(session.act(&shop, &action).noop, None, "{text}");
    }
    let page = session.page(&shop);
    let html = page.html();
    assert_eq!(read_html(&html).text_rich(), page.text_rich());
    let body = html.find("<body>").expect("a document has a body");
    in_area("pages", || {
        insta::assert_snapshot!(name, views(&page, &session));
        insta::assert_snapshot!(format!("{name}_html"), without_blank_lines(&html[body..]));
    });
}

fn views(page: &Page, session: &Session) -> String {
    let available = page.available_actions();
    format!(
        "url\n{}\n\ntext\n{}\n\ntext_rich\n{}\nsearch bar: {}\nclickables: {}\n",
        page.url(&session.name()),
        page.text(),
        page.text_rich(),
        available.has_search_bar,
        available.clickables.join(" · "),
    )
}

/// The templates leave blank lines, which no view shows.
fn without_blank_lines(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_search_page() {
    check("search", "B0LAMP0001", &[], &[]);
}

#[test]
fn a_page_of_results_with_a_visited_product() {
    let actions = ["search[desk lamp with usb]", "click[b0lamp0002]", "click[< prev]"];
    check("results", "B0LAMP0001", &[], &actions);
}

#[test]
fn an_item_page_with_a_choice() {
    let actions = ["search[sneakers]", "click[b0sneak001]", "click[black | white]"];
    check("item", "B0SNEAK001", &["black | white", "8"], &actions);
}

#[test]
fn a_detail_page() {
    let actions = ["search[sheet]", "click[b0sheet001]", "click[queen [60x80]]", "click[features]"];
    check("detail", "B0SHEET001", &["queen [60x80]"], &actions);
}

#[test]
fn the_receipt() {
    let actions = ["search[sheet]", "click[b0sheet001]", "click[queen [60x80]]", "click[buy now]"];
    check("done", "B0SHEET001", &["queen [60x80]"], &actions);
}
