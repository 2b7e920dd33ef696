//! Which kinds and words one shop uses.
//!
//! A small shop draws few words from each pool, so that every one of them occurs in several
//! products and a word means the same in training products and in others.

use super::dice::{Dice, Draw};
use super::words::{BRAND_BEGINNINGS, BRAND_ENDS, DEPARTMENTS, Department, Group, Kind, Pool};
use crate::seed::Seed;

/// Of 25 families, how many have no option group, one, two, three.
const N_GROUPS: [usize; 4] = [5, 7, 8, 5];

/// Brands of a shop that is not large.
const N_BRANDS: usize = 110;
/// From this many families on, grids are used whole.
const FULL_GRIDS: usize = 60;

/// From this many families on, every brand there can be is used.
const MANY_FAMILIES: usize = 1_000;

/// The part of all words that one shop uses.
pub(super) struct Lexicon {
    pub seed: Seed,
    /// Per department, its kinds in the order in which families take them up.
    kinds: Vec<(&'static Department, Vec<&'static Kind>)>,
    pools: Vec<(&'static Pool, Vec<&'static str>)>,
    groups: Vec<(&'static Group, Vec<&'static str>)>,
    brands: Vec<String>,
    /// How many option groups successive families have.
    n_groups: Vec<usize>,
}

impl Lexicon {
    pub(super) fn new(seed: Seed, n_families: usize) -> Self {
        let mut lexicon = Self {
            seed,
            kinds: kinds(seed),
            pools: Vec::new(),
            groups: Vec::new(),
            brands: brands(seed, n_families),
            n_groups: n_groups(seed),
        };
        for kind in DEPARTMENTS.iter().flat_map(|department| department.kinds) {
            for pool in kind.pools {
                if lexicon.pools.iter().all(|(known, _)| !std::ptr::eq(*known, pool)) {
                    let dice = Dice::new(seed, Draw::Pool, &[lexicon.pools.len()]);
                    lexicon.pools.push((pool, some_traits(pool, n_families, dice)));
                }
            }
            for group in kind.groups {
                if lexicon.groups.iter().all(|(known, _)| !std::ptr::eq(*known, *group)) {
                    let mut dice = Dice::new(seed, Draw::Group, &[lexicon.groups.len()]);
                    lexicon.groups.push((group, dice.sample(group.values, 4 + n_families / 20)));
                }
            }
        }
        lexicon
    }

    /// Department and kind of family number `family`: departments in turn, kinds in turn within each.
    pub(super) fn kind(&self, family: usize) -> (&'static Department, &'static Kind) {
        let (department, kinds) = &self.kinds[family % self.kinds.len()];
        (department, kinds[family / self.kinds.len() % kinds.len()])
    }

    pub(super) fn brand(&self, family: usize) -> &str {
        &self.brands[family % self.brands.len()]
    }

    pub(super) fn n_groups(&self, family: usize) -> usize {
        // Turned by one at every round, since departments return every five families.
        let n_dealt = self.n_groups.len();
        self.n_groups[(family + family / n_dealt) % n_dealt]
    }

    /// The traits of `pool` that this shop knows.
    pub(super) fn traits(&self, pool: &'static Pool) -> &[&'static str] {
        let known = self.pools.iter().find(|(known, _)| std::ptr::eq(*known, pool));
        known.map_or(pool.texts, |(_, texts)| texts)
    }

    /// The values of `group` that this shop knows.
    pub(super) fn values(&self, group: &'static Group) -> &[&'static str] {
        let known = self.groups.iter().find(|(known, _)| std::ptr::eq(*known, group));
        known.map_or(group.values, |(_, values)| values)
    }
}

fn kinds(seed: Seed) -> Vec<(&'static Department, Vec<&'static Kind>)> {
    let mut dice = Dice::new(seed, Draw::Kinds, &[]);
    let mut departments: Vec<_> = DEPARTMENTS
        .iter()
        .map(|department| {
            let mut kinds: Vec<_> = department.kinds.iter().collect();
            dice.shuffle(&mut kinds);
            (*department, kinds)
        })
        .collect();
    dice.shuffle(&mut departments);
    departments
}

/// Fewer words for fewer families; of a grid whole rows and columns.
fn some_traits(pool: &Pool, n_families: usize, mut dice: Dice) -> Vec<&'static str> {
    if !pool.is_grid {
        return dice.sample(pool.texts, 4 + n_families / 20);
    }
    let side = pool.texts.len().isqrt();
    let all: Vec<_> = (0..side).collect();
    let n_kept = if n_families < FULL_GRIDS { side - 1 } else { side };
    let (rows, columns) = (dice.sample(&all, n_kept), dice.sample(&all, n_kept));
    rows.iter().flat_map(|row| columns.iter().map(move |column| pool.texts[row * side + column])).collect()
}

/// Dealt like cards rather than drawn, so that even small shops have the usual shares.
fn n_groups(seed: Seed) -> Vec<usize> {
    let shares = N_GROUPS.iter().enumerate();
    let mut dealt: Vec<_> =
        shares.flat_map(|(n_groups, &share)| std::iter::repeat_n(n_groups, share)).collect();
    Dice::new(seed, Draw::Kinds, &[2]).shuffle(&mut dealt);
    dealt
}

fn brands(seed: Seed, n_families: usize) -> Vec<String> {
    let ends = BRAND_ENDS.iter();
    let mut brands: Vec<_> =
        ends.flat_map(|end| BRAND_BEGINNINGS.iter().map(move |start| format!("{start}{end}"))).collect();
    Dice::new(seed, Draw::Kinds, &[1]).shuffle(&mut brands);
    if n_families < MANY_FAMILIES {
        brands.truncate(N_BRANDS);
    }
    brands
}
