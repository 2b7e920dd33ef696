//! A page as text, in the original's two forms.
//!
//! [`simple_text`] strips the nodes and joins them with `[SEP]`; [`rich_text`] gives each its own
//! line and marks clickable and clicked pieces. Both work on nodes, whether these come
//! from a [`Page`] or were read from HTML.

use crate::page::{Node, NodeKind, Page};
use webshop_pycompat::strip;

/// The separator of a simple text.
pub(crate) const SEPARATOR: &str = " [SEP] ";

impl Page {
    /// The visible text, its pieces stripped and joined by ` [SEP] `.
    pub fn text(&self) -> String {
        simple_text(&self.nodes())
    }

    /// The visible text, a line per piece: `[button] … [button_]` around clickable pieces,
    /// `[clicked button] … [clicked button_]` around clicked ones, and first a line
    /// `You have clicked ….` per chosen option, the last shown first.
    pub fn text_rich(&self) -> String {
        rich_text(&self.nodes())
    }
}

pub(crate) fn simple_text(nodes: &[Node<'_>]) -> String {
    let n_bytes = nodes.iter().map(|node| SEPARATOR.len() + node.text.len()).sum();
    let mut text = String::with_capacity(n_bytes);
    for (at, node) in nodes.iter().enumerate() {
        if at > 0 {
            text.push_str(SEPARATOR);
        }
        text.push_str(strip(&node.text));
    }
    text
}

pub(crate) fn rich_text(nodes: &[Node<'_>]) -> String {
    let mut text = String::with_capacity(2048);
    for node in nodes.iter().rev().filter(|node| is_chosen(node)) {
        push_all(&mut text, &["You have clicked ", &node.text, ".\n"]);
    }
    for node in nodes {
        let (before, after) = match (node.kind, node.clicked) {
            (NodeKind::Text, _) => ("", ""),
            (NodeKind::Button, _) => ("[button] ", " [button_]"),
            (NodeKind::Link, false) => ("\n[button] ", " [button_]"),
            (NodeKind::Link, true) => ("\n[clicked button] ", " [clicked button_]"),
            (NodeKind::Label, false) => ("  [button] ", " [button_]"),
            (NodeKind::Label, true) => ("  [clicked button] ", " [clicked button_]"),
        };
        push_all(&mut text, &[before, &node.text, after, "\n"]);
    }
    text
}

fn is_chosen(node: &Node<'_>) -> bool {
    node.kind == NodeKind::Label && node.clicked
}

fn push_all(text: &mut String, pieces: &[&str]) {
    for piece in pieces {
        text.push_str(piece);
    }
}
