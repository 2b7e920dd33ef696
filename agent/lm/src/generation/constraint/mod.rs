//! Constrained decoding: restricts the tokens of a completion to a grammar.
//!
//! A [`Constraint`] is the grammar of one turn: an optional [`Thought`], then one of the given completions or
//! a [`FreeText`] such as `search[…]`. A [`ConstraintState`] advances by one token at a time and returns the
//! [`Allowed`] tokens.
//!
//! ```text
//! turn = [ opening  token{0..=max}  closing ]  ( completion  |  opening  token{1..=max}  closing )
//!          ‾‾‾‾‾‾‾‾‾‾‾ thought ‾‾‾‾‾‾‾‾‾‾‾‾‾                    ‾‾‾‾‾‾‾‾‾‾‾ free text ‾‾‾‾‾‾‾‾‾‾‾
//! ```
//!
//! Both values of `max` come from the [`Budget`]: what a thought leaves of its own is left to the free text.
//!
//! The completions are stored in a trie. Every state before the end allows at least one token. A completion
//! is *one* sequence of ids: other tokenizations of the same text are not allowed, so the probabilities of
//! all turns sum to 1.
//!
//! This module does not compute probabilities: the [`Sampler`](crate::Sampler) renormalizes over the allowed
//! tokens.

mod free;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::error::LmError;
use crate::generation::constraint::free::FreeRun;
pub use crate::generation::constraint::free::{FreeText, Thought, ThoughtStart};

/// The set of allowed next tokens. Lists are in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed<'a> {
    /// Every id of the model.
    All,
    /// Every id below a number but for these. A model may have more ids than its tokenizer has tokens.
    BelowBut(u32, &'a [u32]),
    /// These tokens; empty after the end of the turn.
    Only(&'a [u32]),
}

impl Allowed<'_> {
    /// Whether `id` is in the set.
    pub fn contains(self, id: u32) -> bool {
        match self {
            Self::All => true,
            Self::BelowBut(n_ids, forbidden) => id < n_ids && forbidden.binary_search(&id).is_err(),
            Self::Only(ids) => ids.binary_search(&id).is_ok(),
        }
    }
}

/// Maximum lengths of the free text in a turn, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Maximum length of the thought, without its delimiters.
    pub thought: usize,
    /// Maximum length of the [`FreeText`] after the longest thought, without its delimiters; 0 means 1. After a
    /// shorter thought, or none where one is offered, it is longer by as many tokens.
    pub text: usize,
}

/// The grammar of one turn.
#[derive(Clone, Debug)]
pub struct Constraint {
    thought: Option<Arc<Thought>>,
    text: Option<Arc<FreeText>>,
    budget: Budget,
    nodes: Vec<Node>,
    start: Place,
    /// Node at which the completions after the thought start.
    actions: usize,
}

/// A node of the trie.
#[derive(Clone, Debug, Default)]
struct Node {
    /// Ascending; `children[i]` follows `ids[i]`.
    ids: Vec<u32>,
    children: Vec<usize>,
    /// The place after this node if a sequence ends here.
    next: Option<Place>,
}

/// A position in the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At a node of the trie.
    Node(usize),
    /// Inside free text, after this number of tokens.
    Inside(Free, usize),
    /// Inside the closing delimiter, after this number of its tokens.
    Closing(Free, usize),
    Complete,
}

/// The two kinds of free text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Free {
    Thought,
    Text,
}

impl Constraint {
    /// The grammar of turns that consist of an optional or required `thought`, then one of `completions` or
    /// `text`.
    ///
    /// Each completion includes the stop token. Equal completions count once. Fails if there is neither a
    /// completion nor a free text, if a completion is empty, or if one sequence is a prefix of another.
    pub fn new(
        completions: &[Vec<u32>],
        text: Option<Arc<FreeText>>,
        thought: Option<Arc<Thought>>,
        budget: Budget,
    ) -> Result<Self, LmError> {
        if completions.is_empty() && text.is_none() {
            return Err(LmError::Sampling("a constraint needs a completion or a free text".into()));
        }
        let nodes = vec![Node::default()];
        let mut built = Self { thought, text, budget, nodes, start: Place::Node(0), actions: 0 };
        built.add_actions(completions)?;
        if let Some(thought) = built.thought.clone() {
            built.start = match thought.start {
                ThoughtStart::Required => {
                    let opening = built.nodes.len();
                    built.nodes.push(Node::default());
                    built.add(opening, &thought.opening, Place::Inside(Free::Thought, 0))?;
                    Place::Node(opening)
                }
                ThoughtStart::Offered => {
                    // The node 0 has the completions and the opening. After the thought, a second copy of the
                    // completions without the opening prevents another thought.
                    built.actions = built.nodes.len();
                    built.nodes.push(Node::default());
                    built.add_actions(completions)?;
                    built.add(0, &thought.opening, Place::Inside(Free::Thought, 0))?;
                    Place::Node(0)
                }
            };
        }
        Ok(built)
    }

