//! Pages recorded as text, as simplified HTML.
//!
//! A [`ShownPage`] is parsed from one of the original's two text forms:
//!
//! ```text
//! rich     one piece a line; [button] … [button_] and [clicked button] … [clicked button_] around clickable pieces
//! simple   pieces joined by [SEP], without marks of clickable pieces
//! ```
//!
//! The rich form has everything that simplified HTML shows. In the simple form, buttons are recognized by
//! their labels, products by their ten letters and digits, and options by their position between `< Prev` and
//! the title. Names of option groups have the same position; they are recognized if they are the first piece
//! or in [`GROUPS`], else taken for options.

use webshop_env::{Node, NodeKind};

use crate::prompt_format::page_html;

/// A recorded page.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShownPage {
    nodes: Vec<Node<'static>>,
}

/// Separates pieces in the simple form.
const SEPARATOR: &str = "[SEP]";

/// Common names of option groups in the original's catalog.
const GROUPS: [&str; 16] = [
    "color",
    "size",
    "style",
    "flavor",
    "flavor name",
    "scent",
    "scent name",
    "pattern",
    "pattern name",
    "fit type",
    "material type",
    "item shape",
    "special size",
    "configuration",
    "number of items",
    "size name",
];

impl ShownPage {
    /// Parses either form.
    pub(super) fn read(text: &str) -> Self {
        if text.contains(SEPARATOR) { Self::simple(text) } else { Self::rich(text) }
    }

    /// The page in simplified HTML.
    pub(super) fn html(&self) -> String {
        page_html(&self.nodes, self.has_search_bar())
    }

    /// The instruction, if the page shows it.
    pub(super) fn instruction(&self) -> Option<&str> {
        let mut rest = self.nodes.iter().map(|node| node.text.as_ref());
        let heading = rest.find(|text| text.starts_with("Instruction:"))?;
        let beside = heading.trim_start_matches("Instruction:").trim();
        if beside.is_empty() { rest.next() } else { Some(beside) }
    }

    /// The product with this title.
    pub(super) fn product_titled(&self, title: &str) -> Option<&str> {
        let is_it = |pair: &&[Node<'_>]| {
            pair[0].kind == NodeKind::Link && pair[1].text.trim().eq_ignore_ascii_case(title.trim())
        };
        self.nodes.windows(2).find(is_it).map(|pair| pair[0].text.as_ref())
    }

    fn has_search_bar(&self) -> bool {
        self.nodes.iter().any(|node| node.kind == NodeKind::Button && node.text == "Search")
    }

    fn rich(text: &str) -> Self {
        // The first lines repeat the clicked labels.
        let lines = text.lines().skip_while(|line| line.starts_with("You have clicked "));
        Self { nodes: lines.filter_map(rich_node).collect() }
    }

    fn simple(text: &str) -> Self {
        let pieces: Vec<&str> =
            text.split(SEPARATOR).map(str::trim).filter(|piece| !piece.is_empty()).collect();
        let place = |wanted: &dyn Fn(&str) -> bool| pieces.iter().position(|piece| wanted(piece));
        let is_item = pieces.last() == Some(&"Buy Now");
        let is_listing = place(&|piece| piece.contains("(Total results: ")).is_some();
        // On an item page the title is the piece before the price.
        let title = place(&|piece| piece.starts_with("Price: ")).and_then(|at| at.checked_sub(1));
        let choices = match (is_item, place(&|piece| piece == "< Prev"), title) {
            (true, Some(before), Some(title)) => before + 2..title,
            _ => 0..0,
        };
        let kind = |at: usize, piece: &str| match piece {
            "Search" if at + 1 == pieces.len() => NodeKind::Button,
            "Back to Search" | "< Prev" | "Next >" => NodeKind::Button,
            "Description" | "Features" | "Reviews" | "Attributes" | "Buy Now" if is_item => NodeKind::Button,
            piece if is_listing && is_asin(piece) => NodeKind::Link,
            piece if choices.contains(&at) && !GROUPS.contains(&&*piece.to_lowercase()) => NodeKind::Label,
            _ => NodeKind::Text,
        };
        let node = |(at, piece): (usize, &&str)| Node::new(kind(at, piece), piece.to_string(), false);
        Self { nodes: pieces.iter().enumerate().filter_map(node).collect() }
    }
}

/// A line of the rich form; `None` if it is blank.
fn rich_node(line: &str) -> Option<Node<'static>> {
    let text = line.trim();
    let between = |before: &str, after: &str| Some(text.strip_prefix(before)?.strip_suffix(after)?.trim());
    let (label, is_clicked) = match between("[button]", "[button_]") {
        Some(label) => (label, false),
        None => match between("[clicked button]", "[clicked button_]") {
            Some(label) => (label, true),
            None if text.is_empty() => return None,
            None => return Node::new(NodeKind::Text, text.to_owned(), false),
        },
    };
    let kind = match line.starts_with(' ') {
        true => NodeKind::Label,
        false if is_asin(label) => NodeKind::Link,
        false => NodeKind::Button,
    };
    Node::new(kind, label.to_owned(), is_clicked)
}

/// Whether a piece is a product id.
fn is_asin(piece: &str) -> bool {
    let is_of_asin = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    piece.len() == 10 && piece.bytes().all(is_of_asin) && piece.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clickable_pieces_are_recognized_by_position() {
        let item = "Instruction: [SEP] i want tea [SEP] Back to Search [SEP] < Prev [SEP] flavor [SEP] mint [SEP] size \
                    [SEP] 1 pound [SEP] Green Tea [SEP] Price: $5.00 [SEP] Rating: N.A. [SEP] Description [SEP] \
                    Features [SEP] Reviews [SEP] Buy Now";
        let expected = "<p>Instruction:</p>\n<p>i want tea</p>\n<button name=\"back to search\">\n<button name=\"< prev\">\n\
                        <p>flavor</p>\n<option name=\"mint\">\n<p>size</p>\n<option name=\"1 pound\">\n<p>Green Tea</p>\n\
                        <p>Price: $5.00</p>\n<p>Rating: N.A.</p>\n<button name=\"description\">\n\
                        <button name=\"features\">\n<button name=\"reviews\">\n<button name=\"buy now\">\n";
        let page = ShownPage::read(item);
        assert_eq!((page.html().as_str(), page.instruction()), (expected, Some("i want tea")));
        let detail =
            "Instruction: [SEP] i want tea [SEP] Back to Search [SEP] < Prev [SEP] Buy Now or Search";
        assert_eq!(ShownPage::read(detail).html().matches("<button").count(), 2);
    }

    #[test]
    fn marks_of_the_rich_form_are_parsed() {
        let page = ShownPage::read(
            "You have clicked red.\nInstruction:\na lamp\n[button] Back to Search [button_]\ncolor\n  \
             [clicked button] red [clicked button_]\n\n[clicked button] B0LAMP0001 [clicked button_]\nLamp\n",
        );
        let expected = "<p>Instruction:</p>\n<p>a lamp</p>\n<button name=\"back to search\">\n<p>color</p>\n\
                        <option name=\"red\" clicked>\n<a name=\"b0lamp0001\" clicked>\n<p>Lamp</p>\n";
        assert_eq!(page.html(), expected);
        assert_eq!((page.product_titled("LAMP"), page.product_titled("color")), (Some("B0LAMP0001"), None));
    }
}
