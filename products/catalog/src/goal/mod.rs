//! What customers want.
//!
//! A [`Goal`] is an instruction together with the hidden criteria by which a purchase is judged.
//! A [`GoalSet`] holds all goals of a catalog in a fixed order, split by product into training,
//! validation and test, under a fingerprint that tells two goal sets apart.
//!
//! Where the original draws price limits from an unseeded global generator and shuffles, here a
//! limit is addressed by (product, instruction) and goals stay in catalog order. For the original's
//! own draws and order see [`crate::OriginalWorld`].

pub(crate) mod fingerprint;
pub(crate) mod price_limit;
pub(crate) mod split;
pub(crate) mod split_rule;

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;
use crate::error::{DataError, FieldProblem};
use crate::goal::price_limit::PriceLimit;
use crate::catalog::price::Cents;
use crate::catalog::product::{Product, ProductId, ProductIdx};
use crate::raw::{RawData, RawInstruction};
use crate::seed::Seed;
use crate::goal::split::{Split, Splits};
use crate::goal::split_rule::SplitRule;
use crate::interned::Texts;

/// So many goals one instruction may make; real ones make some hundreds.
const MAX_COMBINATIONS: usize = 1_000_000;

/// A goal's position in its goal set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GoalId(pub u32);

/// Where a goal's instruction comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalStyle {
    /// A person wrote it, options included.
    Human,
    /// A sentence about attributes, with options appended by rule.
    Synthetic,
}

/// Which goals to make of a catalog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalKind {
    /// Those of people.
    Human,
    /// Those made by rule.
    Synthetic,
    /// Of each product first the human, then the synthetic ones.
    #[default]
    Both,
}

/// An option value that a goal wants.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WantedOption {
    /// The option's name; human goals do not say it.
    pub name: Option<Arc<str>>,
    /// The value, spelled as pages show it in synthetic goals and as people put it in human ones.
    pub value: Arc<str>,
}

/// One wish, and what would fulfil it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Its position in the goal set.
    pub id: GoalId,
    /// The product it was made from, whose purchase fulfils it.
    pub product: ProductIdx,
    /// That product's name.
    pub asin: ProductId,
    /// That product's department.
    pub department: Arc<str>,
    /// That product's query; rewards compare kinds of products by it.
    pub query: Arc<str>,
    /// That product's title; rewards compare titles.
    pub title: Arc<str>,
    /// That product's path in the shop's tree; rewards compare it.
    pub product_category: Arc<str>,
    /// What the customer is told, with the price limit at the end.
    pub instruction: Arc<str>,
    /// What the purchase must be like; never empty.
    pub attributes: Arc<[Arc<str>]>,
    /// What must be chosen.
    pub options: Box<[WantedOption]>,
    /// What the purchase must not exceed.
    pub price_limit: Option<Cents>,
    /// How often the original draws it, relative to others.
    pub weight: f64,
    /// Where the instruction comes from.
    pub style: GoalStyle,
}

impl Goal {
    /// How many attributes and options the purchase must have: how much there is to get wrong.
    pub fn n_wishes(&self) -> usize {
        self.attributes.len() + self.options.len()
    }
}

/// The goals of a catalog.
#[derive(Clone, Debug)]
pub struct GoalSet {
    goals: Vec<Goal>,
    split_rule: SplitRule,
    splits: Splits,
    fingerprint: String,
}

impl GoalSet {
    /// Makes the goals of `kind`. `catalog` must come from the same `data`; its products that no
    /// instruction speaks of have no goals. `seed` draws the price limits.
    pub fn from_raw(
        data: &RawData,
        catalog: &Catalog,
        kind: GoalKind,
        seed: Seed,
    ) -> Result<Self, DataError> {
        Ok(Self::numbered(catalog, seeded_goals(data, catalog, kind, seed)?))
    }

    /// Goals made elsewhere for products of `catalog`, numbered in the order given.
    pub fn numbered(catalog: &Catalog, mut goals: Vec<Goal>) -> Self {
        for (at, goal) in goals.iter_mut().enumerate() {
            goal.id = GoalId(at as u32);
        }
        Self::parted(catalog, goals, SplitRule::ByProduct)
    }