    /// The state before the first token.
    pub fn start(&self) -> ConstraintState<'_> {
        ConstraintState { constraint: self, place: self.start, n_tokens: 0 }
    }

    /// The number of tokens of the longest turn of the grammar.
    pub fn longest(&self) -> usize {
        self.longest_from(self.start)
    }

    fn longest_from(&self, place: Place) -> usize {
        match place {
            Place::Node(node) => {
                let children = self.nodes[node].children.iter();
                children.map(|child| 1 + self.longest_from(self.place_of(*child))).max().unwrap_or(0)
            }
            Place::Inside(free, _) => {
                let (run, max_tokens) = self.run(free);
                max_tokens + run.closing.len() + self.longest_from(self.after(free))
            }
            Place::Closing(..) | Place::Complete => 0,
        }
    }

    /// Adds every completion and the free text under the node `self.actions`.
    fn add_actions(&mut self, completions: &[Vec<u32>]) -> Result<(), LmError> {
        for completion in completions {
            self.add(self.actions, completion, Place::Complete)?;
        }
        if let Some(text) = self.text.clone() {
            self.add(self.actions, &text.opening, Place::Inside(Free::Text, 0))?;
        }
        Ok(())
    }

    /// Adds the sequence `ids` under the node `root`; `next` is the place after it.
    fn add(&mut self, root: usize, ids: &[u32], next: Place) -> Result<(), LmError> {
        let ambiguous = || {
            Err(LmError::Sampling(format!(
                "completion {ids:?} is a prefix of another or has one as its prefix"
            )))
        };
        let mut at = root;
        for id in ids {
            if self.nodes[at].next.is_some() {
                return ambiguous();
            }
            at = match self.nodes[at].ids.binary_search(id) {
                Ok(found) => self.nodes[at].children[found],
                Err(place) => {
                    let child = self.nodes.len();
                    self.nodes.push(Node::default());
                    self.nodes[at].ids.insert(place, *id);
                    self.nodes[at].children.insert(place, child);
                    child
                }
            };
        }
        let node = &mut self.nodes[at];
        if ids.is_empty() || !node.ids.is_empty() || node.next.is_some_and(|other| other != next) {
            return ambiguous();
        }
        node.next = Some(next);
        Ok(())
    }

    /// The place reached with a node: the place after it if a sequence ends there.
    fn place_of(&self, node: usize) -> Place {
        self.nodes[node].next.unwrap_or(Place::Node(node))
    }

    /// The place after the closing delimiter.
    fn after(&self, free: Free) -> Place {
        match free {
            Free::Thought => Place::Node(self.actions),
            Free::Text => Place::Complete,
        }
    }

    /// The free text of this kind and its maximum length.
    fn run(&self, free: Free) -> (&FreeRun, usize) {
        let run = match free {
            Free::Thought => self.thought.as_ref().map(|thought| (&thought.inside, self.budget.thought)),
            Free::Text => self.text.as_ref().map(|text| (&text.inside, self.budget.text.max(1))),
        };
        run.expect("places of free text exist only if the free text does")
    }

    /// The closing delimiter of this kind; not empty.
    fn closing(&self, free: Free) -> &[u32] {
        &self.run(free).0.closing
    }
}

/// A position in the grammar of a [`Constraint`] while a turn is generated.
#[derive(Clone, Copy, Debug)]
pub struct ConstraintState<'c> {
    constraint: &'c Constraint,
    place: Place,
    /// Tokens of the turn so far.
    n_tokens: usize,
}

impl<'c> ConstraintState<'c> {
    /// The allowed next tokens: at least one before the end of the turn, none after it.
    pub fn allowed(&self) -> Allowed<'c> {
        match self.place {
            Place::Node(node) => Allowed::Only(&self.constraint.nodes[node].ids),
            Place::Inside(free, n_inside) => {
                let (run, max_tokens) = self.constraint.run(free);
                run.allowed(n_inside, max_tokens + self.left_by_thought(free, n_inside))
            }
            Place::Closing(free, n_inside) => {
                Allowed::Only(&self.constraint.closing(free)[n_inside..=n_inside])
            }
            Place::Complete => Allowed::Only(&[]),
        }
    }

    /// Advances by one token. Fails, without advancing, if the token is not allowed.
    pub fn advance(&mut self, id: u32) -> Result<(), LmError> {
        if !self.allowed().contains(id) {
            return Err(LmError::Sampling(format!("token `{id}` is not allowed here")));
        }
        let constraint = self.constraint;
        let closing = |free, n_inside| {
            let is_closed = n_inside == constraint.closing(free).len();
            if is_closed { constraint.after(free) } else { Place::Closing(free, n_inside) }
        };
        self.place = match self.place {
            Place::Node(node) => {
                let node = &constraint.nodes[node];
                constraint.place_of(node.children[node.ids.partition_point(|other| *other < id)])
            }
            Place::Inside(free, _) if constraint.closing(free)[0] == id => closing(free, 1),
            Place::Inside(free, n_inside) => Place::Inside(free, n_inside + 1),
            Place::Closing(free, n_inside) => closing(free, n_inside + 1),
            Place::Complete => Place::Complete,
        };
        self.n_tokens += 1;
        Ok(())
    }

    /// The tokens that the thought has left for free text of this kind, after `n_inside` tokens of it.
    fn left_by_thought(&self, free: Free, n_inside: usize) -> usize {
        let Constraint { thought, text, budget, .. } = self.constraint;
        match (free, thought, text) {
            (Free::Text, Some(thought), Some(text)) => {
                let n_used = self.n_tokens - n_inside - text.opening.len();
                thought.n_delimiter_tokens() + budget.thought - n_used
            }
            _ => 0,
        }
    }

    /// Whether the turn is complete.
    pub fn is_complete(&self) -> bool {
        self.place == Place::Complete
    }
}
