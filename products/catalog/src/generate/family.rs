//! Products that are easily mistaken for each other.
//!
//! A [`Family`] shares kind, brand, title frame and most of its text. Its first [`Member`] is drawn
//! freely; every other is an earlier one with one thing changed.

use super::dice::{Dice, Draw};
use super::lexicon::Lexicon;
use super::words::{Department, Form, Group, Kind, Pool};

/// The property that the second sibling of successive families changes. The first always changes the title,
/// further ones what they draw; so of four siblings 40 % differ in the title, 30 % in the price, 20 % in the
/// options and 10 % in a hidden trait, in small shops too.
const SECOND: [Change; 10] = {
    use Change::{Hidden, Options, Price};
    [Options, Hidden, Price, Options, Hidden, Price, Options, Hidden, Price, Options]
};

/// In how many of 100 further siblings each [`Change`] is made, in the order of its variants.
const CHANGES: [usize; 4] = [30, 45, 20, 5];

/// The most values of a group, by the number of groups, so that no product has many combinations.
const MOST_VALUES: [usize; 4] = [0, 5, 3, 2];

/// In how many of 100 changed titles two parts exchange their second words, where there are two.
const EXCHANGE: usize = 70;

/// The endings of prices in cents.
const PRICE_ENDINGS: [i64; 6] = [99, 95, 49, 0, 50, 29];

/// No sibling costs more, in cents.
const MOST_CENTS: i64 = 40_000;

/// The least price difference of a more expensive sibling, in cents: limits lie up to $40 above a price, and
/// many of the cheaper one's should exclude the dearer.
const LEAST_STEP: i64 = 2_500;

/// The least that a price is of any cheaper sibling's, in percent.
const LEAST_PERCENT: i64 = 120;

/// The forms of the traits in a title, and in how many of 100 families.
const SHOWN: [(usize, &[Form]); 7] = [
    (30, &[Form::Has, Form::Has]),
    (33, &[Form::Is, Form::Has, Form::Has]),
    (10, &[Form::Is, Form::Has]),
    (8, &[Form::Is, Form::Is]),
    (6, &[Form::Is, Form::For]),
    (6, &[Form::Has, Form::For]),
    (7, &[Form::Is, Form::Is, Form::Has]),
];

/// A property of a product that an instruction may require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trait {
    pub form: Form,
    pub text: &'static str,
}

/// An option group of one product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub name: &'static str,
    pub phrases: &'static [&'static str],
    pub values: Vec<&'static str>,
}

/// The properties of one product of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// In the title.
    pub shown: Vec<Trait>,
    /// In a later bullet or the description only.
    pub hidden: Vec<Trait>,
    pub cents: i64,
    pub choices: Vec<Choice>,
}

/// The property that differs between a sibling and the member it was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Shown,
    Price,
    Options,
    Hidden,
}

/// About five products of one kind and brand.
pub(super) struct Family {
    pub department: &'static Department,
    pub kind: &'static Kind,
    pub brand: String,
    pub audience: Option<&'static str>,
    pub material: Option<&'static str>,
    pub tail: Option<&'static str>,
    pub purpose: &'static str,
    /// Which arrangement of the title.
    pub frame: usize,
    pub members: Vec<Member>,
}

