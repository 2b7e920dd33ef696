//! Draws the products of a family: what titles show and bullets hide, prices, options and titles.
//!
//! A member has up to four traits of its own, at most one of them in its title, and two that all members share.

use super::choice::Range;
use super::coined;
use super::dice::{Dice, Draw};
use super::family::{Family, Member, Trait};
use super::lexicon::Lexicon;
use super::title;
use super::words::{Form, Kind, Pool};

/// The endings of prices in cents.
const PRICE_ENDINGS: [i64; 6] = [99, 95, 49, 0, 50, 29];

/// In how many of 100 members the price is far from the family's.
const FAR_PRICED: usize = 32;

/// In how many of 100 families every title has a trait, and in how many of 100 members its own title has one.
const SHOWN_BY_ALL: usize = 35;
const SHOWN: usize = 60;

/// In how many of 100 families two members share their title.
const TWINS: usize = 20;

/// In how many of 100 families titles name a material.
const MATERIAL: usize = 50;

impl Family {
    pub(super) fn draw(lexicon: &Lexicon, index: usize, size: usize) -> Self {
        let (department, kind, variant) = lexicon.kind(index);
        let mut dice = Dice::new(lexicon.seed, Draw::Family, &[index]);
        let by_material = kind.audiences.is_empty();
        let material = (!by_material && !kind.materials.is_empty() && dice.chance(MATERIAL))
            .then(|| dice.pick(kind.materials));
        let query = variant.map_or_else(|| kind.query.into(), |variant| format!("{variant} {}", kind.query));
        let mut family = Self {
            department,
            kind,
            variant,
            query,
            brand: coined::word(&mut dice),
            material,
            purpose: dice.pick(department.uses),
            members: Vec::new(),
        };
        let n_groups = lexicon.n_groups(index).min(kind.groups.len());
        let ranges = ranges(kind, n_groups, &mut dice);
        let traits = family.deal(size, &mut dice);
        let base = price(kind, &mut dice);
        for (shown, hidden) in traits {
            let cents = if dice.chance(FAR_PRICED) {
                other_price(base, &mut dice)
            } else {
                near_price(base, &mut dice)
            };
            let choices = ranges.iter().map(|range| range.choice(&mut dice)).collect();
            let mut member = Member { shown, hidden, cents, choices, title: String::new() };
            member.title = title::title(&family, &member.shown, &mut dice);
            family.members.push(member);
        }
        if size > 1 && dice.chance(TWINS) {
            let (title, shown) = (family.members[0].title.clone(), family.members[0].shown.clone());
            // What the shared title says is no longer hidden.
            let twin = &mut family.members[1];
            twin.hidden.retain(|one| !shown.contains(one));
            (twin.title, twin.shown) = (title, shown);
        }
        family
    }

    /// The traits of each member: those in its title and those in its bullets only.
    fn deal(&self, size: usize, dice: &mut Dice) -> Vec<(Vec<Trait>, Vec<Trait>)> {
        let [is, parts, uses] = [Form::Is, Form::Has, Form::For].map(|form| self.pool(form));
        let of = |form: Form| move |&text: &&'static str| Trait { form, text };
        let shuffled = |pool: &Pool, dice: &mut Dice| dice.sample(pool.texts, pool.texts.len());
        let mut qualities: Vec<_> = shuffled(is, dice).iter().map(of(Form::Is)).collect();
        let mut uses: Vec<_> = shuffled(uses, dice).iter().map(of(Form::For)).collect();
        let parts: Vec<_> = self.column(parts, dice).iter().map(of(Form::Has)).collect();
        let by_all: Vec<_> =
            if dice.chance(SHOWN_BY_ALL) { qualities.pop().into_iter().collect() } else { Vec::new() };
        let common: Vec<_> = qualities.pop().into_iter().chain(uses.pop()).collect();
        let member = |at: usize| {
            let mut own = vec![
                qualities[2 * at % qualities.len()],
                qualities[(2 * at + 1) % qualities.len()],
                parts[at % parts.len()],
                uses[at % uses.len()],
            ];
            dice.shuffle(&mut own);
            let mut shown = by_all.clone();
            if dice.chance(SHOWN) {
                shown.extend(own.pop());
            }
            own.extend(&common);
            (shown, own)
        };
        (0..size).map(member).collect()
    }

    fn pool(&self, form: Form) -> &'static Pool {
        let of_form = |pool: &&&Pool| pool.form == form;
        self.kind.pools.iter().find(of_form).expect("a kind has a pool of every form")
    }

    /// One part in several makes: `rubber sole`, `leather sole`, `mesh sole`; without the makes that the title
    /// names anyway.
    fn column(&self, pool: &Pool, dice: &mut Dice) -> Vec<&'static str> {
        let side = pool.texts.len().isqrt();
        let column = dice.below(side);
        let named = format!("{} {}", self.query, self.material.unwrap_or_default());
        let is_new = |text: &&'static str| {
            let make = text.split(' ').next().unwrap_or_default();
            named.split(' ').all(|word| word != make)
        };
        let mut parts: Vec<_> = (0..side).map(|row| pool.texts[row * side + column]).filter(is_new).collect();
        dice.shuffle(&mut parts);
        parts
    }
}

/// Pages list groups in the kind's order, whichever of them a family has.
fn ranges(kind: &Kind, n_groups: usize, dice: &mut Dice) -> Vec<Range> {
    let mut groups = dice.sample(kind.groups, n_groups);
    groups.sort_by_key(|group| kind.groups.iter().position(|known| std::ptr::eq(*known, *group)));
    groups.into_iter().map(|group| Range::draw(group, dice)).collect()
}

/// Low prices are more frequent than high ones: the square of a uniform draw.
fn price(kind: &Kind, dice: &mut Dice) -> i64 {
    let (low, high) = kind.dollars;
    let part = dice.between(0, 100);
    (low + (high - low) * part * part / 10_000) * 100
}

fn near_price(base: i64, dice: &mut Dice) -> i64 {
    with_ending(base * dice.between(85, 115) / 100, dice)
}

/// Clearly more than the family's price.
fn other_price(base: i64, dice: &mut Dice) -> i64 {
    with_ending((base * dice.between(150, 300) / 100).max(base + 2_500), dice)
}

fn with_ending(cents: i64, dice: &mut Dice) -> i64 {
    (cents / 100).max(2) * 100 - 100 + dice.pick(&PRICE_ENDINGS)
}
