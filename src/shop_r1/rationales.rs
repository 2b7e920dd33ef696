//! Replaces the template rationales of examples by those of a model.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::Deserialize;
use webshop_agent::next_action::{Example, FormatMode, NextAction, NextActionCompletion};
use webshop_evaluation::next_action::{Exactness, is_exact};
use webshop_products::read_json_lines;

/// The fields used of a line that `webshop shop-r1 eval --out` wrote.
#[derive(Deserialize)]
struct Row {
    id: String,
    ground_truth: NextAction,
    completion: String,
}

impl Row {
    /// The rationale, if the completion has the recorded action; that of another action would not explain it.
    fn rationale(&self) -> Option<String> {
        let completion = NextActionCompletion::read(&self.completion, FormatMode::Json).ok()?;
        let rationale = completion.rationale.trim();
        let is_usable =
            is_exact(Some(&completion.action), &self.ground_truth, Exactness::Soft) && !rationale.is_empty();
        is_usable.then(|| rationale.to_owned())
    }
}

/// Replaces the rationales of the examples by those in `file` with the same ids, also in the contexts of
/// later examples. Returns the number of examples with a new rationale.
pub(crate) fn replace(examples: &mut [Example], file: &Path) -> Result<usize> {
    let rows: Vec<Row> = read_json_lines(file)?;
    let new = rows.into_iter().filter_map(|row| Some((row.rationale()?, row.id)));
    let new: BTreeMap<String, String> = new.map(|(rationale, id)| (id, rationale)).collect();
    let mut n_replaced = 0;
    for example in examples {
        if let Some(rationale) = new.get(&example.id) {
            example.rationale.clone_from(rationale);
            n_replaced += 1;
        }
        let session = example.id.rsplit_once('-').map_or("", |(session, _)| session);
        for (idx, step) in example.context.iter_mut().enumerate() {
            if let Some(rationale) = new.get(&format!("{session}-{idx}")) {
                step.rationale.clone_from(rationale);
            }
        }
    }
    Ok(n_replaced)
}
