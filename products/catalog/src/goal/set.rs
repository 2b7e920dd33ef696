//! The goals of a catalog with their split and fingerprint.

use crate::catalog::Catalog;
use crate::error::{DataError, NoSuchGoal};
use crate::goal::fingerprint::{GoalDigests, fingerprint};
use crate::goal::make::seeded_goals;
use crate::goal::split::{Split, Splits};
use crate::goal::split_rule::SplitRule;
use crate::goal::{Goal, GoalId, GoalKind};
use crate::raw::RawData;
use crate::seed::{Purpose, Seed, below};

/// The draw of [`GoalSet::goal_for_seed`].
const GOAL_FOR_SEED: Purpose = Purpose::new("goal-for-seed");

/// The goals of a catalog, split into training, validation and test.
#[derive(Clone, Debug)]
pub struct GoalSet {
    goals: Vec<Goal>,
    split_rule: SplitRule,
    splits: Splits,
    fingerprint: String,
}

impl GoalSet {
    /// Makes the goals of `kind`. `catalog` must come from the same `data`; a product without an
    /// instruction has no goals. Price limits are drawn from `seed`.
    pub fn from_raw(
        data: &RawData,
        catalog: &Catalog,
        kind: GoalKind,
        seed: Seed,
    ) -> Result<Self, DataError> {
        Ok(Self::numbered(catalog, seeded_goals(data, catalog, kind, seed)?))
    }

    /// Numbers `goals`, which were made for products of `catalog`, in the order given.
    pub fn numbered(catalog: &Catalog, mut goals: Vec<Goal>) -> Self {
        for (at, goal) in goals.iter_mut().enumerate() {
            goal.id = GoalId(at as u32);
        }
        Self::with_rule(catalog, goals, SplitRule::default())
    }

    /// The same goals, split by `rule`. The fingerprint covers the split.
    ///
    /// # Errors
    /// [`DataError::TooFewGoals`] below [`SplitRule::min_goals`].
    pub fn split_by(self, rule: SplitRule, catalog: &Catalog) -> Result<Self, DataError> {
        let n_goals = self.goals.len();
        if n_goals < rule.min_goals() {
            return Err(DataError::TooFewGoals { rule, n_goals });
        }
        if rule == self.split_rule {
            return Ok(self);
        }
        Ok(Self::with_rule(catalog, self.goals, rule))
    }

    fn with_rule(catalog: &Catalog, goals: Vec<Goal>, split_rule: SplitRule) -> Self {
        let splits = Splits::by(split_rule, &goals);
        let fingerprint = fingerprint(catalog, &goals, &splits);
        Self { goals, split_rule, splits, fingerprint }
    }

    /// All goals, in the order of their ids.
    pub fn goals(&self) -> &[Goal] {
        &self.goals
    }

    /// The goal with this id.
    ///
    /// # Panics
    /// If `id` exceeds the ids of this set.
    pub fn get(&self, id: GoalId) -> &Goal {
        &self.goals[id.0 as usize]
    }

    /// The id of the goal with this number.
    ///
    /// # Errors
    /// [`NoSuchGoal`], if it is negative or no goal's.
    pub fn find(&self, number: i64) -> Result<GoalId, NoSuchGoal> {
        let n_goals = self.goals.len();
        let known = u32::try_from(number).ok().filter(|&id| (id as usize) < n_goals);
        known.map(GoalId).ok_or(NoSuchGoal { number, n_goals })
    }

    /// The rule of the split; [`SplitRule::ByFamily`] unless [`GoalSet::split_by`] changed it.
    pub fn split_rule(&self) -> SplitRule {
        self.split_rule
    }

    /// The goals of a split, ascending. Under [`SplitRule::ByFamily`] training, validation and test are
    /// disjoint by product and by family.
    pub fn split(&self, split: Split) -> &[GoalId] {
        self.splits.get(split)
    }

    /// The goal that `seed` draws uniformly from a split; `None` if the split has no goals. A server and a
    /// binding that take a seed for a reset both draw with this function, so they agree.
    pub fn goal_for_seed(&self, split: Split, seed: Seed) -> Option<GoalId> {
        let goals = self.split(split);
        goals.get(below(&mut seed.rng(GOAL_FOR_SEED, &[]), goals.len())).copied()
    }

    /// The first of training, validation and test that has this goal, else [`Split::All`]. Under a rule whose
    /// splits overlap the goal may be in a later one too.
    pub fn split_of(&self, goal: GoalId) -> Split {
        let named = [Split::Train, Split::Validation, Split::Test];
        let has = |split: &Split| self.split(*split).binary_search(&goal).is_ok();
        named.into_iter().find(has).unwrap_or(Split::All)
    }

    /// SHA-256 in hexadecimal over the catalog with its prices, the goals and their split.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// One digest for each part that the fingerprint covers; `catalog` must be that of the goals.
    pub fn digests(&self, catalog: &Catalog) -> GoalDigests {
        GoalDigests::new(catalog, &self.goals, &self.splits)
    }
}
