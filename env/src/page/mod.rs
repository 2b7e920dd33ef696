//! The five pages of the shop as data.
//!
//! A [`Page`] holds what is visible. Its text, HTML, URL and available actions are views, made from its
//! [`Node`]s or its fields; nothing is parsed to make them. The JSON view holds its fields, except those that
//! are only typed forms of a shown text (`lowest_price`, `highest_price`).
//!
//! A page has no goal and no reward rule, and it cannot change anything: that is done by a
//! [`crate::Session`].

use webshop_pycompat::json_dict;
pub(crate) mod available_actions;
pub(crate) mod foreign;
pub(crate) mod html;
pub(crate) mod observation_mode;
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
    /// The first page: instruction and search bar.
    Search(SearchPage),
    /// Up to ten products of a search.
    Results(ResultsPage),
    /// One product with its options.
    Item(ItemPage),
    /// The page with one text about a product.
    Detail(DetailPage),
    /// The page after the purchase.
    Done(DonePage),
}

/// The page with the search bar.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchPage {
    /// The goal's instruction.
    pub instruction: Arc<str>,
}

/// One page of results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResultsPage {
    /// The goal's instruction.
    pub instruction: Arc<str>,
    /// The query.
    pub query: Arc<str>,
    /// The page number, from 1; pages after the last are empty, and so is page 0, to which the original can be misled
    /// ([`crate::Compat`]).
    pub page_number: u32,
    /// The total number of hits; at most 50 for a search.
    pub total: usize,
    /// At most ten products, best first.
    pub items: Vec<ResultItem>,
}

/// A product among the results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResultItem {
    /// Its position in the catalog.
    pub product: ProductIdx,
    /// Its id, which is the label of the link.
    pub id: ProductId,
    /// Its title.
    pub title: Arc<str>,
    /// Its price as shown, which may be a range.
    pub price_tag: Arc<str>,
    /// The least amount that `price_tag` names.
    #[serde(skip)]
    pub lowest_price: Cents,
    /// The greatest amount that `price_tag` names.
    #[serde(skip)]
    pub highest_price: Cents,
    /// Whether it was opened since the search bar.
    pub visited: bool,
}

/// The page of one product.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ItemPage {
    /// The goal's instruction.
    pub instruction: Arc<str>,
    /// The query of the results page before it.
    pub query: Arc<str>,
    /// The number of that results page, to which `< prev` leads.
    pub page_number: u32,
    /// Its position in the catalog.
    pub product: ProductIdx,
    /// Its id.
    pub id: ProductId,
    /// Its title.
    pub title: Arc<str>,
    /// Its price as shown, which may be a range.
    pub price_tag: Arc<str>,
    /// The least amount that `price_tag` names.
    #[serde(skip)]
    pub lowest_price: Cents,
    /// The greatest amount that `price_tag` names.
    #[serde(skip)]
    pub highest_price: Cents,
    /// The options.
    pub options: Vec<OptionList>,
    /// The selected values, in the order of selection.
    pub selection: Selection,
    /// Whether there is an `Attributes` button.
    pub shows_attributes: bool,
}

/// An option on an item page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OptionList {
    /// The option's name, such as `color`.
    pub name: Arc<str>,
    /// The values.
    pub values: Vec<OptionLabel>,
}

/// An option value on an item page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OptionLabel {
    /// The label.
    pub text: Arc<str>,
    /// Whether it is shown as selected.
    pub clicked: bool,
}

/// The page with one text about a product.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DetailPage {
    /// The goal's instruction.
    pub instruction: Arc<str>,
    /// The query of the results page before it.
    pub query: Arc<str>,
    /// The number of that results page.
    pub page_number: u32,
    /// The product's position in the catalog.
    pub product: ProductIdx,
    /// The product's id.
    pub id: ProductId,
    /// The selected values, which the URL shows.
    pub selection: Selection,
    /// The kind of the text.
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
    /// The position of the product bought.
    pub product: ProductIdx,
    /// The id of the product bought.
    pub id: ProductId,
    /// The selected values.
    pub selection: Selection,
    /// The reward, 0 to 1.
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
    /// The effect of clicking it.
    pub kind: NodeKind,
    /// The text with its white space.
    pub text: Cow<'a, str>,
    /// Whether a link or label is shown as clicked.
    pub clicked: bool,
}

