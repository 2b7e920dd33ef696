//! Which kinds one shop sells, and how many options its families have.
//!
//! Departments come in turn, kinds in turn within each, and at every further round a kind comes in another
//! variant: `men's hiking boots`, then `women's hiking boots`.

use super::dice::{Dice, Draw};
use super::words::{DEPARTMENTS, Department, Kind};
use crate::seed::Seed;

/// Of 20 families, how many have no option group, one, two, three.
const N_GROUPS: [usize; 4] = [8, 6, 5, 1];

/// A department with its kinds, each with its variants, in the order in which families take them up.
type Shelf = (&'static Department, Vec<(&'static Kind, Vec<&'static str>)>);

/// What a shop decides once for all families.
pub(super) struct Lexicon {
    pub seed: Seed,
    shelves: Vec<Shelf>,
    /// How many option groups successive families have.
    n_groups: Vec<usize>,
}

impl Lexicon {
    pub(super) fn new(seed: Seed) -> Self {
        Self { seed, shelves: shelves(seed), n_groups: n_groups(seed) }
    }

    /// Department, kind and variant of family number `family`.
    pub(super) fn kind(&self, family: usize) -> (&'static Department, &'static Kind, Option<&'static str>) {
        let (department, kinds) = &self.shelves[family % self.shelves.len()];
        let turn = family / self.shelves.len();
        let (kind, variants) = &kinds[turn % kinds.len()];
        let round = turn / kinds.len();
        let variant = (!variants.is_empty()).then(|| variants[round % variants.len()]);
        (department, kind, variant)
    }

    pub(super) fn n_groups(&self, family: usize) -> usize {
        // Turned by one at every round, since departments return every five families.
        let n_dealt = self.n_groups.len();
        self.n_groups[(family + family / n_dealt) % n_dealt]
    }
}

fn shelves(seed: Seed) -> Vec<Shelf> {
    let mut dice = Dice::new(seed, Draw::Kinds, &[]);
    let mut shelf = |department: &'static Department| {
        let mut kinds: Vec<_> = department
            .kinds
            .iter()
            .map(|kind| {
                let variants = if kind.audiences.is_empty() { kind.materials } else { kind.audiences };
                (kind, dice.sample(variants, variants.len()))
            })
            .collect();
        dice.shuffle(&mut kinds);
        (department, kinds)
    };
    let mut shelves: Vec<_> = DEPARTMENTS.iter().map(|&department| shelf(department)).collect();
    dice.shuffle(&mut shelves);
    shelves
}

/// Dealt like cards rather than drawn, so that even small shops have the usual shares.
fn n_groups(seed: Seed) -> Vec<usize> {
    let shares = N_GROUPS.iter().enumerate();
    let mut dealt: Vec<_> =
        shares.flat_map(|(n_groups, &share)| std::iter::repeat_n(n_groups, share)).collect();
    Dice::new(seed, Draw::Kinds, &[2]).shuffle(&mut dealt);
    dealt
}
