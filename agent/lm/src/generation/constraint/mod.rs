//! Which tokens may come next, so that only admissible actions can be said.
//!
//! A [`Constraint`] is the language of one turn: an optional free [`Thought`], then one of the given
//! completions, or free text in a [`FreeText`] such as `search[…]`. A [`ConstraintState`] walks it token by
//! token: it says what is [`Allowed`] and is told what was chosen.
//!
//! ```text
//! turn = [ opening  token{0..=max}  closing ]  ( completion  |  opening  token{1..=max}  closing )
//!          ‾‾‾‾‾‾‾‾‾‾‾ thought ‾‾‾‾‾‾‾‾‾‾‾‾‾                    ‾‾‾‾‾‾‾‾‾‾‾ free text ‾‾‾‾‾‾‾‾‾‾‾
//! ```
//!
//! Both `max` are the [`Budget`]'s.
//!
//! Completions share a trie, so "one of twenty actions" costs a few decisions between a few tokens, and
//! every state before the end allows at least one token. A completion is *one* sequence of ids: other ways
//! to cut the same text into tokens are not allowed, so the probabilities of all turns sum to 1.
//!
//! It knows no page and no probability: the caller lists the completions, [`crate::generation::sampler::Sampler`] renormalizes.

pub mod free;
#[cfg(test)]
mod tests;


use std::sync::Arc;

use crate::generation::constraint::free::FreeRun;
pub use crate::generation::constraint::free::{FreeText, Thought, ThoughtStart};
use crate::error::LmError;

/// The tokens that may come next. Both lists ascend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed<'a> {
    /// Every token of the vocabulary but these.
    AllBut(&'a [u32]),
    /// These tokens; none once the turn is complete.
    Only(&'a [u32]),
}

impl Allowed<'_> {
    /// Whether `id` may come next.
    pub fn contains(self, id: u32) -> bool {
        match self {
            Self::AllBut(ids) => ids.binary_search(&id).is_err(),
            Self::Only(ids) => ids.binary_search(&id).is_ok(),
        }
    }
}

/// How much may be written freely in one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Most tokens of the thought, what opens and closes it apart.
    pub thought: usize,
    /// Most tokens of the free text, likewise; one may be said in any case.
    pub words: usize,
}

/// The language of one turn.
#[derive(Clone, Debug)]
pub struct Constraint {
    thought: Option<Arc<Thought>>,
    text: Option<Arc<FreeText>>,
    budget: Budget,
    nodes: Vec<Node>,
    start: Place,
    /// Node from which actions are said.
    actions: usize,
}

/// A place in the trie.
#[derive(Clone, Debug, Default)]
struct Node {
    /// Ascending; `children[i]` follows `ids[i]`.
    ids: Vec<u32>,
    children: Vec<usize>,
    /// What the path to here leads to, if it ends here.
    leads: Option<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Node(usize),
    /// In free writing, after this many tokens.
    Inside(Free, usize),
    /// In its closing, after this many tokens.
    Closing(Free, usize),
    Complete,
}

/// The two places of free writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Free {
    Thought,
    Text,
}

impl Constraint {
    /// The turns that say one of `completions`, or the free text, after a thought or without.
    ///
    /// Completions end with what ends a turn. Equal ones count once. It is an error if there is nothing to
    /// say, or if one way to speak is the beginning of another, since a turn must know when it is over.
    pub fn new(
        completions: &[Vec<u32>],
        text: Option<Arc<FreeText>>,
        thought: Option<Arc<Thought>>,
        budget: Budget,
    ) -> Result<Self, LmError> {
        if completions.is_empty() && text.is_none() {
            return Err(LmError::Sampling("a constraint without any admissible completion".into()));
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
                    // The actions once more, beside the opening: after the thought there is no second one.
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
        ConstraintState { constraint: self, place: self.start }
    }

    /// Tokens of the longest turn: with that many allowed, every turn comes to its end.
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

    /// Puts every action under the node `self.actions`.
    fn add_actions(&mut self, completions: &[Vec<u32>]) -> Result<(), LmError> {
        for completion in completions {
            self.add(self.actions, completion, Place::Complete)?;
        }
        if let Some(text) = self.text.clone() {
            self.add(self.actions, &text.opening, Place::Inside(Free::Text, 0))?;
        }
        Ok(())
    }

    fn add(&mut self, root: usize, ids: &[u32], leads: Place) -> Result<(), LmError> {
        let ambiguous =
            || Err(LmError::Sampling(format!("completion {ids:?} begins another or is begun by it")));
        let mut at = root;
        for id in ids {
            if self.nodes[at].leads.is_some() {
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
        if ids.is_empty() || !node.ids.is_empty() || node.leads.is_some_and(|other| other != leads) {
            return ambiguous();
        }
        node.leads = Some(leads);
        Ok(())
    }

    /// Where one is at a node of the trie.
    fn place_of(&self, node: usize) -> Place {
        self.nodes[node].leads.unwrap_or(Place::Node(node))
    }

    /// Where one is when free writing is closed.
    fn after(&self, free: Free) -> Place {
        match free {
            Free::Thought => Place::Node(self.actions),
            Free::Text => Place::Complete,
        }
    }

    /// What is written in this place, and how much of it.
    fn run(&self, free: Free) -> (&FreeRun, usize) {
        let run = match free {
            Free::Thought => self.thought.as_ref().map(|thought| (&thought.inside, self.budget.thought)),
            Free::Text => self.text.as_ref().map(|text| (&text.inside, self.budget.words.max(1))),
        };
        run.expect("no path leads into free writing that does not exist")
    }

    /// What ends the writing in this place.
    fn closing(&self, free: Free) -> &[u32] {
        &self.run(free).0.closing
    }
}

/// How far a turn has come.
#[derive(Clone, Copy, Debug)]
pub struct ConstraintState<'c> {
    constraint: &'c Constraint,
    place: Place,
}

impl<'c> ConstraintState<'c> {
    /// What may come next: at least one token until the turn is complete, then none.
    pub fn allowed(&self) -> Allowed<'c> {
        match self.place {
            Place::Node(node) => Allowed::Only(&self.constraint.nodes[node].ids),
            Place::Inside(free, n_said) => {
                let (run, max_tokens) = self.constraint.run(free);
                run.allowed(n_said, max_tokens)
            }
            Place::Closing(free, n_said) => Allowed::Only(&self.constraint.closing(free)[n_said..=n_said]),
            Place::Complete => Allowed::Only(&[]),
        }
    }

    /// Takes the token that was chosen, or refuses one that is not allowed.
    pub fn advance(&mut self, id: u32) -> Result<(), LmError> {
        if !self.allowed().contains(id) {
            return Err(LmError::Sampling(format!("token `{id}` is not allowed here")));
        }
        let constraint = self.constraint;
        let closing = |free, n_said| {
            let is_closed = n_said == constraint.closing(free).len();
            if is_closed { constraint.after(free) } else { Place::Closing(free, n_said) }
        };
        self.place = match self.place {
            Place::Node(node) => {
                let node = &constraint.nodes[node];
                constraint.place_of(node.children[node.ids.partition_point(|other| *other < id)])
            }
            Place::Inside(free, _) if constraint.closing(free)[0] == id => closing(free, 1),
            Place::Inside(free, n_said) => Place::Inside(free, n_said + 1),
            Place::Closing(free, n_said) => closing(free, n_said + 1),
            Place::Complete => Place::Complete,
        };
        Ok(())
    }

    /// Whether the turn is over.
    pub fn is_complete(&self) -> bool {
        self.place == Place::Complete
    }
}
