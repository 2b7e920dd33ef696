//! The five pages of the shop as documents for people.
//!
//! They are views of the same [`Page`]s that agents read. Until the purchase the texts of a document are the
//! texts of the page, in order and without others; pictures and looks are added. The document after the purchase
//! begins with the page's texts, and then compares what was wanted with what was bought.
//!
//! Between two tags the templates break the line, never put a lone space: a space alone would be a visible text.

use askama::Template;
use axum::response::Response;
use webshop_env::{DetailPage, DonePage, ItemPage, Page, ResultsPage, RewardExplanation, SearchPage, Shop};
use webshop_products::{Goal, GoalId, Product, ProductId, Selection};

use crate::document;
use crate::picture;

#[derive(Template)]
#[template(path = "search.html")]
struct SearchView<'a> {
    is_live: bool,
    page: &'a SearchPage,
}

#[derive(Template)]
#[template(path = "results.html")]
struct ResultsView<'a> {
    is_live: bool,
    page: &'a ResultsPage,
}

#[derive(Template)]
#[template(path = "item.html")]
struct ItemView<'a> {
    is_live: bool,
    page: &'a ItemPage,
    color: &'a str,
}

#[derive(Template)]
#[template(path = "detail.html")]
struct DetailView<'a> {
    page: &'a DetailPage,
    color: &'a str,
}

#[derive(Template)]
#[template(path = "done.html")]
struct DoneView<'a> {
    page: &'a DonePage,
    session: Option<&'a str>,
    goal: &'a Goal,
    explanation: &'a RewardExplanation,
    sides: [Side<'a>; 2],
    parts: Vec<Part>,
}

/// What was wanted, or what was bought.
struct Side<'a> {
    heading: &'static str,
    product: &'a Product,
    choices: Vec<String>,
    color: &'a str,
}

/// A factor or a summand of the reward.
struct Part {
    kind: &'static str,
    wanted: String,
    bought: String,
    met: String,
    is_met: bool,
}

/// A page of the session called `name`.
pub(super) fn page(shop: &Shop, name: &str, goal: GoalId, page: &Page) -> Response {
    document::ok_text(document(shop, goal, page, Some(name)))
}

/// A page as a document to look at only: no script runs, nothing takes the focus, and no link leads to another page.
pub(crate) fn static_page(shop: &Shop, goal: GoalId, page: &Page) -> String {
    document(shop, goal, page, None)
}

/// The document of a page; one without a session is to look at only.
fn document(shop: &Shop, goal: GoalId, page: &Page, session: Option<&str>) -> String {
    let is_live = session.is_some();
    match page {
        Page::Search(page) => document::text(&SearchView { is_live, page }),
        Page::Results(page) => document::text(&ResultsView { is_live, page }),
        Page::Item(page) => document::text(&ItemView { is_live, page, color: color_of(&page.selection) }),
        Page::Detail(page) => document::text(&DetailView { page, color: color_of(&page.selection) }),
        Page::Done(page) => done(shop, goal, page, session),
    }
}

fn done(shop: &Shop, goal: GoalId, page: &DonePage, session: Option<&str>) -> String {
    let goal = shop.goals().get(goal);
    let (wanted, bought) = (shop.catalog().get(goal.product), shop.catalog().get(page.product));
    let explanation = shop.explain_reward(goal, page.product, &page.selection);
    let asked = goal.options.iter().map(|option| named(option.name.as_deref(), &option.value)).collect();
    let chosen = page.selection.iter().map(|(name, value)| named(Some(name), value)).collect();
    let asked_color = picture::color_among(goal.options.iter().map(|option| &*option.value));
    let sides = [
        Side { heading: "Wanted", product: wanted, choices: asked, color: asked_color.unwrap_or_default() },
        Side { heading: "Bought", product: bought, choices: chosen, color: color_of(&page.selection) },
    ];
    let parts = parts(goal, bought, &explanation);
    document::text(&DoneView { page, session, goal, explanation: &explanation, sides, parts })
}

/// An option's name and value; human goals name the value alone.
fn named(name: Option<&str>, value: &str) -> String {
    name.map_or_else(|| value.to_owned(), |name| format!("{name}: {value}"))
}

fn parts(goal: &Goal, bought: &Product, explanation: &RewardExplanation) -> Vec<Part> {
    let counts = &explanation.breakdown;
    let yes_or_no = |is_met| if is_met { "yes" } else { "no" }.to_owned();
    let requirement =
        |kind, wanted, bought, is_met| Part { kind, wanted, bought, met: yes_or_no(is_met), is_met };
    let kind = Part {
        kind: "Kind of product",
        wanted: goal.query.to_string(),
        bought: bought.query.to_string(),
        met: format!("× {}", counts.r_type()),
        is_met: counts.r_type() == 1.0,
    };
    let attributes = explanation.attributes.iter().map(|(text, is_met)| {
        let bought = if *is_met { "has it" } else { "lacks it" };
        requirement("Attribute", text.clone(), bought.to_owned(), *is_met)
    });
    let options = explanation.options.iter().map(|(text, met_by)| {
        let bought = met_by.clone().unwrap_or_else(|| "not chosen".to_owned());
        requirement("Option", text.clone(), bought, met_by.is_some())
    });
    let limit = explanation.limit.map_or_else(|| "no limit".to_owned(), |limit| format!("at most {limit}"));
    let price = requirement("Price", limit, explanation.paid.to_string(), counts.price_ok);
    [kind].into_iter().chain(attributes).chain(options).chain([price]).collect()
}

/// The selected value that names a color; empty if there is none.
fn color_of(selection: &Selection) -> &str {
    picture::color_among(selection.values()).unwrap_or_default()
}

/// The address of a product's picture, in a color unless that is empty.
fn picture(id: &ProductId, color: &str) -> String {
    picture::address(id, color)
}
