//! Makes goals from the instructions of a catalog.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::catalog::product::{Product, ProductIdx};
use crate::error::{DataError, FieldProblem};
use crate::goal::price_limit::PriceLimit;
use crate::goal::{Goal, GoalId, GoalKind, GoalStyle, WantedOption};
use crate::interned::Texts;
use crate::raw::RawData;
use crate::seed::Seed;

/// The most goals that one instruction may make; in real data some hundreds.
const MAX_COMBINATIONS: usize = 1_000_000;

/// The goals of `kind` in catalog order, not yet numbered; price limits are drawn from `seed`.
pub(crate) fn seeded_goals(
    data: &RawData,
    catalog: &Catalog,
    kind: GoalKind,
    seed: Seed,
) -> Result<Vec<Goal>, DataError> {
    let paid = |at| catalog.get(at).price.paid;
    goals(data, catalog, kind, |at, instruction| PriceLimit::draw(paid(at), seed, at, instruction))
}

/// The goals of `kind` in catalog order, weighted but not numbered. `limit` is called in that order, once
/// for each instruction that makes goals, with the product and the instruction's number (0: synthetic).
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
        let Some(entry) = data.instructions.get(asin) else {
            return Ok(());
        };
        let problem = |problem| DataError::Record {
            file: "items_ins_v2".into(),
            record: None,
            asin: asin.into(),
            problem,
        };
        let Some((sentence, attributes)) = entry.synthetic().map_err(problem)? else {
            return Ok(());
        };
        check_combinations(self.product).map_err(problem)?;
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

fn synthetic_text(sentence: &str, options: &[WantedOption], limit: PriceLimit) -> String {
    let named = |option: &WantedOption| match &option.name {
        Some(name) => format!("{name}: {}", option.value),
        None => option.value.to_string(),
    };
    let named: Vec<_> = options.iter().map(named).collect();
    let with = if named.is_empty() { "" } else { " with " };
    format!("{sentence}{with}{}{}", named.join(", and "), limit.text())
}

/// An error if a synthetic instruction for this product makes more than [`MAX_COMBINATIONS`] goals.
pub(crate) fn check_combinations(product: &Product) -> Result<(), FieldProblem> {
    let too_many = || format!("makes more than {MAX_COMBINATIONS} goals with the options of the product");
    n_combinations(product).map(|_| ()).ok_or_else(|| FieldProblem::new("instruction", too_many()))
}

/// The number of ways to choose one value per option; `None` above [`MAX_COMBINATIONS`].
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

/// Gives synthetic goals the original's weight: the mean over their attributes of 1 / (number of
/// synthetic goals with that attribute).
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
