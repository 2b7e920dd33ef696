//! Option groups of a family and of its members.
//!
//! A [`Range`] is what a family offers in one group, a [`Choice`] what one member offers of it. The number of
//! values is a least number and a geometric draw, with a tail to [`MOST_VALUES`].

use super::dice::Dice;
use super::words::Group;

/// The most values of a group. The original's 1,000 products have 45.
const MOST_VALUES: usize = 45;

/// The fewest values of a range, of which a member offers most.
const LEAST: usize = 5;

/// In how many of 100 draws a range has a further value, and in how many of 100 ranges the tail is long.
const FURTHER: usize = 70;
const LONG: usize = 8;
const FURTHER_IF_LONG: usize = 95;

/// In how many of 100 draws a value is a head in a form rather than a head that is new.
const FORMED: usize = 12;

/// In how many of 100 cases a member offers a value of its family.
const OFFERED: usize = 70;

const LEAST_OFFERED: usize = 3;

/// The number of draws that find a new value.
const N_TRIES: usize = 40;

/// What a family offers in one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub group: &'static Group,
    values: Vec<String>,
}

/// An option group of one product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub name: &'static str,
    pub phrases: &'static [&'static str],
    pub values: Vec<String>,
}

impl PartialEq for Group {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Group {}

impl Range {
    pub(super) fn draw(group: &'static Group, dice: &mut Dice) -> Self {
        let further = if dice.chance(LONG) { FURTHER_IF_LONG } else { FURTHER };
        let n_values = LEAST + dice.geometric(further, MOST_VALUES - LEAST);
        // Each value with the head it was made of.
        let mut values: Vec<(usize, String)> = Vec::with_capacity(n_values);
        for _ in 0..N_TRIES * n_values {
            if values.len() == n_values {
                break;
            }
            let value = draw_value(group, &values, dice);
            if values.iter().all(|(_, known)| *known != value.1) {
                values.push(value);
            }
        }
        if group.is_ordered {
            values.sort_by_key(|(head, value)| (*head, value.len()));
        }
        Self { group, values: values.into_iter().map(|(_, value)| value).collect() }
    }

    /// What one member offers: most of the values, at least [`LEAST_OFFERED`] of them if there are so many.
    pub(super) fn choice(&self, dice: &mut Dice) -> Choice {
        let mut is_offered: Vec<bool> = self.values.iter().map(|_| dice.chance(OFFERED)).collect();
        let least = LEAST_OFFERED.min(is_offered.len());
        while is_offered.iter().filter(|offered| **offered).count() < least {
            let at = dice.below(is_offered.len());
            is_offered[at] = true;
        }
        let offered = self.values.iter().zip(is_offered).filter(|(_, offered)| *offered);
        let values = offered.map(|(value, _)| value.clone()).collect();
        Choice { name: self.group.name, phrases: self.group.phrases, values }
    }
}

/// A head, or a form of one that is there already.
fn draw_value(group: &Group, values: &[(usize, String)], dice: &mut Dice) -> (usize, String) {
    let is_formed = !values.is_empty() && dice.chance(FORMED);
    if !is_formed {
        let head = dice.below(group.heads.len());
        return (head, group.heads[head].to_owned());
    }
    let (head, _) = &values[dice.below(values.len())];
    let other = group.heads[(head + 1 + dice.below(group.heads.len() - 1)) % group.heads.len()];
    let text = dice.pick(group.forms).replace("{+}", other);
    let text = text.replace("{n}", &dice.between(1, 30).to_string()).replace("{}", group.heads[*head]);
    (*head, text)
}
