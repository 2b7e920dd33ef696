//! What the customer sees: one of five pages, as data.
//!
//! A [`Page`] holds exactly what is visible and nothing hidden. Text, HTML, address and the list
//! of available actions are views of it (see [`crate::page`]); they are made from its
//! [`Node`]s or its fields, and nothing is ever parsed to make them.
//!
//! A page knows no goal, no reward rule and no way to change anything: that is a
//! [`crate::Session`].

use webshop_pycompat::json_dict;
pub(crate) mod available_actions;
pub(crate) mod foreign;
mod html;
pub(crate) mod text;
mod url;

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use webshop_products::{Cents, ProductId, ProductIdx, Selection};

/// One page of the shop.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "page", rename_all = "snake_case")]
pub enum Page {
    /// Where a trip begins: the instruction and a search bar.
    Search(SearchPage),
    /// Ten products of a search.
    Results(ResultsPage),
    /// One product, with what can be chosen of it.
    Item(ItemPage),
    /// One text about a product.
    Detail(DetailPage),
    /// The end of a trip.
    Done(DonePage),
}

/// The page with the search bar.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchPage {
    /// What the customer is told to buy.
    pub instruction: Arc<str>,
}

/// One page of results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResultsPage {
    /// What the customer is told to buy.
    pub instruction: Arc<str>,
    /// What was searched for.
    pub query: Arc<str>,
    /// From 1; pages past the last are empty.
    pub page_number: u32,
    /// Products found in all; at most 50 for words.
    pub total: usize,
    /// The at most ten products of this page, best first.
    pub items: Vec<ResultItem>,
}

/// A product among the results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResultItem {
    /// Its place in the catalog.
    pub product: ProductIdx,
    /// Its name, which is the link.
    pub id: ProductId,
    /// Its title.
    pub title: Arc<str>,
    /// Its price as shown, which may be a range.
    pub price_tag: Arc<str>,
    /// The greatest amount that `price_tag` names.
    #[serde(skip)]
    pub highest_price: Cents,
    /// Whether the customer has opened it since the search bar.
    pub visited: bool,
}

/// The page of one product.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ItemPage {
    /// What the customer is told to buy.
    pub instruction: Arc<str>,
    /// The search that led here, and the page of its results.
    pub query: Arc<str>,
    /// The page of results that `< prev` leads to.
    pub page_number: u32,
    /// Its place in the catalog.
    pub product: ProductIdx,
    /// Its name.
    pub id: ProductId,
    /// Its title.
    pub title: Arc<str>,
    /// Its price as shown, which may be a range.
    pub price_tag: Arc<str>,
    /// The greatest amount that `price_tag` names.
    #[serde(skip)]
    pub highest_price: Cents,
    /// What can be chosen.
    pub options: Vec<OptionList>,
    /// What is chosen, in the order of choosing.
    pub selection: Selection,
    /// Whether there is a button to the attributes.
    pub shows_attributes: bool,
}

/// One thing to choose on an item page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OptionList {
    /// What is chosen, such as `color`.
    pub name: Arc<str>,
    /// The choices.
    pub values: Vec<OptionLabel>,
}

/// One choice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OptionLabel {
    /// What is written on it, and clicked.
    pub text: Arc<str>,
    /// Whether it is shown as chosen.
    pub clicked: bool,
}

/// One text about a product.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DetailPage {
    /// What the customer is told to buy.
    pub instruction: Arc<str>,
    /// The search that led here.
    pub query: Arc<str>,
    /// The page of results it led to.
    pub page_number: u32,
    /// The product's place in the catalog.
    pub product: ProductIdx,
    /// The product's name.
    pub id: ProductId,
    /// What is chosen, which the address shows.
    pub selection: Selection,
    /// Which text.
    pub detail: Detail,
    /// The text: one line, or several for features and attributes.
    pub lines: Vec<String>,
}

/// The texts a product has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// Its description.
    Description,
    /// Its bullets.
    Features,
    /// Nothing: the shop has no reviews.
    Reviews,
    /// Its attributes, department, query and category; shown only if the shop shows attributes.
    Attributes,
}

/// The page after the purchase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DonePage {
    /// The place in the catalog of what was bought.
    pub product: ProductIdx,
    /// The name of what was bought.
    pub id: ProductId,
    /// What was chosen of it.
    pub selection: Selection,
    /// What it was worth, 0 to 1.
    pub reward: f64,
}

impl Detail {
    /// All of them, in the order of their buttons.
    pub const ALL: [Detail; 4] = [Detail::Description, Detail::Features, Detail::Reviews, Detail::Attributes];

    /// The button's text.
    pub fn label(self) -> &'static str {
        match self {
            Detail::Description => "Description",
            Detail::Features => "Features",
            Detail::Reviews => "Reviews",
            Detail::Attributes => "Attributes",
        }
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// A piece of visible text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    /// What it does when clicked.
    pub kind: NodeKind,
    /// The text, as it stands.
    pub text: Cow<'a, str>,
    /// Whether a link or label is shown as already clicked.
    pub clicked: bool,
}

/// What a piece of text does when clicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Nothing.
    Plain,
    /// What its words say.
    Button,
    /// It opens a product.
    Link,
    /// It chooses a value.
    Label,
}

