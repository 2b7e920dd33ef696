//! V* on disk: the run's own `value.json`, or a folder that runs share.
//!
//! A shared file counts how many seconds its values took. A run that finds values there is charged the mean
//! of those seconds and the tokens of the rollouts, as if it had made them, so that budgets do not depend on
//! what is cached.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::ValueConfig;
use crate::error::Result;
use crate::run::atomic::{read_json, write_json};
use crate::run::folder::RunFolder;
use crate::value::{ValueKey, ValueTable};

/// Seconds that the values of a shared file took.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Effort {
    goals: u64,
    seconds: f64,
}

/// The file of one value key.
pub(super) struct ValueCache {
    path: PathBuf,
    is_shared: bool,
    effort: Effort,
    /// The values in the file.
    pub(super) table: ValueTable,
}

impl ValueCache {
    /// Opens the file for `key`; empty if there is none.
    pub(super) fn open(config: &ValueConfig, run: &RunFolder, key: &ValueKey) -> Result<Self> {
        let path = match &config.cache {
            Some(folder) => folder.join(format!("value-{}.json", &key.digest()[..16])),
            None => run.value(),
        };
        let effort_path = path.with_extension("seconds.json");
        let effort = if effort_path.exists() { read_json(&effort_path)? } else { Effort::default() };
        let table = ValueTable::load(&path, key, config.beta1)?;
        Ok(Self { is_shared: config.cache.is_some(), path, effort, table })
    }

    /// Seconds that `n_goals` of its values took, at the mean of all.
    pub(super) fn seconds_of(&self, n_goals: usize) -> f64 {
        self.effort.seconds * n_goals as f64 / self.effort.goals.max(1) as f64
    }

    /// Writes the table, to which `n_goals` were added in `seconds`.
    pub(super) fn save(&mut self, n_goals: usize, seconds: f64) -> Result<()> {
        self.table.save(&self.path)?;
        if self.is_shared {
            self.effort.goals += n_goals as u64;
            self.effort.seconds += seconds;
            write_json(&self.path.with_extension("seconds.json"), &self.effort)?;
        }
        Ok(())
    }

    /// Whether other runs use the file.
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }
}