impl Family {
    pub(super) fn draw(lexicon: &Lexicon, index: usize, size: usize) -> Self {
        let (department, kind) = lexicon.kind(index);
        let mut dice = Dice::new(lexicon.seed, Draw::Family, &[index]);
        let first = first_member(lexicon, kind, lexicon.n_groups(index), &mut dice);
        let sized =
            first.choices.iter().any(|choice| ["size", "pack", "length", "weight"].contains(&choice.name));
        let mut maybe = |list: &'static [&'static str], percent| {
            let wanted = dice.chance(percent) && !list.is_empty();
            wanted.then(|| dice.pick(list))
        };
        let audience = maybe(kind.audiences, 100);
        let material = maybe(kind.materials, 60);
        let tail = maybe(kind.tails, if sized { 0 } else { 50 });
        let mut family = Self {
            department,
            kind,
            brand: lexicon.brand(index).into(),
            audience,
            material,
            tail,
            purpose: dice.pick(department.uses),
            frame: dice.below(3),
            members: vec![first],
        };
        while family.members.len() < size {
            let planned = match family.members.len() {
                1 => Some(Change::Shown),
                2 => Some(SECOND[(index + index / SECOND.len()) % SECOND.len()]),
                _ => None,
            };
            let sibling = family.sibling(planned, lexicon, &mut dice);
            family.members.push(sibling);
        }
        family
    }

    /// A member like an earlier one but for one thing, the planned one if that can be done, and unlike
    /// all others.
    fn sibling(&self, mut planned: Option<Change>, lexicon: &Lexicon, dice: &mut Dice) -> Member {
        loop {
            let drawn =
                [Change::Shown, Change::Price, Change::Options, Change::Hidden][dice.weighted(&CHANGES)];
            let change = planned.take().unwrap_or(drawn);
            let mut member = self.members[dice.below(self.members.len())].clone();
            match change {
                Change::Shown => self.change_shown(&mut member, lexicon, dice),
                Change::Price => member.cents = other_price(member.cents, dice),
                Change::Options => change_options(&mut member, lexicon, self.kind, dice),
                Change::Hidden => self.change_hidden(&mut member, lexicon, dice),
            }
            if !self.members.contains(&member) && self.is_clearly_priced(&member) {
                return member;
            }
        }
    }

    /// Whether its price is that of a sibling, or far from those of all.
    fn is_clearly_priced(&self, member: &Member) -> bool {
        let is_far = |one: i64, other: i64| 100 * one.max(other) >= LEAST_PERCENT * one.min(other);
        let mut prices = self.members.iter().map(|sibling| sibling.cents);
        prices.clone().any(|cents| cents == member.cents) || prices.all(|cents| is_far(cents, member.cents))
    }

    /// Exchanges the second words of two parts, or replaces one trait.
    fn change_shown(&self, member: &mut Member, lexicon: &Lexicon, dice: &mut Dice) {
        if dice.chance(EXCHANGE) && exchange(&mut member.shown, lexicon, self.kind) {
            return;
        }
        let at = dice.below(member.shown.len());
        if let Some(other) = self.other_trait(member, member.shown[at], lexicon, dice) {
            member.shown[at] = other;
        }
    }

    fn change_hidden(&self, member: &mut Member, lexicon: &Lexicon, dice: &mut Dice) {
        let at = dice.below(member.hidden.len());
        if let Some(other) = self.other_trait(member, member.hidden[at], lexicon, dice) {
            member.hidden[at] = other;
        }
    }

    /// A trait that replaces `old`.
    fn other_trait(&self, member: &Member, old: Trait, lexicon: &Lexicon, dice: &mut Dice) -> Option<Trait> {
        let all = member.shown.iter().chain(&member.hidden).copied();
        let others: Vec<_> = all.filter(|one| *one != old).collect();
        draw_trait(lexicon, self.kind, old.form, &others, dice)
    }

    /// Whether some member does not offer `value` in the group called `name`.
    pub(super) fn is_rare(&self, name: &str, value: &str) -> bool {
        let offers = |choice: &Choice| choice.name == name && choice.values.contains(&value);
        !self.members.iter().all(|member| member.choices.iter().any(offers))
    }

    /// The number of members without `wanted`, which an instruction with it excludes.
    pub(super) fn n_without(&self, wanted: Trait) -> usize {
        let has = |member: &&Member| member.shown.contains(&wanted) || member.hidden.contains(&wanted);
        self.members.len() - self.members.iter().filter(has).count()
    }
}

fn first_member(lexicon: &Lexicon, kind: &'static Kind, n_groups: usize, dice: &mut Dice) -> Member {
    let weights = SHOWN.map(|(weight, _)| weight);
    let shown_forms = SHOWN[dice.weighted(&weights)].1;
    let n_hidden = 1 + dice.below(2);
    let hidden_forms = dice.sample(&[Form::Is, Form::Has, Form::For], n_hidden);
    let mut traits: Vec<Trait> = Vec::new();
    for &form in shown_forms.iter().chain(&hidden_forms) {
        traits.extend(draw_trait(lexicon, kind, form, &traits, dice));
    }
    let hidden = traits.split_off(shown_forms.len());
    let n_groups = n_groups.min(kind.groups.len());
    let mut groups = dice.sample(kind.groups, n_groups);
    // Pages list groups in the kind's order, whichever of them a family has.
    groups.sort_by_key(|group| kind.groups.iter().position(|known| std::ptr::eq(*known, *group)));
    let choices = groups.into_iter().map(|group| draw_choice(lexicon, group, n_groups, dice));
    let choices = choices.collect();
    Member { shown: traits, hidden, cents: first_price(kind, dice), choices }
}

/// Turns "rubber sole, mesh lining" into "mesh sole, rubber lining"; false if there are no such two.
fn exchange(shown: &mut [Trait], lexicon: &Lexicon, kind: &'static Kind) -> bool {
    let Some(pool) = kind.pools.into_iter().find(|pool| pool.is_grid) else {
        return false;
    };
    let known = lexicon.traits(pool);
    let mut places = (0..shown.len()).filter(|&at| known.contains(&shown[at].text));
    let (Some(one), Some(other)) = (places.next(), places.next()) else {
        return false;
    };
    let halves = |at: usize| shown[at].text.split_once(' ');
    let (Some((a, b)), Some((c, d))) = (halves(one), halves(other)) else {
        return false;
    };
    let find =
        |first: &str, second: &str| known.iter().find(|text| text.split_once(' ') == Some((first, second)));
    let (Some(new_one), Some(new_other)) = (find(c, b), find(a, d)) else {
        return false;
    };
    (shown[one].text, shown[other].text) = (new_one, new_other);
    true
}