    /// The same goals, parted by another rule. The fingerprint changes with who is where.
    ///
    /// # Errors
    /// [`DataError::TooFewGoals`], if the rule cannot part so few.
    pub fn split_by(self, rule: SplitRule, catalog: &Catalog) -> Result<Self, DataError> {
        let n_goals = self.goals.len();
        if n_goals < rule.min_goals() {
            return Err(DataError::TooFewGoals { rule, n_goals });
        }
        if rule == self.split_rule {
            return Ok(self);
        }
        Ok(Self::parted(catalog, self.goals, rule))
    }

    fn parted(catalog: &Catalog, goals: Vec<Goal>, split_rule: SplitRule) -> Self {
        let splits = Splits::by(split_rule, &goals);
        let fingerprint = fingerprint::of(catalog, &goals, &splits);
        Self { goals, split_rule, splits, fingerprint }
    }

    /// All goals, in the order of their ids: that of the catalog, or the one they were given in.
    pub fn goals(&self) -> &[Goal] {
        &self.goals
    }

    /// A goal of this set; an id of another set may panic.
    pub fn get(&self, id: GoalId) -> &Goal {
        &self.goals[id.0 as usize]
    }

    /// The rule by which the goals are parted; [`SplitRule::ByProduct`] unless another was asked for.
    pub fn split_rule(&self) -> SplitRule {
        self.split_rule
    }

    /// The goals of a part, ascending. By our own rule train, validation and test are disjoint by product.
    pub fn split(&self, split: Split) -> &[GoalId] {
        self.splits.get(split)
    }

    /// SHA-256 in hexadecimal over the catalog with its prices, the goals and their split.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

/// The goals of `kind` in catalog order, as yet without numbers, their price limits drawn from `seed`.
pub(crate) fn seeded_goals(
    data: &RawData,
    catalog: &Catalog,
    kind: GoalKind,
    seed: Seed,
) -> Result<Vec<Goal>, DataError> {
    let paid = |at| catalog.get(at).price.paid;
    goals(data, catalog, kind, |at, instruction| PriceLimit::draw(paid(at), seed, at, instruction))
}

/// The goals of `kind` in catalog order, weighed but not numbered. `limit` is called in that order, once
/// for each instruction that makes goals; it is told the product and the instruction's number there, 0 for
/// the synthetic one.
pub(crate) fn goals(
    data: &RawData,
    catalog: &Catalog,
    kind: GoalKind,
    mut limit: impl FnMut(ProductIdx, usize) -> PriceLimit,
) -> Result<Vec<Goal>, DataError> {
    let mut goals = Vec::new();
    let mut texts = Texts::default();
    for (at, product) in catalog.products().iter().enumerate() {
        let position = ProductIdx(at as u32);
        let mut limit = |instruction| limit(position, instruction);
        let mut maker = Maker { product, position, limit: &mut limit, texts: &mut texts };
        if kind != GoalKind::Synthetic {
            maker.human(data, &mut goals);
        }
        if kind != GoalKind::Human {
            maker.synthetic(data, &mut goals)?;
        }
    }
    weigh(&mut goals);
    Ok(goals)
}

/// Makes the goals of one product.
struct Maker<'a> {
    product: &'a Product,
    position: ProductIdx,
    limit: &'a mut dyn FnMut(usize) -> PriceLimit,
    texts: &'a mut Texts,
}

impl Maker<'_> {
    fn human(&mut self, data: &RawData, goals: &mut Vec<Goal>) {
        let entries = data.human.get(self.product.id.as_str());
        for (at, entry) in entries.into_iter().flatten().enumerate() {
            if entry.instruction_attributes.is_empty() {
                continue;
            }
            let limit = (self.limit)(at + 1);
            let options = entry.instruction_options.iter();
            let options = options.map(|value| WantedOption { name: None, value: self.texts.share(value) });
            let options = options.collect();
            let sentence = entry.instruction.trim_matches('.');
            let attributes = self.texts.share_all(&entry.instruction_attributes);
            goals.push(self.goal(
                format!("{sentence}{}", limit.text()),
                attributes,
                options,
                limit,
                GoalStyle::Human,
            ));
        }
    }

    fn synthetic(&mut self, data: &RawData, goals: &mut Vec<Goal>) -> Result<(), DataError> {
        let asin = self.product.id.as_str();
        let Some((record, _, entry)) = data.instructions.get_full(asin) else {
            return Ok(());
        };
        let problem = |problem| DataError::Record {
            file: "items_ins_v2".into(),
            record: record + 1,
            asin: asin.into(),
            problem,
        };
        let Some((sentence, attributes)) = wish(entry).map_err(problem)? else {
            return Ok(());
        };
        if n_combinations(self.product).is_none() {
            let too_many =
                format!("makes more than {MAX_COMBINATIONS} goals with the options of the product");
            return Err(problem(FieldProblem::new("instruction", too_many)));
        }
        let limit = (self.limit)(0);
        let attributes: Arc<[Arc<str>]> = self.texts.share_all(attributes);
        for options in combinations(self.product) {
            let text = synthetic_text(sentence, &options, limit);
            goals.push(self.goal(text, Arc::clone(&attributes), options.into(), limit, GoalStyle::Synthetic));
        }
        Ok(())
    }

    fn goal(
        &self,
        instruction: String,
        attributes: Arc<[Arc<str>]>,
        options: Box<[WantedOption]>,
        limit: PriceLimit,
        style: GoalStyle,
    ) -> Goal {
        Goal {
            id: GoalId(0),
            product: self.position,
            asin: self.product.id.clone(),
            department: self.product.department.clone(),
            query: self.product.query.clone(),
            title: self.product.title.clone(),
            product_category: self.product.product_category.clone(),
            instruction: instruction.into(),
            attributes,
            options,
            price_limit: limit.cents(),
            weight: 1.0,
            style,
        }
    }
}

