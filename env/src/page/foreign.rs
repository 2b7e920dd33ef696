//! Reads a page back from HTML, of this shop or of the original.
//!
//! [`read_html`] converts a document into a [`ForeignPage`]: its visible pieces of text, its available
//! actions and their requests ([`Links`]), found by the markup that both sites share (see
//! [`crate::Page::html`]). It serves to act on a real shop's site, and to test that all views of a page
//! agree.
//!
//! It guesses no fields such as title or price: a foreign page has texts and labels only. Two texts, the
//! instruction and the score, are found by the text before them.

mod links;

pub use links::{Link, Links, Method};

use crate::page::available_actions::AvailableActions;
use crate::page::text::{rich_text, simple_text};
use crate::page::{Node, NodeKind};
use scraper::node::Element;
use scraper::{ElementRef, Html, Node as HtmlNode, Selector};
use std::sync::LazyLock;

/// The text before the instruction.
const INSTRUCTION: &str = "Instruction:";

/// The text before the score.
const SCORE: &str = "Your score (min 0.0, max 1.0)";

/// The visible content of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignPage {
    /// The visible pieces of text, in document order.
    pub nodes: Vec<Node<'static>>,
    /// The available actions.
    pub available_actions: AvailableActions,
    /// The requests of the actions.
    pub links: Links,
}

impl ForeignPage {
    /// The instruction, on the pages that show it.
    pub fn instruction(&self) -> Option<&str> {
        let is_heading = |node: &Node<'_>| node.text.trim_start().starts_with(INSTRUCTION);
        let at = self.nodes.iter().position(is_heading)?;
        // Heading and instruction are one text if there is no line break between them.
        let rest = self.nodes[at].text.trim().trim_start_matches(INSTRUCTION).trim();
        if rest.is_empty() { self.nodes.get(at + 1).map(|node| node.text.as_ref()) } else { Some(rest) }
    }

    /// The reward, 0 to 1, on the page after the purchase.
    pub fn score(&self) -> Option<f64> {
        if self.available_actions != AvailableActions::default() {
            return None;
        }
        let at = self.nodes.iter().position(|node| node.text.trim() == SCORE)?;
        let score: f64 = self.nodes.get(at + 1)?.text.trim().parse().ok()?;
        (0.0..=1.0).contains(&score).then_some(score)
    }

    /// The page as [`crate::Page::text`] writes it.
    pub fn text(&self) -> String {
        simple_text(&self.nodes)
    }

    /// The page as [`crate::Page::text_rich`] writes it.
    pub fn text_rich(&self) -> String {
        rich_text(&self.nodes)
    }
}

/// Reads any text as an HTML document; malformed HTML is read as browsers read it.
pub fn read_html(document: &str) -> ForeignPage {
    let html = Html::parse_document(document);
    ForeignPage {
        nodes: visible_nodes(&html),
        available_actions: available_actions(&html),
        links: Links::read(&html),
    }
}

fn visible_nodes(html: &Html) -> Vec<Node<'static>> {
    let mut nodes = Vec::new();
    for node in html.tree.root().descendants() {
        let HtmlNode::Text(text) = node.value() else {
            continue;
        };
        let parent = node.parent().and_then(ElementRef::wrap);
        let Some(parent) = parent.filter(|parent| is_visible(parent.value())) else {
            continue;
        };
        let (kind, clicked) = kind_of(parent);
        nodes.extend(Node::new(kind, text.to_string(), clicked));
    }
    nodes
}

fn is_visible(parent: &Element) -> bool {
    !matches!(parent.name(), "style" | "script" | "head" | "title" | "meta")
}

fn kind_of(parent: ElementRef<'_>) -> (NodeKind, bool) {
    let element = parent.value();
    let has_class = |name| element.classes().any(|class| class == name);
    match element.name() {
        "button" => (NodeKind::Button, false),
        "label" => (NodeKind::Label, is_checked(parent)),
        _ if has_class("product-link") => (NodeKind::Link, has_class("visited")),
        _ => (NodeKind::Text, false),
    }
}

