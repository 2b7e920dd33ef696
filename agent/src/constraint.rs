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
//! Completions share a trie, so "one of twenty actions" costs a few decisions between a few tokens, and
//! every state before the end allows at least one token. A completion is *one* sequence of ids: other ways
//! to cut the same text into tokens are not allowed, so the probabilities of all turns sum to 1.
//!
//! It knows no page and no probability: the caller lists the completions, [`crate::Sampler`] renormalizes.

use std::sync::Arc;

use crate::error::AgentError;
use crate::tokenizer::ShopTokenizer;

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

/// Where a turn's thought begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThoughtStart {
    /// The model says the opening, or leaves the thought out.
    Offered,
    /// The model has to say the opening.
    Required,
    /// The prompt ends with the opening; the model is thinking already.
    Given,
}

/// Free writing before the action, such as `<think>…</think>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thought {
    start: ThoughtStart,
    opening: Vec<u32>,
    inside: FreeRun,
}

impl Thought {
    /// At most `max_tokens` tokens between `opening` and `closing`, which are written with special tokens
    /// spelled out. Inside, everything may be said but special tokens other than `marks` and, if there are such,
    /// the characters `forbidden` and line breaks; the first token of `closing` ends it.
    pub fn new(
        tokenizer: &ShopTokenizer,
        (opening, closing): (&str, &str),
        start: ThoughtStart,
        max_tokens: usize,
        marks: &[u32],
        forbidden: &[char],
    ) -> Result<Self, AgentError> {
        let forbidden = if forbidden.is_empty() {
            tokenizer.special_ids().to_vec()
        } else {
            breaking_out(tokenizer, forbidden)
        };
        let forbidden = forbidden.into_iter().filter(|id| !marks.contains(id)).collect();
        let inside = FreeRun::new(tokenizer.encode(closing)?, 0, max_tokens, forbidden)?;
        Ok(Self { start, opening: not_empty(tokenizer.encode(opening)?)?, inside })
    }
}

/// An action with free words in it, such as `search[…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeText {
    opening: Vec<u32>,
    inside: FreeRun,
}

impl FreeText {
    /// One to `max_tokens` tokens between `opening` and `closing`, which are written with special tokens
    /// spelled out. Inside, everything may be said but special tokens, the characters `forbidden`, line breaks and
    /// other control characters; the first token of `closing` ends it.
    pub fn new(
        tokenizer: &ShopTokenizer,
        (opening, closing): (&str, &str),
        max_tokens: usize,
        forbidden: &[char],
    ) -> Result<Self, AgentError> {
        let forbidden = breaking_out(tokenizer, forbidden);
        let inside = FreeRun::new(tokenizer.encode(closing)?, 1, max_tokens, forbidden)?;
        Ok(Self { opening: not_empty(tokenizer.encode(opening)?)?, inside })
    }
}

/// Whether a byte-level vocabulary spells a byte below the space so: line breaks, tabs and what JSON has no place for.
fn is_control(spelled: char) -> bool {
    ('\u{100}'..'\u{120}').contains(&spelled)
}

/// Special tokens, and tokens with one of these characters, a line break or another control character in them.
fn breaking_out(tokenizer: &ShopTokenizer, forbidden: &[char]) -> Vec<u32> {
    let breaks_out = |id: &u32| {
        let token = tokenizer.token(*id).unwrap_or_default();
        tokenizer.is_special(*id) || token.contains(is_control) || token.contains(forbidden)
    };
    (0..tokenizer.vocab_size() as u32).filter(breaks_out).collect()
}

/// Free tokens up to a closing sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FreeRun {
    /// Not empty.
    closing: Vec<u32>,
    min_tokens: usize,
    max_tokens: usize,
    /// What may not be said inside, without and with the end itself, ascending.
    forbidden: Vec<u32>,
    forbidden_at_first: Vec<u32>,
}