fn draw_trait(
    lexicon: &Lexicon,
    kind: &'static Kind,
    form: Form,
    taken: &[Trait],
    dice: &mut Dice,
) -> Option<Trait> {
    let pool = kind.pools.into_iter().find(|pool| pool.form == form)?;
    let free: Vec<_> = lexicon
        .traits(pool)
        .iter()
        .map(|&text| Trait { form, text })
        .filter(|candidate| taken.iter().all(|one| !resembles(pool, *one, *candidate)))
        .collect();
    (!free.is_empty()).then(|| dice.pick(&free))
}

/// Whether two traits are equal or, in a grid, in the same row or column; no product has two such traits.
fn resembles(pool: &Pool, one: Trait, other: Trait) -> bool {
    let share = |(a, b): (&str, &str), (c, d): (&str, &str)| a == c || b == d;
    one == other
        || pool.is_grid
            && one.form == other.form
            && matches!((one.text.split_once(' '), other.text.split_once(' ')), (Some(x), Some(y)) if share(x, y))
}

fn draw_choice(lexicon: &Lexicon, group: &'static Group, n_groups: usize, dice: &mut Dice) -> Choice {
    let known = lexicon.values(group);
    let most = MOST_VALUES[n_groups].min((known.len() / 2).max(2));
    let n_values = dice.between(2, most as i64) as usize;
    let mut values = dice.sample(known, n_values);
    in_order(&mut values, group);
    Choice { name: group.name, phrases: group.phrases, values }
}

/// Replaces the values of one group by others, at most one of them kept.
fn change_options(member: &mut Member, lexicon: &Lexicon, kind: &'static Kind, dice: &mut Dice) {
    if member.choices.is_empty() {
        return;
    }
    let at = dice.below(member.choices.len());
    let choice = &mut member.choices[at];
    let Some(group) = kind.groups.iter().find(|group| group.name == choice.name) else {
        return;
    };
    let known = lexicon.values(group).iter().copied();
    let free: Vec<_> = known.filter(|value| !choice.values.contains(value)).collect();
    let n_new = choice.values.len() - dice.below(2);
    let new = dice.sample(&free, n_new);
    dice.shuffle(&mut choice.values);
    choice.values.truncate(choice.values.len() - new.len());
    choice.values.extend(new);
    in_order(&mut choice.values, group);
}

/// Sellers list sizes from small to large, so values keep the order of their group.
fn in_order(values: &mut [&'static str], group: &Group) {
    values.sort_by_key(|value| group.values.iter().position(|known| known == value));
}

fn first_price(kind: &Kind, dice: &mut Dice) -> i64 {
    let (low, high) = kind.dollars;
    (dice.between(low, high) - 1) * 100 + dice.pick(&PRICE_ENDINGS)
}

/// Clearly more than before, or clearly less where more would be too much.
fn other_price(cents: i64, dice: &mut Dice) -> i64 {
    let percent = dice.between(140, 300);
    let dearer = (cents * percent / 100).max(cents + LEAST_STEP);
    let dollars = if dearer > MOST_CENTS { cents / percent } else { dearer / 100 };
    dollars.max(1) * 100 + dice.pick(&PRICE_ENDINGS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::generate::words::DEPARTMENTS;
    use crate::seed::Seed;

    #[test]
    fn two_parts_exchange_their_second_words() {
        let lexicon = Lexicon::new(Seed(0), 1_000);
        let kinds = DEPARTMENTS.iter().flat_map(|department| department.kinds);
        let boots = kinds.into_iter().find(|kind| kind.query == "hiking boots").unwrap();
        let part = |text| Trait { form: Form::Has, text };
        let mut shown = [part("rubber sole"), part("mesh lining")];
        assert!(exchange(&mut shown, &lexicon, boots));
        assert_eq!(shown, [part("mesh sole"), part("rubber lining")]);
        assert!(!exchange(&mut shown[..1], &lexicon, boots));
    }

    #[test]
    fn siblings_are_all_different() {
        let lexicon = Lexicon::new(Seed(3), 40);
        for index in 0..40 {
            let family = Family::draw(&lexicon, index, 6);
            for (at, member) in family.members.iter().enumerate() {
                assert!(!family.members[..at].contains(member));
            }
        }
    }

    #[test]
    fn grids_are_square_and_groups_of_a_kind_have_different_names() {
        for kind in DEPARTMENTS.iter().flat_map(|department| department.kinds) {
            for pool in kind.pools.iter().filter(|pool| pool.is_grid) {
                let side = pool.texts.len().isqrt();
                for (at, text) in pool.texts.iter().enumerate() {
                    let (row, column) = (pool.texts[at / side * side], pool.texts[at % side]);
                    let words = (row.split_once(' ').unwrap().0, column.split_once(' ').unwrap().1);
                    assert_eq!(text.split_once(' '), Some(words));
                }
            }
            let names: BTreeSet<_> = kind.groups.iter().map(|group| group.name).collect();
            assert_eq!(names.len(), kind.groups.len(), "{}", kind.query);
        }
    }
}