/// Whether the radio input before a label is the chosen one.
fn is_checked(label: ElementRef<'_>) -> bool {
    let input = label.prev_siblings().find_map(ElementRef::wrap);
    input.is_some_and(|input| input.value().attr("checked").is_some())
}

/// Selectors of the search bar, buttons, links to products, and values.
fn select() -> &'static [Selector; 4] {
    static HOOKS: LazyLock<[Selector; 4]> = LazyLock::new(|| {
        ["#search_input", ".btn", ".product-link", "input[type=radio]"]
            .map(|selector| Selector::parse(selector).expect("the selectors are constants and valid"))
    });
    &HOOKS
}

fn available_actions(html: &Html) -> AvailableActions {
    let [search_bar, buttons, links, radios] = select();
    let labels =
        |selector| html.select(selector).map(|element| element.text().collect::<String>().to_lowercase());
    let values = html.select(radios).map(|radio| radio.value().attr("value").unwrap_or_default().to_owned());
    AvailableActions::collect(
        html.select(search_bar).next().is_some(),
        labels(buttons).chain(labels(links)).chain(values),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_the_original_is_read() {
        let page = read_html(
            "<!doctype html><html><head><title>unseen</title><style>p { }</style></head><body>\n\
             <div id='instruction-text'><h4>Instruction:<br>buy a lamp</h4></div>\n\
             <form><button type='submit' class='btn btn-info'>Back to Search</button></form>\n\
             <h4>color</h4>\n\
             <div><input type='radio' name='color' value='a &amp; b'><label>a &amp; b</label>\n\
             <input type='radio' name='color' value='red' checked><label>red</label></div>\n\
             <a class='product-link' href='/?k=v'>B0LAMP0001</a><h4 class='product-title'>Lamp</h4>\n\
             <script>unseen()</script><!-- unseen --> <b> </b></body></html>",
        );
        assert_eq!(
            page.text_rich(),
            "You have clicked red.\nInstruction:\nbuy a lamp\n[button] Back to Search [button_]\ncolor\n  \
             [button] a & b [button_]\n  [clicked button] red [clicked button_]\n\n\
             [button] B0LAMP0001 [button_]\nLamp\n \n \n"
        );
        let labels = ["back to search", "b0lamp0001", "a & b", "red"];
        assert_eq!(page.available_actions.clickables, labels);
        assert!(!page.available_actions.has_search_bar);
        assert_eq!((page.instruction(), page.score()), (Some("buy a lamp"), None));
    }

    #[test]
    fn the_instruction_may_follow_its_heading() {
        let page = read_html("<h4>Instruction: buy a lamp</h4><button class='btn'>Search</button>");
        assert_eq!(page.instruction(), Some("buy a lamp"));
        assert_eq!(read_html("<h4>buy a lamp</h4>").instruction(), None);
    }

    #[test]
    fn the_score_is_read_from_a_page_without_actions() {
        let score = "<h3>Your score (min 0.0, max 1.0)<pre>0.75</pre></h3>";
        assert_eq!(read_html(score).score(), Some(0.75));
        assert_eq!(read_html(&format!("{score}<button class='btn'>Next ></button>")).score(), None);
        assert_eq!(read_html(&score.replace("0.75", "7")).score(), None);
    }

    #[test]
    fn a_search_bar_is_found_by_its_id() {
        let page = read_html("<input id='search_input'><button class='btn'>Search</button>");
        assert!(page.available_actions.has_search_bar);
        assert_eq!(page.available_actions.clickables, ["search"]);
    }

    #[test]
    fn any_text_is_read_as_a_document() {
        assert_eq!(read_html("").nodes, []);
        assert_eq!(read_html("<p>a<p>b").text(), "a [SEP] b");
    }
}