impl FreeRun {
    fn new(closing: Vec<u32>, min: usize, max: usize, mut forbidden: Vec<u32>) -> Result<Self, AgentError> {
        let closing = not_empty(closing)?;
        forbidden.retain(|id| *id != closing[0]);
        let mut forbidden_at_first = forbidden.clone();
        forbidden_at_first.push(closing[0]);
        forbidden_at_first.sort_unstable();
        Ok(Self { closing, min_tokens: min, max_tokens: max.max(min), forbidden, forbidden_at_first })
    }

    /// After `n_said` tokens inside.
    fn allowed(&self, n_said: usize) -> Allowed<'_> {
        if n_said < self.min_tokens {
            Allowed::AllBut(&self.forbidden_at_first)
        } else if n_said < self.max_tokens {
            Allowed::AllBut(&self.forbidden)
        } else {
            Allowed::Only(&self.closing[..1])
        }
    }

    /// Most tokens up to and with the closing.
    fn longest(&self) -> usize {
        self.max_tokens + self.closing.len()
    }
}

/// The language of one turn.
#[derive(Clone, Debug)]
pub struct Constraint {
    thought: Option<Arc<Thought>>,
    text: Option<Arc<FreeText>>,
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
    ) -> Result<Self, AgentError> {
        if completions.is_empty() && text.is_none() {
            return Err(AgentError::Sampling("a constraint without any admissible completion".into()));
        }
        let mut built =
            Self { thought, text, nodes: vec![Node::default()], start: Place::Node(0), actions: 0 };
        built.add_actions(completions)?;
        if let Some(thought) = built.thought.clone() {
            built.start = match thought.start {
                ThoughtStart::Given => Place::Inside(Free::Thought, 0),
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
            Place::Inside(free, _) => self.run(free).longest() + self.longest_from(self.after(free)),
            Place::Closing(..) | Place::Complete => 0,
        }
    }

    /// Puts every action under the node `self.actions`.
    fn add_actions(&mut self, completions: &[Vec<u32>]) -> Result<(), AgentError> {
        for completion in completions {
            self.add(self.actions, completion, Place::Complete)?;
        }
        if let Some(text) = self.text.clone() {
            self.add(self.actions, &text.opening, Place::Inside(Free::Text, 0))?;
        }
        Ok(())
    }

    fn add(&mut self, root: usize, ids: &[u32], leads: Place) -> Result<(), AgentError> {
        let ambiguous =
            || Err(AgentError::Sampling(format!("completion {ids:?} begins another or is begun by it")));
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

    fn run(&self, free: Free) -> &FreeRun {
        let run = match free {
            Free::Thought => self.thought.as_ref().map(|thought| &thought.inside),
            Free::Text => self.text.as_ref().map(|text| &text.inside),
        };
        run.expect("no path leads into free writing that does not exist")
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
            Place::Inside(free, n_said) => self.constraint.run(free).allowed(n_said),
            Place::Closing(free, n_said) => {
                Allowed::Only(&self.constraint.run(free).closing[n_said..=n_said])
            }
            Place::Complete => Allowed::Only(&[]),
        }
    }

    /// Takes the token that was chosen, or refuses one that is not allowed.
    pub fn advance(&mut self, id: u32) -> Result<(), AgentError> {
        if !self.allowed().contains(id) {
            return Err(AgentError::Sampling(format!("token `{id}` is not allowed here")));
        }
        let constraint = self.constraint;
        let closing = |free, n_said| {
            let is_closed = n_said == constraint.run(free).closing.len();
            if is_closed { constraint.after(free) } else { Place::Closing(free, n_said) }
        };
        self.place = match self.place {
            Place::Node(node) => {
                let node = &constraint.nodes[node];
                constraint.place_of(node.children[node.ids.partition_point(|other| *other < id)])
            }
            Place::Inside(free, _) if constraint.run(free).closing[0] == id => closing(free, 1),
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

fn not_empty(ids: Vec<u32>) -> Result<Vec<u32>, AgentError> {
    if ids.is_empty() {
        return Err(AgentError::Sampling(
            "free text needs a token that opens it and one that closes it".into(),
        ));
    }
    Ok(ids)
}

#[cfg(test)]
mod tests;