/// The sentence of a synthetic instruction and the attributes it wants; none where there is no sentence.
pub(crate) fn wish(entry: &RawInstruction) -> Result<Option<(&str, &[String])>, FieldProblem> {
    let Some(sentence) = &entry.instruction else { return Ok(None) };
    match entry.instruction_attributes.as_deref().unwrap_or_default() {
        [] => Err(FieldProblem::new("instruction_attributes", "is empty")),
        attributes => Ok(Some((sentence, attributes))),
    }
}

fn synthetic_text(sentence: &str, options: &[WantedOption], limit: PriceLimit) -> String {
    let named = |option: &WantedOption| match &option.name {
        Some(name) => format!("{name}: {}", option.value),
        None => option.value.to_string(),
    };
    let named: Vec<_> = options.iter().map(named).collect();
    let with = if named.is_empty() { "" } else { " with " };
    format!("{sentence}{with}{}{}", named.join(", and "), limit.text())
}

/// How many ways there are to choose one value per option; none if more than anybody could mean.
fn n_combinations(product: &Product) -> Option<usize> {
    let lengths = || product.options.iter().map(|group| group.values.len());
    if lengths().any(|length| length == 0) {
        return Some(0);
    }
    let count = lengths().try_fold(1_usize, |count, length| count.checked_mul(length));
    count.filter(|&count| count <= MAX_COMBINATIONS)
}

/// Every way to choose one value per option, names in code-point order, the last varying fastest.
fn combinations(product: &Product) -> Vec<Vec<WantedOption>> {
    if n_combinations(product) == Some(0) {
        return Vec::new();
    }
    let mut groups: Vec<_> = product.options.iter().collect();
    groups.sort_by(|a, b| a.name.cmp(&b.name));
    groups.iter().fold(vec![Vec::new()], |chosen, group| {
        let wanted = group
            .values
            .iter()
            .map(|value| WantedOption { name: Some(group.name.clone()), value: value.text.clone() });
        let wanted: Vec<_> = wanted.collect();
        let extend = |so_far: &Vec<WantedOption>| {
            let so_far = so_far.clone();
            wanted.iter().map(move |option| [so_far.as_slice(), std::slice::from_ref(option)].concat())
        };
        chosen.iter().flat_map(|so_far| extend(so_far).collect::<Vec<_>>()).collect()
    })
}

/// Gives synthetic goals the original's weight: the mean, over their attributes, of one over the
/// number of synthetic goals with that attribute.
fn weigh(goals: &mut [Goal]) {
    let synthetic = |goal: &Goal| goal.style == GoalStyle::Synthetic;
    let mut counts: HashMap<Arc<str>, usize> = HashMap::new();
    for attribute in goals.iter().filter(|goal| synthetic(goal)).flat_map(|goal| &*goal.attributes) {
        *counts.entry(Arc::clone(attribute)).or_default() += 1;
    }
    for goal in goals.iter_mut().filter(|goal| synthetic(goal)) {
        let rarity = goal.attributes.iter().map(|attribute| 1.0 / counts[attribute] as f64);
        goal.weight = rarity.sum::<f64>() / goal.attributes.len() as f64;
    }
}

#[cfg(test)]
mod tests;