/// The effect of clicking a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// No effect: text only.
    Text,
    /// A button.
    Button,
    /// Opens a product.
    Link,
    /// Selects an option value.
    Label,
}

impl<'a> Node<'a> {
    /// A node, or `None` for invisible text: empty text and white space with a line break are dropped; other
    /// white space becomes one space.
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
    fn text(&mut self, text: impl Into<Cow<'a, str>>) {
        self.0.extend(Node::new(NodeKind::Text, text, false));
    }

    fn button(&mut self, text: &'a str) {
        self.0.extend(Node::new(NodeKind::Button, text, false));
    }

    fn head(&mut self, instruction: &'a str) {
        self.text("Instruction:");
        self.text(instruction);
        self.button("Back to Search");
    }
}

impl Page {
    /// The visible pieces of text, in document order.
    pub fn nodes(&self) -> Vec<Node<'_>> {
        let mut nodes = Nodes(Vec::with_capacity(48));
        match self {
            Page::Search(page) => {
                nodes.text("WebShop");
                nodes.text("Instruction: ");
                nodes.text(&*page.instruction);
                nodes.button("Search");
            }
            Page::Results(page) => page.nodes(&mut nodes),
            Page::Item(page) => page.nodes(&mut nodes),
            Page::Detail(page) => {
                nodes.head(&page.instruction);
                nodes.button("< Prev");
                for line in &page.lines {
                    nodes.text(line);
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
        nodes.text(format!("Page {} (Total results: {})", self.page_number, self.total));
        if self.page_number > 1 {
            nodes.button("< Prev");
        }
        nodes.button("Next >");
        for item in &self.items {
            let id = item.id.as_str();
            nodes.0.extend(Node::new(NodeKind::Link, id, item.visited));
            nodes.text(&*item.title);
            nodes.text(&*item.price_tag);
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
            nodes.text(&*list.name);
            for label in &list.values {
                nodes.0.extend(Node::new(NodeKind::Label, &*label.text, label.clicked));
            }
        }
        nodes.text(&*self.title);
        nodes.text(format!("Price: {}", self.price_tag));
        nodes.text("Rating: N.A.");
        for detail in self.details() {
            nodes.button(detail.label());
        }
        nodes.button("Buy Now");
    }
}

impl DonePage {
    /// Headings of the last page whose value is always `None`.
    pub const UNKNOWN_FIELDS: [&str; 4] = ["attrs", "category", "query", "product category"];

    /// The headings of an empty table on the last page, with the original's spelling.
    pub const TARGET_FIELDS: [&str; 9] = [
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

    /// The selected values as the page shows them: JSON in the order of names, escaped for a script.
    pub fn options_text(&self) -> String {
        let mut chosen: Vec<(&str, &str)> = self.selection.iter().collect();
        chosen.sort_unstable();
        json_dict(chosen)
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
            nodes.text(text);
        }
        nodes.text(" (Paste it in your MTurk interface.)");
        for text in ["Purchased", "asin", self.id.as_str(), "options"] {
            nodes.text(text);
        }
        nodes.text(self.options_text());
        for name in DonePage::UNKNOWN_FIELDS {
            nodes.text(name);
            nodes.text("None");
        }
        for name in DonePage::TARGET_FIELDS {
            nodes.text(name);
        }
        for text in ["Goal ", "None", "Reward", "Your score (min 0.0, max 1.0)"] {
            nodes.text(text);
        }
        nodes.text(self.reward_text());
        nodes.text("Reward Details ");
        nodes.text("None");
    }
}
