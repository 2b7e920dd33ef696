//! Which kinds and words one shop uses.
//!
//! A small shop draws few words from each pool, so that every one of them occurs in several
//! products and what is learned about a word in training products holds in the others.

use super::dice::{Dice, Draw};
use super::words::{BRAND_BEGINNINGS, BRAND_ENDS, DEPARTMENTS, Department, Group, Kind, Pool};
use crate::seed::Seed;

/// Families of one kind in a shop, if kinds must be repeated at all.
const N_BRANDS: usize = 110;
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
}

impl Lexicon {
    pub(super) fn new(seed: Seed, n_families: usize) -> Self {
        let mut lexicon = Self {
            seed,
            kinds: kinds(seed),
            pools: Vec::new(),
            groups: Vec::new(),
            brands: Vec::new(),
        };
        for kind in DEPARTMENTS.iter().flat_map(|department| department.kinds) {
            for pool in kind.pools {
                if lexicon.pools.iter().all(|(known, _)| !std::ptr::eq(*known, pool)) {
                    let mut dice = Dice::new(seed, Draw::Pool, &[lexicon.pools.len()]);
                    lexicon
                        .pools
                        .push((pool, dice.sample(pool.texts, 6 + n_families / 20)));
                }
            }
            for group in kind.groups {
                if lexicon
                    .groups
                    .iter()
                    .all(|(known, _)| !std::ptr::eq(*known, *group))
                {
                    let mut dice = Dice::new(seed, Draw::Group, &[lexicon.groups.len()]);
                    lexicon
                        .groups
                        .push((group, dice.sample(group.values, 8 + n_families / 20)));
                }
            }
        }
        lexicon.brands = brands(seed, n_families);
        lexicon
    }

    /// What family number `family` sells: departments in turn, kinds in turn within each.
    pub(super) fn kind(&self, family: usize) -> (&'static Department, &'static Kind) {
        let (department, kinds) = &self.kinds[family % self.kinds.len()];
        (department, kinds[family / self.kinds.len() % kinds.len()])
    }

    pub(super) fn brand(&self, family: usize) -> &str {
        &self.brands[family % self.brands.len()]
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

fn brands(seed: Seed, n_families: usize) -> Vec<String> {
    let ends = BRAND_ENDS.iter();
    let mut brands: Vec<_> = ends
        .flat_map(|end| BRAND_BEGINNINGS.iter().map(move |start| format!("{start}{end}")))
        .collect();
    Dice::new(seed, Draw::Kinds, &[1]).shuffle(&mut brands);
    if n_families < MANY_FAMILIES {
        brands.truncate(N_BRANDS);
    }
    brands
}
