//! Rationales that a model gave, in the place of those by template.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::Deserialize;
use webshop_agent::shop_r1::{Answer, FormatMode, NextAction, Sample};
use webshop_training::shop_r1::{Exactness, is_exact};

use crate::lines;

/// What is read of a row that `webshop shop-r1 eval --out` wrote.
#[derive(Deserialize)]
struct Row {
    id: String,
    ground_truth: NextAction,
    completion: String,
}

impl Row {
    /// The reason of an answer that does what was really done; another action's would explain nothing.
    fn rationale(&self) -> Option<String> {
        let answer = Answer::read(&self.completion, FormatMode::Json).ok()?;
        let rationale = answer.rationale.trim();
        let is_apt =
            is_exact(Some(&answer.action), &self.ground_truth, Exactness::Soft) && !rationale.is_empty();
        is_apt.then(|| rationale.to_owned())
    }
}

/// Puts the rationales of the answers in `file` into the samples of the same names, and into what later ones recall of them.
/// Returns how many samples have got one.
pub fn put_in(samples: &mut [Sample], file: &Path) -> Result<usize> {
    let rows: Vec<Row> = lines::in_file(file)?;
    let given = rows.into_iter().filter_map(|row| Some((row.rationale()?, row.id)));
    let given: BTreeMap<String, String> = given.map(|(rationale, id)| (id, rationale)).collect();
    let mut n_given = 0;
    for sample in samples {
        if let Some(rationale) = given.get(&sample.id) {
            sample.rationale.clone_from(rationale);
            n_given += 1;
        }
        let visit = sample.id.rsplit_once('-').map_or("", |(visit, _)| visit);
        for (at, step) in sample.context.iter_mut().enumerate() {
            if let Some(rationale) = given.get(&format!("{visit}-{at}")) {
                step.rationale.clone_from(rationale);
            }
        }
    }
    Ok(n_given)
}