impl<'a> Node<'a> {
    /// A node, or nothing if the text cannot be seen: what is empty is dropped, and so is white
    /// space with a line break in it; other white space shrinks to one space.
    pub fn new(kind: NodeKind, text: impl Into<Cow<'a, str>>, clicked: bool) -> Option<Self> {
        let mut text = text.into();
        let blank = |c| matches!(c, ' ' | '\n' | '\t' | '\x0c' | '\r');
        if text.chars().all(blank) {
            if text.is_empty() || text.contains('\n') {
                return None;
            }
            text = Cow::Borrowed(" ");
        }
        Some(Node { kind, text, clicked })
    }
}

/// The nodes of a page under construction.
struct Nodes<'a>(Vec<Node<'a>>);

impl<'a> Nodes<'a> {
    fn plain(&mut self, text: impl Into<Cow<'a, str>>) {
        self.0.extend(Node::new(NodeKind::Plain, text, false));
    }

    fn button(&mut self, text: &'a str) {
        self.0.extend(Node::new(NodeKind::Button, text, false));
    }

    fn head(&mut self, instruction: &'a str) {
        self.plain("Instruction:");
        self.plain(instruction);
        self.button("Back to Search");
    }
}

impl Page {
    /// The visible pieces of text, in document order.
    pub fn nodes(&self) -> Vec<Node<'_>> {
        let mut nodes = Nodes(Vec::with_capacity(48));
        match self {
            Page::Search(page) => {
                nodes.plain("WebShop");
                nodes.plain("Instruction: ");
                nodes.plain(&*page.instruction);
                nodes.button("Search");
            }
            Page::Results(page) => page.nodes(&mut nodes),
            Page::Item(page) => page.nodes(&mut nodes),
            Page::Detail(page) => {
                nodes.head(&page.instruction);
                nodes.button("< Prev");
                for line in &page.lines {
                    nodes.plain(line);
                }
            }
            Page::Done(page) => page.nodes(&mut nodes),
        }
        nodes.0
    }
}

impl ResultsPage {
    fn nodes<'a>(&'a self, nodes: &mut Nodes<'a>) {
        nodes.head(&self.instruction);
        nodes.plain(format!("Page {} (Total results: {})", self.page_number, self.total));
        if self.page_number > 1 {
            nodes.button("< Prev");
        }
        nodes.button("Next >");
        for item in &self.items {
            let id = item.id.as_str();
            nodes.0.extend(Node::new(NodeKind::Link, id, item.visited));
            nodes.plain(&*item.title);
            nodes.plain(&*item.price_tag);
        }
    }
}

impl ItemPage {
    /// The buttons below the product, to its texts.
    pub fn details(&self) -> &'static [Detail] {
        let shown = if self.shows_attributes { 4 } else { 3 };
        &Detail::ALL[..shown]
    }

    fn nodes<'a>(&'a self, nodes: &mut Nodes<'a>) {
        nodes.head(&self.instruction);
        nodes.button("< Prev");
        for list in &self.options {
            nodes.plain(&*list.name);
            for label in &list.values {
                nodes.0.extend(Node::new(NodeKind::Label, &*label.text, label.clicked));
            }
        }
        nodes.plain(&*self.title);
        nodes.plain(format!("Price: {}", self.price_tag));
        nodes.plain("Rating: N.A.");
        for detail in self.details() {
            nodes.button(detail.label());
        }
        nodes.button("Buy Now");
    }
}

impl DonePage {
    /// The choices, written as the page writes them: JSON in name order, safe inside a script.
    pub fn options_text(&self) -> String {
        let mut chosen: Vec<(&str, &str)> = self.selection.iter().collect();
        chosen.sort_unstable();
        json_dict(chosen.into_iter())
            .replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026")
            .replace('\'', "\\u0027")
    }

    /// The reward, always with a decimal point.
    pub fn reward_text(&self) -> String {
        format!("{:?}", self.reward)
    }

    fn nodes<'a>(&'a self, nodes: &mut Nodes<'a>) {
        for text in ["Thank you for shopping with us!", "Your code: ", "None"] {
            nodes.plain(text);
        }
        nodes.plain(" (Paste it in your MTurk interface.)");
        for text in ["Purchased", "asin", self.id.as_str(), "options"] {
            nodes.plain(text);
        }
        nodes.plain(self.options_text());
        for name in UNKNOWN_FIELDS {
            nodes.plain(name);
            nodes.plain("None");
        }
        for name in TARGET_FIELDS {
            nodes.plain(name);
        }
        for text in ["Goal ", "None", "Reward", "Your score (min 0.0, max 1.0)"] {
            nodes.plain(text);
        }
        nodes.plain(self.reward_text());
        nodes.plain("Reward Details ");
        nodes.plain("None");
    }
}

/// What the last page does not tell of the purchase.
pub(crate) const UNKNOWN_FIELDS: [&str; 4] = ["attrs", "category", "query", "product category"];

/// The headings of an empty table on the last page, with the original's spelling.
pub(crate) const TARGET_FIELDS: [&str; 9] = [
    "Target",
    "asin",
    "options",
    "attrs",
    "price upper",
    "instuction text",
    "category",
    "product category",
    "query",
];
